// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// keyed is a [backends.Cached] per key: what is found is kept for its lifetime, a
// failed fetch is not, and all who ask for one key at the same time share a fetch.
type keyed[K comparable, T any] struct {
	lifetime time.Duration
	fetch    func(ctx context.Context, key K) (T, error)

	mu    sync.Mutex
	cache map[K]*backends.Cached[T]
}

func (k *keyed[K, T]) get(ctx context.Context, key K) (T, error) {
	k.mu.Lock()
	cached, ok := k.cache[key]
	if !ok {
		cached = &backends.Cached[T]{
			Lifetime: k.lifetime,
			Fetch:    func(ctx context.Context) (T, error) { return k.fetch(ctx, key) },
		}
		if k.cache == nil {
			k.cache = map[K]*backends.Cached[T]{}
		}
		k.cache[key] = cached
	}
	k.mu.Unlock()
	return cached.Get(ctx)
}
