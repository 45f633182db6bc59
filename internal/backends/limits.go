// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits are the limiters of a process, one per token and endpoint. Tokens are kept as
// hashes only, with a key that no other process has. It is safe for concurrent use.
type Limits struct {
	key [sha256.Size]byte

	mu       sync.Mutex
	limiters map[tokenHash]*Limiter
}

type tokenHash [sha256.Size]byte

// NewLimits makes an empty set of limiters.
func NewLimits() *Limits {
	l := &Limits{limiters: map[tokenHash]*Limiter{}}
	_, _ = rand.Read(l.key[:]) // it never fails
	return l
}

// processLimits are those of all providers that the process serves.
var processLimits = sync.OnceValue(NewLimits)

// LimitsOf are the limiters for a backend: those of the environment, else those of
// the process. A transport of one's own isn't the vendor's API, so that it has its own.
func LimitsOf(env Environment, transport http.RoundTripper) *Limits {
	switch {
	case env.Limits != nil:
		return env.Limits
	case env.Transport != nil || transport != nil:
		return NewLimits()
	default:
		return processLimits()
	}
}

// manyLimiters is how many limiters are kept without looking for those out of use: a
// provider can live for days, with new tokens every hour.
const manyLimiters = 64

func (l *Limits) hash(endpoint, credential string) (out tokenHash) {
	mac := hmac.New(sha256.New, l.key[:])
	mac.Write([]byte(endpoint + "\x00" + credential))
	mac.Sum(out[:0])
	return out
}

// of is the limiter of a token. One that isn't known gets that of the token which it
// took the place of, if there is one: its waiters, and what is known of the limit,
// which many vendors count for all tokens of a project together.
func (l *Limits) of(token tokenHash, host string, rules LimitRules, before *Limiter) *Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limiter, ok := l.limiters[token]; ok {
		return limiter
	}
	if len(l.limiters) >= manyLimiters {
		for t, limiter := range l.limiters {
			if limiter != before && limiter.idle() {
				delete(l.limiters, t)
			}
		}
	}
	if before == nil {
		before = newLimiter(host, rules)
	}
	l.limiters[token] = before
	return before
}

// idle tells whether what a limiter knows is worth nothing any more.
func (l *Limiter) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget.flying == 0 && l.length() == 0 && time.Since(l.used) > time.Hour
}

// Limited wraps a transport so that requests wait for their turn in the [Limiter] of
// the credential that they carry: it stands below [Authorize]. A request's time
// ([RequestTimeout]) begins when its turn has come, so the client above must not
// bound it: see [NewLimitedClient]. log may be nil.
func Limited(base http.RoundTripper, limits *Limits, rules LimitRules, log *slog.Logger) http.RoundTripper {
	return &limited{base: base, limits: limits, rules: rules, log: log}
}

type limited struct {
	base   http.RoundTripper
	limits *Limits
	rules  LimitRules
	log    *slog.Logger

	mu sync.Mutex
	// rejected is the limiter of the token that the cloud refused last: the next token
	// of the account takes its place.
	rejected *Limiter
}

// RoundTrip implements [http.RoundTripper].
func (t *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	limiter := t.limiter(r)
	call, err := limiter.wait(ctx, classOf(ctx, r.Method), t.log)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	answer, err := bounded(t.base, r)
	if err != nil {
		limiter.lost(call, ctx.Err() == nil)
		operationOf(ctx).note(r.Method, 0)
		return nil, err
	}
	s := read(answer, time.Now())
	if s.refused {
		turnOf(ctx).refuse()
	}
	limiter.answered(call, s)
	operationOf(ctx).note(r.Method, answer.StatusCode)
	if answer.StatusCode == http.StatusUnauthorized {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rejected = limiter
	}
	return answer, nil
}

func (t *limited) limiter(r *http.Request) *Limiter {
	hash := t.limits.hash(r.URL.Scheme+"://"+r.URL.Host, r.Header.Get("Authorization"))
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limits.of(hash, r.URL.Host, t.rules, t.rejected)
}

// Bounds of what a header may say: more is nonsense.
const (
	highestLimit   = 1_000_000_000
	longestSeconds = 1 << 20
)

// read is what an answer says of the limit. Both vendors that have one send
// RateLimit-Limit, -Remaining and -Reset (Unix seconds) with every answer; DigitalOcean
// says Retry-After (seconds) where the limit of a minute is used up. A 429 that says
// that requests are left, and not when to come back, is another refusal than the
// limit's (DigitalOcean: one snapshot of a volume in ten minutes). What isn't a number,
// or can't be, counts as not said.
func read(answer *http.Response, now time.Time) said {
	var s said
	h := answer.Header
	limit, okLimit := number(h.Get("Ratelimit-Limit"), highestLimit)
	remaining, okRemaining := number(h.Get("Ratelimit-Remaining"), highestLimit)
	if okLimit && okRemaining && limit > 0 {
		s.limit, s.remaining = limit, min(remaining, limit)
		// A reset lies within the hour; a few minutes more are a clock that goes wrong.
		const hour = 75 * time.Minute
		if seconds, err := strconv.ParseInt(strings.TrimSpace(h.Get("Ratelimit-Reset")), 10, 64); err == nil {
			if reset := time.Unix(seconds, 0); reset.After(now.Add(-hour)) && reset.Before(now.Add(hour)) {
				s.reset = reset
			}
		}
	}
	if answer.StatusCode != http.StatusTooManyRequests {
		return s
	}
	if seconds, ok := number(h.Get("Retry-After"), longestSeconds); ok {
		s.retryAfter = time.Duration(seconds) * time.Second
	}
	s.refused = s.retryAfter > 0 || s.limit == 0 || s.remaining == 0
	return s
}

// number is a header's whole number from 0 to most.
func number(text string, most int) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	return n, err == nil && n >= 0 && n <= most
}
