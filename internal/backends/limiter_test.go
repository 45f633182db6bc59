// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimiterLearns: what is left decides who is free; the first answer tells.
func TestLimiterLearns(t *testing.T) {
	const reads, starts, finishes = "reads", "starts", "finishes"
	for name, tt := range map[string]struct {
		api   func() *vendor
		rules LimitRules
		kind  string
		calls int
		takes time.Duration // at least; and a tenth more at most
	}{
		"a plan of 1,000 servers":          {func() *vendor { return bucket(3600, 3600) }, refillRules, reads, 21, 0},
		"with a fortieth left":             {func() *vendor { return bucket(3600, 95) }, refillRules, reads, 21, 0},
		"a fiftieth is kept from reads":    {func() *vendor { return bucket(3600, 73) }, refillRules, reads, 11, 10 * time.Second},
		"a tenth is kept from what is new": {func() *vendor { return bucket(3600, 350) }, refillRules, starts, 11, 10 * time.Second},
		"plenty for what is new":           {func() *vendor { return bucket(3600, 500) }, refillRules, starts, 100, 0},
		"nothing is kept from the rest":    {func() *vendor { return bucket(3600, 73) }, refillRules, finishes, 72, 0},
		"but what isn't there":             {func() *vendor { return bucket(3600, 11) }, refillRules, finishes, 20, 10 * time.Second},
		"an empty bucket":                  {func() *vendor { return bucket(3600, 1) }, refillRules, finishes, 10, 10 * time.Second},
		"twice the limit, twice the pace":  {func() *vendor { return bucket(7200, 1) }, refillRules, finishes, 20, 10 * time.Second},
		"a limit of a minute":              {func() *vendor { return window(5000, 250) }, burstRules, reads, 240, 0},
		"and when it is used up":           {func() *vendor { return window(5000, 250) }, burstRules, finishes, 260, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := tt.api()
				a := single(t, v, tt.rules)
				a.get(t.Context(), "first")
				took := atOnce(tt.calls, func(int) {
					method, ctx := http.MethodGet, t.Context()
					switch tt.kind {
					case starts:
						method = http.MethodPost
					case finishes:
						ctx = started(ctx)
					}
					if err := a.call(ctx, method, tt.kind); err != nil {
						t.Error(err)
					}
				})
				if took < tt.takes || took > tt.takes+tt.takes/10+time.Second {
					t.Errorf("took %s, want %s", took, tt.takes)
				}
				if n := v.refused(); n > 0 {
					t.Errorf("%d refused", n)
				}
			})
		})
	}
}

// TestLimiterProbesTheUnknown: before anything is known, few requests are risked.
func TestLimiterProbesTheUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(3600, 0)
		v.latency = func() time.Duration { return 25 * time.Millisecond }
		a := single(t, v, refillRules)
		atOnce(50, func(int) { a.get(t.Context(), "x") })
		if n := v.refused(); n > atOnceUnknown {
			t.Errorf("%d of an empty bucket were refused, want %d at most", n, atOnceUnknown)
		}
	})
}

// TestLimiterKeepsAReserve: with little left, what finishes something goes before a
// crowd that would begin something, and that crowd is still served.
func TestLimiterKeepsAReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(3600, 40)
		a := single(t, v, refillRules)
		a.get(t.Context(), "first")
		var crowd sync.WaitGroup
		for range 60 {
			crowd.Go(func() { _ = a.call(t.Context(), http.MethodPost, "new") })
		}
		synctest.Wait()
		if took := atOnce(30, func(int) { a.get(started(t.Context()), "finish") }); took > time.Second {
			t.Errorf("finishing took %s beside a crowd", took)
		}
		// The bucket is empty: what is to be finished comes first all the same.
		v.others(100)
		took := atOnce(30, func(int) { a.get(started(t.Context()), "finish") })
		if took < 20*time.Second || took > 50*time.Second {
			t.Errorf("finishing took %s with an empty bucket, want three quarters of the refill", took)
		}
		crowd.Wait()
		if n := v.refused(); n > 2 {
			t.Errorf("%d refused", n)
		}
	})
}

