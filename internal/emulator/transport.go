// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
)

// Transport returns a round tripper that hands requests to a handler in
// memory, without sockets and without goroutines, so that it also works inside
// a testing/synctest bubble. A dropped connection is [io.ErrUnexpectedEOF]; the
// end of the request's context is its error. A handler that waits without
// regard for the context keeps the round trip waiting too.
func Transport(handler http.Handler) http.RoundTripper {
	return memoryTransport{handler}
}

type memoryTransport struct{ handler http.Handler }

func (t memoryTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	body := request.Body
	if body == nil {
		body = http.NoBody
	}
	// A round tripper must close the body, whatever happens.
	defer func() { _ = body.Close() }()
	if err := request.Context().Err(); err != nil {
		return nil, err
	}

	served := request.Clone(request.Context())
	served.Body = body
	served.RequestURI = request.URL.RequestURI()
	served.RemoteAddr = "127.0.0.1:0"
	if served.Host == "" {
		served.Host = request.URL.Host
	}
	writer := &memoryWriter{answer: newAnswer()}
	t.handler.ServeHTTP(writer, served)

	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	if writer.dropped {
		return nil, io.ErrUnexpectedEOF
	}
	writer.WriteHeader(http.StatusOK)
	reason := cmp.Or(writer.reason, http.StatusText(writer.status))
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", writer.status, reason),
		StatusCode:    writer.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        writer.header,
		Body:          io.NopCloser(bytes.NewReader(writer.body.Bytes())),
		ContentLength: int64(writer.body.Len()),
		Request:       request,
	}, nil
}

type memoryWriter struct {
	*answer
	dropped bool
}

func (w *memoryWriter) setReason(reason string) { w.reason = reason }

func (w *memoryWriter) dropConnection() { w.dropped = true }
