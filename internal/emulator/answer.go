// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
)

// answer is a response kept in memory until it is known whether the client is
// to see it.
type answer struct {
	status int
	// reason is what the status line says; empty: what the status is called.
	reason string
	header http.Header
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}} }

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(data []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(data)
}

func (a *answer) send(w http.ResponseWriter) {
	a.WriteHeader(http.StatusOK)
	if a.reason != "" && a.sendReason(w) {
		return
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	// An error here means that the client is gone, and nobody is left to tell.
	_, _ = w.Write(a.body.Bytes())
}

// htmlPage is what a proxy before an API says when the API doesn't answer it.
func htmlPage(status int) *answer {
	page := newAnswer()
	page.header.Set("Content-Type", "text/html; charset=utf-8")
	page.status = status
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	fmt.Fprintf(&page.body, "<html>\r\n<head><title>%s</title></head>\r\n<body>\r\n<center><h1>%s</h1></center>\r\n<hr>\r\n</body>\r\n</html>\r\n", title, title)
	return page
}

// dropper is a response writer that can leave a call unanswered.
type dropper interface{ dropConnection() }

// drop ends a call without an answer.
func drop(w http.ResponseWriter) {
	for inner := w; inner != nil; {
		if d, ok := inner.(dropper); ok {
			d.dropConnection()
			return
		}
		wrapper, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		inner = wrapper.Unwrap()
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// A writer that can't let go of its connection (HTTP/2, a recorder)
		// gets the nearest thing: an answer that no API gives.
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	// Closing tells the client; a failure to close tells it too.
	_ = connection.Close()
}