// TestLimiterServesAllClasses: calls that finish something without end leave the
// others a quarter.
func TestLimiterServesAllClasses(t *testing.T) {
	for name, v := range map[string]func() *vendor{
		"an empty bucket": func() *vendor { return bucket(3600, 1) },
		"a full minute":   func() *vendor { return window(5000, 250) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := v()
				rules := LimitRules{Refills: v.burst == 0}
				if v.burst > 0 {
					rules = burstRules
				}
				a := single(t, v, rules)
				a.get(t.Context(), "first")
				ctx, cancel := context.WithCancel(t.Context())
				var busy sync.WaitGroup
				for range 20 {
					busy.Go(func() {
						for ctx.Err() == nil {
							_ = a.call(started(ctx), http.MethodGet, "poll")
							_ = Sleep(ctx, time.Millisecond)
						}
					})
				}
				_ = Sleep(ctx, time.Second)
				took := atOnce(10, func(i int) { _ = a.call(t.Context(), []string{http.MethodGet, http.MethodPost}[i%2], "other") })
				cancel()
				busy.Wait()
				if took > 2*time.Minute {
					t.Errorf("ten others took %s", took)
				}
			})
		})
	}
}

// TestLimiterLetsOperationsTakeTurns: a list of sixty pages doesn't keep others
// waiting for all of its pages, and those of one operation go in order.
func TestLimiterLetsOperationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(3600, 1)
		a := single(t, v, refillRules)
		a.get(t.Context(), "first")
		large := Operation(t.Context())
		var pages sync.WaitGroup
		for range 60 {
			pages.Go(func() { a.get(large, "page") })
		}
		synctest.Wait()
		if took := atOnce(5, func(i int) { a.get(t.Context(), fmt.Sprint("single", i)) }); took > 12*time.Second {
			t.Errorf("five single reads took %s beside sixty pages", took)
		}
		pages.Wait()
		if v.refused() > 0 {
			t.Errorf("%d refused", v.refused())
		}
	})
}

// TestLimiterClosesForAll: one refusal holds all requests of the token back, then one
// is tried alone.
func TestLimiterClosesForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := window(5000, 250)
		v.latency = func() time.Duration { return 50 * time.Millisecond }
		a := single(t, v, burstRules)
		a.get(t.Context(), "first")
		v.others(249) // another process: we can't know
		begun := time.Now()
		a.t = t
		var wg sync.WaitGroup
		wg.Go(func() { a.get(t.Context(), "refused") })
		_ = Sleep(t.Context(), time.Second)
		for range 50 {
			wg.Go(func() { a.get(t.Context(), "later") })
		}
		wg.Wait()
		if n := v.refused(); n != 1 {
			t.Errorf("%d refused, want one", n)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		// The first and the refused one come at the beginning, all others after the minute.
		if at := v.times[2].Sub(begun); at < 59*time.Second || v.arrived[2] != "GET /v1/refused" {
			t.Errorf("%s came %s after", v.arrived[2], at)
		}
		if gap := v.times[3].Sub(v.times[2]); gap < 50*time.Millisecond {
			t.Errorf("the second was sent %s after the first, before its answer", gap)
		}
	})
}

// TestLimiterBacksOff: refusals on end come ever more seldom.
func TestLimiterBacksOff(t *testing.T) {
	for name, tt := range map[string]struct {
		v     func() *vendor
		rules LimitRules
		most  int // in twenty minutes
	}{
		// What others leave of one request a second isn't known: each two seconds.
		"a bucket":           {func() *vendor { return bucket(3600, 0) }, refillRules, 610},
		"an hour's requests": {func() *vendor { return window(1000, 1000) }, burstRules, 17},
		"an hour's, without reset": {func() *vendor {
			v := window(1000, 1000)
			v.mangle = func(h http.Header) { h.Del("RateLimit-Reset") }
			return v
		}, burstRules, 17},
		"without headers": {func() *vendor { v := window(1000, 1000); v.mangle = func(h http.Header) { clear(h) }; return v }, burstRules, 17},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := tt.v()
				v.others(1000)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				v.dry = v.burst == 0
				a := single(t, v, tt.rules)
				atOnce(30, func(int) {
					if err := a.call(ctx, http.MethodGet, "x"); !HasCode(err, RateLimited) || ctx.Err() == nil {
						t.Errorf("got %v", err)
					}
				})
				if n := v.refused(); n > tt.most || n < 5 {
					t.Errorf("%d refused in twenty minutes, want %d at most", n, tt.most)
				}
			})
		})
	}
}

