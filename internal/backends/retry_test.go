// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryByKindOfFailure(t *testing.T) {
	for name, test := range map[string]struct {
		err   *Error
		kind  Call
		tries int // until it gives up; the call never succeeds, and time is up after an hour
	}{
		"refused for good":                {&Error{Code: ProviderError}, Idempotent, 1},
		"unclear, can be sent again":      {&Error{Code: ProviderError, Ambiguous: true}, Idempotent, transientTries},
		"unclear, makes something":        {&Error{Code: ProviderError, Ambiguous: true}, Making, 1},
		"not carried out, makes":          {&Error{Code: ProviderError, Retryable: true}, Making, transientTries},
		"rate limited: waits to the end":  {&Error{Code: RateLimited, Retryable: true, RetryAfter: 10 * time.Minute}, Making, 6},
		"locked: waits to the end":        {&Error{Code: ProviderError, Reason: ReasonLocked, Retryable: true, RetryAfter: 20 * time.Minute}, Idempotent, 3},
		"rate limited and not to be sent": {&Error{Code: RateLimited}, Making, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			tries := 0
			err := Retry(ctx, test.kind, func(context.Context) error { tries++; return test.err })
			// A wait is stretched by up to a quarter, so the last try may fall away.
			if tries > test.tries || tries < test.tries-1 || (test.tries <= transientTries && test.err.RetryAfter == 0 && tries != test.tries) {
				t.Errorf("%s: %d tries, want %d", name, tries, test.tries)
			}
			if !HasCode(err, test.err.Code) {
				t.Errorf("%s: the last failure is lost: %v", name, err)
			}
		})
	}
}

func TestRetryEndsAtOnceWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		err := Retry(ctx, Idempotent, func(context.Context) error {
			return &Error{Code: RateLimited, Retryable: true, RetryAfter: time.Hour}
		})
		if !errors.Is(err, context.Canceled) || time.Since(begun) != time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}
