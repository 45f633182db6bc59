// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"sync"
)

// keyed is a set of locks by name: one operation at a time on one object. The
// zero value is ready to use.
type keyed struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	held chan struct{} // holds one token while locked
	uses int
}

// lock waits for the lock, or until ctx ends.
func (k *keyed) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyedLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyedLock{held: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.uses++
	k.mu.Unlock()

	release := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.uses--; l.uses == 0 {
			delete(k.locks, key)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; release() }, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// lockBoth waits for two locks, which may be the same. They are taken in one order, so
// that two who want each other's never wait for each other.
func (k *keyed) lockBoth(ctx context.Context, a, b string) (unlock func(), err error) {
	if a == b {
		return k.lock(ctx, a)
	}
	first, err := k.lock(ctx, min(a, b))
	if err != nil {
		return nil, err
	}
	second, err := k.lock(ctx, max(a, b))
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}