// TestLimiterEndsAtOnce: a wait ends with its operation, sends nothing, and says so.
func TestLimiterEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(60, 1)
		a := single(t, v, refillRules)
		a.get(t.Context(), "first")
		for name, ends := range map[string]struct {
			with func() (context.Context, context.CancelFunc)
			is   error
		}{
			"interrupted": {func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, context.Canceled},
			// Also where a request would be given grace: none was sent.
			"interrupted in grace": {func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				call, done := Grace(ctx)
				return call, func() { done(); cancel() }
			}, context.Canceled},
			"time is up": {func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), time.Second)
			}, context.DeadlineExceeded},
		} {
			ctx, cancel := ends.with()
			begun, sent := time.Now(), len(v.arrived)
			err := a.call(ctx, http.MethodPost, "x")
			cancel()
			e := AsError(err)
			if e == nil || e.Code != RateLimited || e.Ambiguous || e.Retryable || !errors.Is(err, ends.is) ||
				time.Since(begun) != time.Second || len(v.arrived) != sent {
				t.Errorf("%s: %#v after %s, %d sent", name, err, time.Since(begun), len(v.arrived)-sent)
			}
		}
		// They hold nothing up: the next call's turn comes as if they had never been.
		if took := atOnce(1, func(int) { a.get(t.Context(), "x") }); took > time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

// TestRequestTimeBeginsWithItsTurn: waiting in line isn't part of a request's time, and
// the answer's is bounded.
func TestRequestTimeBeginsWithItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(12, 1)
		a := single(t, v, refillRules)
		a.get(t.Context(), "first")
		if took := atOnce(1, func(int) { a.get(t.Context(), "x") }); took < 4*RequestTimeout {
			t.Errorf("took %s", took)
		}
		v = bucket(3600, 3600)
		v.latency = func() time.Duration { return time.Hour }
		a = single(t, v, refillRules)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example.com/v1/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err = a.client.Do(r)
		if time.Since(begun) != RequestTimeout || !errors.Is(err, errNoAnswer) {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// TestAnswersComeOutOfOrder: an early answer that comes late doesn't bring back what
// later calls have used up.
func TestAnswersComeOutOfOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		api   func() *vendor
		rules LimitRules
		calls int
	}{
		"a bucket": {func() *vendor { return bucket(3600, 101) }, refillRules, 150},
		"a minute": {func() *vendor { return window(5000, 250) }, burstRules, 300},
		"an hour":  {func() *vendor { return window(200, 2000) }, LimitRules{}, 205},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := tt.api()
				a := single(t, v, tt.rules)
				a.get(t.Context(), "first")
				var mu sync.Mutex
				n, begun := 0, time.Now()
				// Each call arrives at once; the earlier it does, the later its answer does.
				v.latency = func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					n++
					if n <= 100 {
						return 0
					}
					return max(0, time.Second-time.Duration(n)*2*time.Millisecond)
				}
				atOnce(tt.calls, func(int) {
					_ = Sleep(t.Context(), rand.N(20*time.Millisecond))
					a.get(started(t.Context()), "x")
				})
				// What waits for an hour is tried now and then.
				n = 0
				for _, at := range v.refusals {
					if at.Sub(begun) < time.Minute {
						n++
					}
				}
				if n > 0 {
					t.Errorf("%d refused", n)
				}
			})
		})
	}
}

// TestNoLimitIsNoLimit: an emulator without a limit reports one that nothing is taken
// from; the limit of a minute that it would imply isn't there either.
func TestNoLimitIsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := window(5000, 1000000)
		v.latency = func() time.Duration { return 25 * time.Millisecond }
		v.mangle = func(h http.Header) { h.Set("RateLimit-Remaining", "4999") }
		a := single(t, v, burstRules)
		took := atOnce(40, func(int) {
			for range 50 {
				a.get(t.Context(), "x")
			}
		})
		if took > 50*60*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

