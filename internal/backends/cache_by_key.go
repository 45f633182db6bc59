// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"sync"
	"time"
)

// CachedByKey is a [Cached] per key: what is found is kept for its lifetime, a
// failed fetch is not, and all who ask for one key at the same time share a fetch.
// The zero value with Lifetime and Fetch set is ready to use.
type CachedByKey[K comparable, T any] struct {
	Lifetime time.Duration
	Fetch    func(ctx context.Context, key K) (T, error)

	mu    sync.Mutex
	cache map[K]*Cached[T]
}

// Get is the value of a key, fetched if there is none young enough.
func (k *CachedByKey[K, T]) Get(ctx context.Context, key K) (T, error) {
	k.mu.Lock()
	cached, ok := k.cache[key]
	if !ok {
		cached = &Cached[T]{
			Lifetime: k.Lifetime,
			Fetch:    func(ctx context.Context) (T, error) { return k.Fetch(ctx, key) },
		}
		if k.cache == nil {
			k.cache = map[K]*Cached[T]{}
		}
		k.cache[key] = cached
	}
	k.mu.Unlock()
	return cached.Get(ctx)
}
