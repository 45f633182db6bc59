// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"sync"
	"time"
)

// Cached fetches a value at most once per lifetime, for all who ask at the same
// time. A failed fetch is not kept. One caller giving up doesn't end the fetch for
// the others. The zero value with Lifetime and Fetch set is ready to use.
type Cached[T any] struct {
	Lifetime time.Duration
	Fetch    func(context.Context) (T, error)

	mu      sync.Mutex
	value   T
	fetched time.Time
	flight  *cachedFlight[T]
}

type cachedFlight[T any] struct {
	done    chan struct{}
	value   T
	err     error
	waiting int
	cancel  context.CancelFunc
}

// Get is the value, fetched if there is none young enough.
func (c *Cached[T]) Get(ctx context.Context) (T, error) {
	c.mu.Lock()
	if !c.fetched.IsZero() && time.Since(c.fetched) < c.Lifetime {
		defer c.mu.Unlock()
		return c.value, nil
	}
	f := c.flight
	if f == nil {
		// The fetch outlives the caller who started it, and ends when nobody waits.
		fetchCtx, cancel := context.WithCancel(Detached(ctx))
		f = &cachedFlight[T]{done: make(chan struct{}), cancel: cancel}
		c.flight = f
		go c.fetch(fetchCtx, f)
	}
	f.waiting++
	c.mu.Unlock()

	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.waiting--; f.waiting == 0 {
			f.cancel()
			if c.flight == f {
				c.flight = nil
			}
		}
		var none T
		return none, context.Cause(ctx)
	}
}

func (c *Cached[T]) fetch(ctx context.Context, f *cachedFlight[T]) {
	defer f.cancel()
	f.value, f.err = c.Fetch(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight == f {
		c.flight = nil
	}
	if f.err == nil {
		c.value, c.fetched = f.value, time.Now()
	}
	close(f.done)
}
