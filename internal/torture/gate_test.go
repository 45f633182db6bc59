// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// gate stands before an emulated cloud, counts the calls, and stops one of them. A
// hold fault stops a call before its effect only; this one after it too.
type gate struct {
	emulator.Service
	mu    sync.Mutex
	calls int
	stop  *stop
}

// stop is where a call is stopped.
type stop struct {
	// at is the call's number, counted from 1 since the stop was set.
	at int
	// after tells that the call has its effect first, and is stopped before its answer.
	after bool
	// reached is closed when the call is stopped.
	reached chan struct{}
	// released is closed to let the call go on. A call whose client is gone goes on too,
	// which the cloud doesn't see unless it has seen it before.
	released chan struct{}
	once     sync.Once
}

func (s *stop) release() { s.once.Do(func() { close(s.released) }) }

// set counts from 0 again and stops the nth call.
func (g *gate) set(at int, after bool) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = 0
	g.stop = &stop{at: at, after: after, reached: make(chan struct{}), released: make(chan struct{})}
	return g.stop
}

// next counts a call, and is the stop that it comes to, or nil.
func (g *gate) next() *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	if g.stop != nil && g.stop.at == g.calls {
		return g.stop
	}
	return nil
}

// ServeHTTP passes a call on, stopped or not.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.next()
	if s == nil {
		g.Service.ServeHTTP(w, r)
		return
	}
	// A server notices that its client is gone once it has read the body.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	wait := func() {
		close(s.reached)
		select {
		case <-s.released:
		case <-r.Context().Done():
		}
	}
	if !s.after {
		wait()
		g.Service.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	g.Service.ServeHTTP(answer, r)
	wait()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}
