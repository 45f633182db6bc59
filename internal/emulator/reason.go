// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SetReason lets an answer's status line say why, for APIs that put their errors
// there; net/http only writes what the statuses are called. w is what a [Backend]
// was given to answer with; another writer is left alone. A connection is closed
// after such an answer.
func SetReason(w http.ResponseWriter, reason string) {
	if a, ok := w.(*answer); ok {
		a.reason = strings.NewReplacer("\r", " ", "\n", " ").Replace(reason)
	}
}

// reasoner is a response writer that takes the words of its status line.
type reasoner interface{ setReason(reason string) }

// sendReason sends an answer with its own reason; false where the writer can't do
// that.
func (a *answer) sendReason(w http.ResponseWriter) bool {
	for inner := w; inner != nil; {
		if r, ok := inner.(reasoner); ok {
			r.setReason(a.reason)
			return false
		}
		wrapper, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		inner = wrapper.Unwrap()
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	// An error means that the client is gone, and nobody is left to tell.
	defer func() { _ = connection.Close() }()
	header := a.header.Clone()
	header.Set("Content-Length", strconv.Itoa(a.body.Len()))
	header.Set("Connection", "close")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var raw bytes.Buffer
	fmt.Fprintf(&raw, "HTTP/1.1 %d %s\r\n", a.status, a.reason)
	if err := header.Write(&raw); err != nil {
		return true
	}
	raw.WriteString("\r\n")
	raw.Write(a.body.Bytes())
	_, _ = connection.Write(raw.Bytes())
	return true
}
