// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Call says what may be done with a call whose outcome isn't known.
type Call int

const (
	// Idempotent calls may be sent again after any failure: reads, deletes, labels,
	// power.
	Idempotent Call = iota
	// Making calls make something: they are sent again only when the cloud said that
	// it did nothing, never after an [Error.Ambiguous] answer.
	Making
)

// The retry policy. An ambiguous or transient failure is given a few tries; what
// the cloud asks us to wait for (rate limits, locks) is waited for as long as ctx
// allows, since DESIGN.md §7 counts it as waiting, not failure. A refusal for a rate
// limit that a [Limiter] knows of is waited for there, together with all others.
const (
	transientTries = 5
	firstBackoff   = 500 * time.Millisecond
	longestBackoff = 15 * time.Second
)

// Retry runs call until it succeeds, fails for good, or ctx ends. It is the one
// retry policy of all backends; the vendors' clients have theirs switched off.
// When ctx ends during a wait, the error of the last try is returned together
// with ctx's.
func Retry(ctx context.Context, kind Call, call func(context.Context) error) error {
	backoff := firstBackoff
	place := &turn{}
	tryCtx := context.WithValue(ctx, turnKey{}, place)
	for try := 1; ; try++ {
		err := call(tryCtx)
		limited := place.wasRefused()
		e := AsError(err)
		if err == nil || e == nil || callerOf(ctx).Err() != nil {
			return err
		}
		waiting := e.Code == RateLimited || e.Reason == ReasonLocked
		again := e.Retryable || (e.Ambiguous && kind == Idempotent && !passesABound(e))
		if !again || (!waiting && try >= transientTries) {
			return err
		}
		if limited && e.Code == RateLimited {
			continue
		}
		wait := e.RetryAfter
		if wait <= 0 {
			wait = backoff
			backoff = min(backoff*2, longestBackoff)
		}
		if sleepErr := Sleep(callerOf(ctx), jitter(Scale(wait))); sleepErr != nil {
			return errors.Join(err, sleepErr)
		}
	}
}

// Caller is the context of the operation that a call belongs to, which a call with
// [Grace] doesn't end with: waits inside a call end with it and heed its deadline.
func Caller(ctx context.Context) context.Context { return callerOf(ctx) }

// interruptGrace is what a request that changes something gets to end after its
// caller was told to stop. It is never scaled: the cloud is as slow as it is.
const interruptGrace = 5 * time.Second

type callerKey struct{}

// callerOf is the context that waits between tries obey: that of the operation,
// also where a request is given grace.
func callerOf(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// Grace is a context for a call that changes something: the request that runs when
// ctx ends gets a few seconds to answer, so that its outcome is known and not lost.
// Waits of [Retry] between two requests end at once with ctx all the same.
func Grace(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = Sleep(out, interruptGrace)
		cancel(context.Cause(ctx))
	})
	return out, func() { stop(); cancel(context.Canceled) }
}

// jitter spreads a wait over 100 % to 125 % of itself, so that many operations
// told to wait don't come back at once.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d/4)+1))
}

// Sleep waits for d, or until ctx ends, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
