// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"bytes"
	"io"
	"net/http"
)

// maxNoted bounds what is kept of a refusal's body, in bytes.
const maxNoted = 64 << 10

// note is what an answer was, whatever godo makes of it: the library drops the
// response when a body can't be decoded, and the "id" of every refusal, and puts
// whole HTML pages into its errors.
type note struct {
	status int // 0: no answer came
	header http.Header
	text   []byte // the body, of answers that aren't a success
}

func (n *note) succeeded() bool { return n.status >= 200 && n.status <= 299 }

type noteKey struct{}

// noting is a transport that fills in the [note] of the request's context.
type noting struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.base.RoundTrip(r)
	n, ok := r.Context().Value(noteKey{}).(*note)
	if err != nil || !ok {
		return answer, err
	}
	n.status, n.header = answer.StatusCode, answer.Header
	if n.succeeded() {
		return answer, nil
	}
	// A body that breaks off is kept as far as it came: the status is what counts.
	n.text, _ = io.ReadAll(io.LimitReader(answer.Body, maxNoted))
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(n.text))
	return answer, nil
}
