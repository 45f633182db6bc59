// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestCachedSharesAndExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		c := Cached[int]{Lifetime: 10 * time.Minute, Fetch: func(context.Context) (int, error) {
			fetches++
			time.Sleep(time.Second)
			if fetches == 1 {
				return 0, io.EOF
			}
			return fetches, nil
		}}
		if _, err := c.Get(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
		results := make(chan int, 10)
		for range 10 {
			go func() {
				v, err := c.Get(t.Context())
				if err != nil {
					t.Error(err)
				}
				results <- v
			}()
		}
		for range 10 {
			if v := <-results; v != 2 {
				t.Errorf("got %d", v)
			}
		}
		time.Sleep(11 * time.Minute)
		if v, err := c.Get(t.Context()); v != 3 || err != nil {
			t.Errorf("after its lifetime: %d, %v", v, err)
		}
	})
}

func TestCachedFetchOutlivesTheCallerWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Cached[string]{Lifetime: time.Minute, Fetch: func(ctx context.Context) (string, error) {
			select {
			case <-time.After(time.Second):
				return "value", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}}
		quitter, cancel := context.WithCancel(t.Context())
		go func() { _, _ = c.Get(quitter) }()
		synctest.Wait()
		result := make(chan string)
		go func() {
			v, _ := c.Get(t.Context())
			result <- v
		}()
		synctest.Wait()
		cancel()
		if v := <-result; v != "value" {
			t.Errorf("got %q", v)
		}
	})
}

// TestCachedOutlivesAnInterruptedCall: who begins a fetch inside a call with grace may
// be told to stop; what others wait for goes on, its waits included.
func TestCachedOutlivesAnInterruptedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Cached[int]{Lifetime: time.Minute, Fetch: func(ctx context.Context) (int, error) {
			return 1, Sleep(Caller(ctx), time.Second)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		call, done := Grace(ctx)
		defer done()
		go func() { _, _ = c.Get(call) }()
		synctest.Wait()
		time.AfterFunc(100*time.Millisecond, cancel)
		if got, err := c.Get(t.Context()); got != 1 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
}
