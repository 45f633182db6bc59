// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// request is one request: a path below /api2/json whose parts are escaped (see
// [at]), and its parameters. GET and DELETE have them in the query, since Proxmox VE
// refuses those with a body; the others as a form.
type request struct {
	method string
	path   string
	params url.Values
}

// at joins a path of the API and what belongs into it.
func at(parts ...any) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		switch v := p.(type) {
		case int:
			out[i] = strconv.Itoa(v)
		case string:
			out[i] = url.PathEscape(v)
		}
	}
	return strings.Join(out, "/")
}

// where is a VM: its VMID and the node that it is on now.
type where struct {
	node string
	vmid int
}

// at is a path below the VM's.
func (w where) at(parts ...any) string {
	return at(append([]any{"nodes", w.node, "qemu", w.vmid}, parts...)...)
}

// call sends a request, again where the retry policy lets it, and decodes the
// answer's data. what says what is being done: "Reading VM 4711". good tells whether
// the data is what it must be; nil takes anything. A node that can't be reached is
// asked once: it is down, and the rest of the cluster isn't.
func call[T any](ctx context.Context, c *Client, kind backends.Call, what string, r request, good func(T) bool) (T, error) {
	var out T
	var down error
	err := backends.Retry(ctx, kind, func(ctx context.Context) error {
		var data T // fresh for each try: nothing of an earlier one stays in it
		err := c.try(ctx, what, r, &data, func() bool { return good == nil || good(data) })
		if down = nil; isNodeDown(err) {
			down = err
			return nil
		}
		if err == nil {
			out = data
		}
		return err
	})
	if down != nil {
		err = down
	}
	return out, err
}

// tell sends a request that may be sent again, and whose answer holds nothing that
// matters.
func (c *Client) tell(ctx context.Context, what string, r request) error {
	_, err := call[json.RawMessage](ctx, c, backends.Idempotent, what, r, nil)
	return err
}

var errIncomplete = errors.New("the answer lacks what it must have")

// try sends a request once.
func (c *Client) try(ctx context.Context, what string, r request, out any, good func() bool) error {
	target := c.base + "/" + r.path
	var body io.Reader = http.NoBody
	switch bare := r.method == http.MethodGet || r.method == http.MethodDelete; {
	case bare && len(r.params) > 0:
		target += "?" + r.params.Encode()
	case !bare:
		body = strings.NewReader(r.params.Encode()) // with a length: the API takes no chunks
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return backends.Errorf(backends.ProviderError, "%s: the request can't be made.", what)
	}
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("User-Agent", c.userAgent)
	if body != http.NoBody {
		sent.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	got, err := c.http.Do(sent)
	if err != nil {
		return noAnswer(ctx, what, err)
	}
	defer func() { _ = got.Body.Close() }()
	data, err := io.ReadAll(got.Body)
	a := answer{status: got.StatusCode, reason: reasonPhrase(got), body: data}
	switch {
	case got.StatusCode >= http.StatusMultipleChoices:
		return refused(what, a) // whatever there is of its body
	case err != nil && ctx.Err() != nil:
		return noAnswer(ctx, what, err)
	case err == nil:
		err = decode(data, out)
	}
	if err == nil && !good() {
		err = errIncomplete
	}
	if err != nil {
		e := facts(what, a, "the answer can't be understood"+backends.AnswerProblem(err)).
			WithRemedy("Check that the account's url is that of a Proxmox VE cluster, such as %s.", exampleURL)
		// The status says that the call was carried out; only its result is lost.
		e.Ambiguous, e.Err = true, err
		return e
	}
	return nil
}

// decode reads the data of an answer.
func decode(body []byte, out any) error {
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(body, &envelope); err != nil {
		return err
	}
	data, ok := envelope["data"]
	if !ok {
		return errIncomplete
	}
	return json.Unmarshal(data, out)
}

// answer is what came back of a request that was refused.
type answer struct {
	status int
	reason string
	body   []byte
}

// reasonPhrase is the status line's text, "" when it is only the status' own name.
func reasonPhrase(r *http.Response) string {
	_, reason, _ := strings.Cut(r.Status, " ")
	reason = strings.TrimSpace(reason)
	if reason == http.StatusText(r.StatusCode) {
		return ""
	}
	return reason
}