// TestWhatOthersLeaveOfAMinute is the hour's all the same: the refusal for the burst
// says "0 left", and means the minute.
func TestWhatOthersLeaveOfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := window(5000, 250)
		a := single(t, v, burstRules)
		a.get(t.Context(), "first")
		v.others(249)
		took := atOnce(100, func(int) { a.get(t.Context(), "x") })
		if took < 59*time.Second || took > 90*time.Second {
			t.Errorf("took %s, want a minute and what spreads them", took)
		}
	})
}

// TestRefusedCallsKeepTheirPlace: what was refused goes before what came later.
func TestRefusedCallsKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(3600, 1)
		v.latency = func() time.Duration { return 10 * time.Millisecond }
		a := single(t, v, refillRules)
		a.get(t.Context(), "first")
		var wg sync.WaitGroup
		wg.Go(func() { a.get(t.Context(), "early") })
		_ = Sleep(t.Context(), 900*time.Millisecond)
		v.others(1)
		v.mu.Lock()
		v.level = 0
		v.mu.Unlock()
		for range 5 {
			wg.Go(func() { a.get(t.Context(), "later") })
		}
		wg.Wait()
		if len(v.refusals) == 0 || v.arrived[1] != "GET /v1/early" || v.arrived[2] != "GET /v1/early" {
			t.Errorf("%d refused; came: %v", len(v.refusals), v.arrived)
		}
	})
}

// TestOtherRefusalsCloseNothing: a 429 that isn't the API's limit is the caller's.
func TestOtherRefusalsCloseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := window(5000, 250)
		v.status = func(r *http.Request) int {
			if r.Method == http.MethodPost {
				return http.StatusTooManyRequests
			}
			return http.StatusOK
		}
		a := single(t, v, burstRules)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _ = a.call(ctx, http.MethodPost, "snapshots") })
		synctest.Wait()
		if took := atOnce(20, func(int) { a.get(t.Context(), "x") }); took != 0 {
			t.Errorf("others waited %s", took)
		}
		wg.Wait()
	})
}

// TestClassOfACall: the method, and what the operation has done so far, decide.
func TestClassOfACall(t *testing.T) {
	ctx := Operation(t.Context())
	if Operation(ctx) != ctx {
		t.Error("an operation within another is another")
	}
	step := func(want class, method string, status int) {
		t.Helper()
		if got := classOf(ctx, method); got != want {
			t.Errorf("%s: got %d, want %d", method, got, want)
		}
		operationOf(ctx).note(method, status)
	}
	step(reading, http.MethodGet, 200)
	step(starting, http.MethodPost, 429) // refused: nothing was started
	step(starting, http.MethodPost, 422)
	step(reading, http.MethodGet, 404)
	step(starting, http.MethodPost, 0) // no answer: it may have been carried out
	step(finishing, http.MethodGet, 200)
	step(finishing, http.MethodPut, 200)
	if classOf(t.Context(), http.MethodGet) != reading || classOf(t.Context(), http.MethodDelete) != starting {
		t.Error("without an operation the method decides")
	}
	operationOf(t.Context()).note(http.MethodPost, 200) // none: nothing to note
}

// TestDetachedOutlivesItsCaller: work for many ends neither with the one who began it
// nor with the operation that one's call belongs to.
func TestDetachedOutlivesItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	call, done := Grace(ctx)
	work := Detached(call)
	cancel()
	done()
	if work.Err() != nil || callerOf(work).Err() != nil {
		t.Error("it ended with its caller")
	}
}

// TestLine: the order of a line, by the operations' turns.
func TestLine(t *testing.T) {
	var numbers int64
	next := func() int64 { numbers++; return numbers }
	a, b := &operation{}, &operation{}
	var l line
	var all []*waiter
	for _, op := range []*operation{a, a, a, b, nil, nil, b} {
		w := &waiter{number: next(), op: op}
		all = append(all, w)
		l.push(w)
	}
	l.remove(all[1])
	l.push(&waiter{number: 0, op: b}) // one that comes back
	l.remove(&waiter{})
	var got []string
	for l.length > 0 {
		w := l.pop(next)
		got = append(got, fmt.Sprint(w.number))
	}
	if want := "0 1 5 6 4 3 7"; strings.Join(got, " ") != want || len(l.groups) != 0 {
		t.Errorf("got %v, want %s", got, want)
	}
	if !slices.Equal(l.groups, nil) {
		t.Error("places are left")
	}
}
