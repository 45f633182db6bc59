// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// load is what a process does with a token.
type load struct {
	limit, left int
	minute      bool  // a window with a limit of a minute, instead of a bucket
	operations  []int // by their calls; the first is a GET, the second a POST
	spread      time.Duration
	latency     time.Duration
	others      int // requests of other processes, spread as ours
	seed        uint64
	interrupted int // so many operations are interrupted on the way
}

func drawLoad(t *rapid.T) load {
	limit := rapid.IntRange(120, 7200).Draw(t, "limit")
	return load{
		limit: limit, left: rapid.IntRange(0, limit).Draw(t, "left"),
		minute:      rapid.Bool().Draw(t, "minute"),
		operations:  rapid.SliceOfN(rapid.IntRange(1, 12), 1, 40).Draw(t, "operations"),
		spread:      time.Duration(rapid.IntRange(0, 60).Draw(t, "spread")) * time.Second,
		latency:     time.Duration(rapid.IntRange(0, 400).Draw(t, "latency")) * time.Millisecond,
		others:      rapid.SampledFrom([]int{0, 0, 50, 500}).Draw(t, "others"),
		seed:        rapid.Uint64().Draw(t, "seed"),
		interrupted: rapid.IntRange(0, 3).Draw(t, "interrupted"),
	}
}

// run plays a load and returns what is wrong with how it went.
func (l load) run(t *testing.T) (problems []string) {
	random := rand.New(rand.NewPCG(l.seed, 1)) //nolint:gosec // A test's randomness must be repeatable.
	var mu sync.Mutex
	upTo := func(d time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(d) + 1))
	}
	v, rules := bucket(l.limit, float64(l.left)), refillRules
	if l.minute {
		v, rules = window(l.limit, max(1, l.limit/20)), burstRules
		// What is used up was used evenly over the last hour.
		for i := range l.limit - l.left {
			v.calls = append(v.calls, time.Now().Add(-time.Hour).Add(time.Duration(i+1)*time.Hour/time.Duration(l.limit-l.left+1)))
		}
	}
	v.latency = func() time.Duration { return l.latency/2 + upTo(l.latency/2) }
	a := single(t, v, rules)
	begun := time.Now()
	problem := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	var wg sync.WaitGroup
	total := l.others
	for i, calls := range l.operations {
		total += calls
		wg.Go(func() {
			_ = Sleep(t.Context(), upTo(l.spread))
			ctx, cancel := context.WithCancel(Operation(t.Context()))
			defer cancel()
			if i < l.interrupted {
				time.AfterFunc(upTo(l.spread), cancel)
			}
			for n := range calls {
				method := http.MethodGet
				if n == 1 {
					method = http.MethodPost
				}
				if err := a.call(ctx, method, fmt.Sprint(i, "/", n)); err != nil && ctx.Err() == nil {
					problem("call %d of operation %d is lost: %v", n, i, err)
					return
				}
			}
		})
	}
	for range l.others {
		wg.Go(func() {
			_ = Sleep(t.Context(), upTo(l.spread))
			v.others(1)
		})
	}
	wg.Wait()

	// Nobody starves: everything is done in the time in which the limit refills what was
	// asked for, four times over, besides what latency and the pauses after refusals take.
	took, refill := time.Since(begun), time.Hour/time.Duration(l.limit)*time.Duration(total)
	bound := l.spread + 4*refill + 2*time.Minute + time.Duration(total)*l.latency
	if l.minute {
		bound += 4*time.Minute + time.Duration(total/max(1, l.limit/20))*2*time.Minute
	}
	if took > bound {
		problem("it took %s, more than %s", took, bound)
	}
	// Without others, and with a cloud that says all, only the beginning can be refused, and
	// what takes the place of a call that was given up there.
	if l.others == 0 && !l.minute && len(v.refusals) > atOnceUnknown+l.interrupted {
		problem("%d of %d requests were refused, although nobody else used the token", len(v.refusals), total)
	}
	// Else a refusal closes for all: what is refused too was on its way already, and
	// the next one comes a pause later.
	slices.SortFunc(v.refusals, time.Time.Compare)
	var first time.Time
	for _, at := range v.refusals {
		switch since := at.Sub(first); {
		case since >= firstPause:
			first = at
		case since > 2*l.latency+time.Millisecond:
			problem("a request was refused %s after another, in the pause after that one", since)
		}
	}
	return problems
}

// TestLimiterHoldsWhatItPromises against vendors, loads and neighbours of all kinds.
func TestLimiterHoldsWhatItPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLoad(rt)
		var problems []string
		synctest.Test(t, func(t *testing.T) { problems = l.run(t) })
		if len(problems) > 0 {
			rt.Fatalf("%+v: %v", l, problems)
		}
	})
}
