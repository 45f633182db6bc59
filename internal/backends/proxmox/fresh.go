// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// fresh fetches a value for all who ask at the same time, and keeps it for those who
// take an older one. Unlike [backends.Cached] each caller says how old. The zero
// value with fetch set is ready to use.
type fresh[T any] struct {
	fetch func(context.Context) (T, error)

	mu     sync.Mutex
	value  T
	number int // of the fetch that gave the value, counted from 1
	begun  time.Time
	flight *freshFlight[T]
	last   int // number of the newest fetch
}

type freshFlight[T any] struct {
	number  int
	begun   time.Time
	done    chan struct{}
	value   T
	err     error
	waiting int
	cancel  context.CancelFunc
}

// get is the value by a fetch that began at most age ago; with an age of 0, by one
// that begins after the call. One caller giving up doesn't end the fetch for the
// others.
func (f *fresh[T]) get(ctx context.Context, age time.Duration) (T, error) {
	f.mu.Lock()
	least := f.last + 1
	if age > 0 {
		least = 1
	}
	f.mu.Unlock()
	for {
		f.mu.Lock()
		if f.number >= least && (age == 0 || time.Since(f.begun) <= age) {
			value := f.value
			f.mu.Unlock()
			return value, nil
		}
		flight := f.flight
		if flight == nil {
			fetchCtx, cancel := context.WithCancel(backends.Detached(ctx))
			f.last++
			flight = &freshFlight[T]{number: f.last, begun: time.Now(), done: make(chan struct{}), cancel: cancel}
			f.flight = flight
			go f.fill(fetchCtx, flight)
		}
		flight.waiting++
		f.mu.Unlock()
		select {
		case <-flight.done:
			// One that began too early for us was waited out; its failure isn't ours.
			if flight.number >= least {
				return flight.value, flight.err
			}
		case <-ctx.Done():
			f.leave(flight)
			var none T
			return none, context.Cause(ctx)
		}
	}
}

func (f *fresh[T]) fill(ctx context.Context, flight *freshFlight[T]) {
	defer flight.cancel()
	flight.value, flight.err = f.fetch(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flight == flight {
		f.flight = nil
	}
	if flight.err == nil && flight.number > f.number {
		f.value, f.number, f.begun = flight.value, flight.number, flight.begun
	}
	close(flight.done)
}

// leave ends a fetch that nobody waits for any more.
func (f *fresh[T]) leave(flight *freshFlight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flight.waiting--; flight.waiting == 0 {
		flight.cancel()
		if f.flight == flight {
			f.flight = nil
		}
	}
}
