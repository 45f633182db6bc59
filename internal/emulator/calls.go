// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import "sync"

// Call is one request that reached a service.
type Call struct {
	Method string `json:"method"`
	// Path is the request's path, without the query.
	Path string `json:"path"`
	// Query is the query as sent, empty when there was none.
	Query string `json:"query,omitempty"`
	// Status is the answer's status code; 0 while the call is not yet
	// answered, and for good when the connection was dropped instead.
	Status int `json:"status"`
	// Held is true while a hold fault keeps the call waiting.
	Held bool `json:"held"`
}

// callLog records calls in the order of their arrival.
type callLog struct {
	mu    sync.Mutex
	calls []*Call
}

func (l *callLog) begin(method, path, query string) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := &Call{Method: method, Path: path, Query: query}
	l.calls = append(l.calls, call)
	return call
}

// update changes a call that begin returned, even when the log was cleared.
func (l *callLog) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *callLog) list() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := make([]Call, len(l.calls))
	for i, call := range l.calls {
		calls[i] = *call
	}
	return calls
}

func (l *callLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = nil
}
