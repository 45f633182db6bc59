// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// vendor is an API with a rate limit: a bucket that refills over an hour, or, with a
// burst limit, requests that count for an hour, and for a minute. Others may use it up
// too. It is written from the vendors' documentation, not from the limiter.
type vendor struct {
	limit, burst int
	latency      func() time.Duration // each way; nil: none
	dry          bool                 // others take all that refills
	mangle       func(http.Header)    // changes the headers of an answer
	status       func(r *http.Request) int

	mu       sync.Mutex
	level    float64 // of the bucket, or what isn't ours of the window
	at       time.Time
	calls    []time.Time // those that count
	refusals []time.Time // that their caller has heard of
	arrived  []string    // method and path, in order
	times    []time.Time
}

func bucket(limit int, level float64) *vendor {
	return &vendor{limit: limit, level: level, at: time.Now()}
}

func window(limit, burst int) *vendor { return &vendor{limit: limit, burst: burst} }

// take counts a request, if the limit allows it; v.mu is held.
func (v *vendor) take(now time.Time) (ok bool, remaining int, reset time.Time, retry time.Duration) {
	if v.burst == 0 {
		v.level = min(float64(v.limit), v.level+now.Sub(v.at).Hours()*float64(v.limit))
		v.at = now
		if v.dry {
			v.level = 0
		}
		if ok = v.level >= 1-1e-6; ok {
			v.level--
		}
		left := max(0, v.level)
		return ok, int(left + 1e-6), now.Add(time.Duration((float64(v.limit) - left) / float64(v.limit) * float64(time.Hour))), 0
	}
	for len(v.calls) > 0 && !now.Before(v.calls[0].Add(time.Hour)) {
		v.calls = v.calls[1:]
	}
	minute := 0
	for minute < len(v.calls) && !now.Before(v.calls[minute].Add(time.Minute)) {
		minute++
	}
	if ok = len(v.calls) < v.limit && len(v.calls)-minute < v.burst; ok {
		v.calls = append(v.calls, now)
	} else if len(v.calls) < v.limit {
		retry = v.calls[minute].Add(time.Minute).Sub(now)
	}
	reset = now
	if len(v.calls) > 0 {
		reset = v.calls[0].Add(time.Hour)
	}
	return ok, v.limit - len(v.calls), reset, retry
}

// others uses requests up that aren't ours.
func (v *vendor) others(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for range n {
		v.take(time.Now())
	}
}

func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := v.travel(r.Context()); err != nil {
		return nil, err
	}
	v.mu.Lock()
	now := time.Now()
	v.arrived, v.times = append(v.arrived, r.Method+" "+r.URL.Path), append(v.times, now)
	ok, remaining, reset, retry := v.take(now)
	status, h := http.StatusOK, http.Header{}
	h.Set("RateLimit-Limit", strconv.Itoa(v.limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(remaining))
	h.Set("RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	if !ok {
		status = http.StatusTooManyRequests
		if retry > 0 {
			h.Set("RateLimit-Remaining", "0")
			h.Set("Retry-After", strconv.Itoa(int((retry+time.Second-1)/time.Second)))
		}
	} else if v.status != nil {
		status = v.status(r)
	}
	if v.mangle != nil {
		v.mangle(h)
	}
	v.mu.Unlock()
	if err := v.travel(r.Context()); err != nil {
		return nil, err
	}
	if !ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.refusals = append(v.refusals, now)
	}
	return &http.Response{StatusCode: status, Header: h, Request: r, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func (v *vendor) travel(ctx context.Context) error {
	if v.latency == nil {
		return nil
	}
	return Sleep(ctx, v.latency())
}

func (v *vendor) refused() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.refusals)
}

var (
	refillRules = LimitRules{Refills: true}
	burstRules  = LimitRules{Burst: 20}
)

// account is a client as a backend has one.
type limitedAccount struct {
	t      *testing.T
	client *http.Client
}

func accountOf(t *testing.T, api http.RoundTripper, limits *Limits, rules LimitRules, secrets Secrets, log *slog.Logger) *limitedAccount {
	t.Helper()
	endpoint, err := url.Parse("https://api.example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	return &limitedAccount{t, NewLimitedClient(Authorize(Limited(api, limits, rules, log), secrets, "env://T", endpoint,
		func(c string) (string, string) { return "Authorization", "Bearer " + c }))}
}

func single(t *testing.T, v *vendor, rules LimitRules) *limitedAccount {
	t.Helper()
	return accountOf(t, v, NewLimits(), rules, &fixedSecrets{value: "s3cr3t"}, nil)
}

// call sends a request as a backend does: again where the policy says so.
func (a *limitedAccount) call(ctx context.Context, method, path string) error {
	return Retry(ctx, Idempotent, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, method, "https://api.example.com/v1/"+path, strings.NewReader("body"))
		if err != nil {
			return err
		}
		answer, err := a.client.Do(r)
		if err != nil {
			return TransportError(ctx, "Acme", err)
		}
		_ = answer.Body.Close()
		switch {
		case answer.StatusCode == http.StatusTooManyRequests:
			// The limiter's wait counts, not this one beside it.
			return &Error{Code: RateLimited, Retryable: true, Message: "429", RetryAfter: 10 * time.Second}
		case answer.StatusCode >= http.StatusInternalServerError:
			return &Error{Code: ProviderError, Ambiguous: true, Message: "5xx"}
		case answer.StatusCode >= http.StatusBadRequest:
			return &Error{Code: ProviderError, Message: "4xx"}
		}
		return nil
	})
}

func (a *limitedAccount) get(ctx context.Context, path string) {
	a.t.Helper()
	if err := a.call(ctx, http.MethodGet, path); err != nil {
		a.t.Errorf("GET %s: %v", path, err)
	}
}

// started is a context of an operation that has changed something.
func started(ctx context.Context) context.Context {
	ctx = Operation(ctx)
	operationOf(ctx).note(http.MethodPost, http.StatusCreated)
	return ctx
}

// atOnce runs calls at the same time and returns how long all of them took.
func atOnce(n int, call func(i int)) time.Duration {
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
	}
	wg.Wait()
	return time.Since(begun)
}
