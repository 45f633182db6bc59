// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"sync"
	"time"
)

// lowShare is the part of a rate limit below which requests are spread out.
const lowShare = 10 // a tenth

// Pace slows down before a rate limit is used up (DESIGN.md §7): as long as an
// answer says that little is left of it, requests go out one by one, no faster than
// the limit refills. What others who share the limit need is left to them, and what
// is to come takes its turn instead of being refused. The zero value with Window set
// is ready to use.
type Pace struct {
	// Window is the time that the limit is for.
	Window time.Duration

	mu       sync.Mutex
	interval time.Duration // 0: free
	next     time.Time     // when the next request may go out
}

// Saw takes in what an answer says: the limit, and what is left of it. Where it says
// nothing (a limit of 0) nothing changes.
func (p *Pace) Saw(limit, remaining int) {
	if limit <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interval = 0
	if remaining < max(1, limit/lowShare) {
		p.interval = p.Window / time.Duration(limit)
	}
}

// Wait waits for the turn of a request, and returns the error of ctx if it ends
// first.
func (p *Pace) Wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	wait := p.next.Sub(now)
	if p.interval == 0 || wait <= 0 {
		wait = 0
	}
	p.next = now.Add(wait + Scale(p.interval))
	p.mu.Unlock()
	if wait == 0 {
		return nil
	}
	return Sleep(callerOf(ctx), wait)
}
