// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"math"
	"sync"
	"time"
)

// Limiter is a bucket of calls for each key (a project, a token): it holds an
// hour's calls, each call takes one, and it refills steadily over the hour.
type Limiter struct {
	// perHour is the size of a bucket; 0 or less: calls are not limited.
	perHour int
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	level float64
	at    time.Time
}

// NewLimiter returns a limiter of so many calls per hour and key; 0 is no limit.
func NewLimiter(perHour int) *Limiter {
	return &Limiter{perHour: perHour, buckets: map[string]*bucket{}}
}

// Limit is the calls per hour; 0 when they are not limited.
func (l *Limiter) Limit() int { return max(l.perHour, 0) }

// Take takes a call from a key's bucket, if there is one. It returns how many
// are left after that and when the bucket will be full again.
func (l *Limiter) Take(key string) (remaining int, full time.Time, ok bool) {
	now := time.Now()
	if l.perHour <= 0 {
		return 0, now, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil {
		b = &bucket{level: float64(l.perHour), at: now}
		l.buckets[key] = b
	}
	perSecond := float64(l.perHour) / time.Hour.Seconds()
	b.level = math.Min(float64(l.perHour), b.level+now.Sub(b.at).Seconds()*perSecond)
	b.at = now
	// The sum of many small refills may miss a whole call by a rounding error.
	const rounding = 1e-6
	if b.level+rounding >= 1 {
		b.level = math.Max(0, b.level-1)
		ok = true
	}
	missing := float64(l.perHour) - b.level
	full = now.Add(time.Duration(missing / perSecond * float64(time.Second)))
	return int(b.level + rounding), full, ok
}
