// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// hostile turns the good answer to a request into a hostile one.
type hostile func(good *http.Response, body []byte) (*http.Response, error)

// wire carries requests to an emulator. From the one with a number on, each gets a
// hostile answer.
type wire struct {
	base http.RoundTripper

	mu       sync.Mutex
	requests int
	from     int     // the number of the first, from 1
	answer   hostile // nil: all are good
	problems []string
	bodies   []*counted
}

// arm makes answers hostile, beginning with the nth request from now.
func (w *wire) arm(nth int, answer hostile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.from, w.answer, w.problems, w.bodies = 0, nth, answer, nil, nil
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests++
	answer := w.answer
	if w.requests < w.from {
		answer = nil
	}
	if strings.HasSuffix(r.URL.Host, elsewhere) {
		w.problems = append(w.problems, "a request went to "+r.URL.String())
	}
	w.mu.Unlock()
	good, err := w.base.RoundTrip(r)
	if err != nil || answer == nil {
		return good, err
	}
	body, err := io.ReadAll(good.Body)
	if err != nil {
		return nil, err
	}
	bad, err := answer(good, body)
	if errors.Is(err, errSilent) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	if d, ok := bad.Body.(*dripping); ok {
		d.ctx = r.Context()
	}
	c := &counted{ReadCloser: bad.Body}
	bad.Body, bad.Request = c, r
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies = append(w.bodies, c)
	return bad, nil
}

// errSilent stands for no answer at all.
var errSilent = errors.New("no answer")

// counted counts what is read of a body, and whether it is closed.
type counted struct {
	io.ReadCloser
	mu     sync.Mutex
	read   int
	closed bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read += n
	return n, err
}

func (c *counted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.ReadCloser.Close()
}

// dripping is a body that comes so slowly that it has no end.
type dripping struct {
	ctx   context.Context //nolint:containedctx // A body ends with its request.
	every func(context.Context) error
}

func (d *dripping) Read(p []byte) (int, error) {
	if err := d.every(d.ctx); err != nil {
		return 0, err
	}
	p[0] = ' '
	return 1, nil
}

func (d *dripping) Close() error { return nil }

// check holds a wire to what is promised of every answer, and tells what was not kept.
func (w *wire) check() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	problems := w.problems
	const spare = 64 << 10 // the size of a buffer
	for _, b := range w.bodies {
		b.mu.Lock()
		if b.read > backends.MaxAnswer+spare {
			problems = append(problems, fmt.Sprintf("%d bytes of an answer were read", b.read))
		}
		if !b.closed {
			problems = append(problems, "the body of an answer was not closed")
		}
		b.mu.Unlock()
	}
	return problems
}
