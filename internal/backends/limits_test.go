// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatAnAnswerSays: what isn't a number, or can't be, counts as not said.
func TestWhatAnAnswerSays(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	soon := "1800000060"
	for name, tt := range map[string]struct {
		status                         int
		limit, remaining, reset, retry string
		want                           said
	}{
		"all":                     {200, "3600", "3599", soon, "", said{limit: 3600, remaining: 3599, reset: now.Add(time.Minute)}},
		"none":                    {200, "", "", "", "", said{}},
		"spaces":                  {200, " 3600 ", " 7", "", "", said{limit: 3600, remaining: 7}},
		"negative limit":          {200, "-1", "5", "", "", said{}},
		"negative remaining":      {200, "3600", "-5", "", "", said{}},
		"no limit":                {200, "0", "0", "", "", said{}},
		"only a limit":            {200, "3600", "", "", "", said{}},
		"NaN":                     {200, "NaN", "NaN", "NaN", "NaN", said{}},
		"infinite":                {200, "Inf", "1e3", "", "", said{}},
		"huge":                    {200, "99999999999999999999", "1", "", "", said{}},
		"large":                   {200, "9000000000", "1", "", "", said{}},
		"more left than there is": {200, "3600", "5000", "", "", said{limit: 3600, remaining: 3600}},
		"reset long ago":          {200, "3600", "1", "0", "", said{limit: 3600, remaining: 1}},
		"reset far away":          {200, "3600", "1", "4102444800", "", said{limit: 3600, remaining: 1}},
		"reset overflows":         {200, "3600", "1", "9223372036854775807", "", said{limit: 3600, remaining: 1}},
		"not a refusal":           {503, "3600", "0", "", "9", said{limit: 3600}},
		"429":                     {429, "3600", "0", "", "", said{limit: 3600, refused: true}},
		"429, nothing said":       {429, "", "", "", "", said{refused: true}},
		"429, burst":              {429, "5000", "4000", "", "17", said{limit: 5000, remaining: 4000, refused: true, retryAfter: 17 * time.Second}},
		"429, of something else":  {429, "5000", "4000", "", "", said{limit: 5000, remaining: 4000}},
		"429, retry negative":     {429, "3600", "0", "", "-1", said{limit: 3600, refused: true}},
		"429, retry at once":      {429, "3600", "0", "", "0", said{limit: 3600, refused: true}},
		"429, retry huge":         {429, "3600", "0", "", "99999999999", said{limit: 3600, refused: true}},
		"429, retry not a number": {429, "3600", "0", "", "soon\r\nX: y", said{limit: 3600, refused: true}},
	} {
		h := http.Header{}
		for k, v := range map[string]string{
			"RateLimit-Limit": tt.limit, "RateLimit-Remaining": tt.remaining, "RateLimit-Reset": tt.reset, "Retry-After": tt.retry,
		} {
			if v != "" {
				h.Set(k, v)
			}
		}
		if got := read(&http.Response{StatusCode: tt.status, Header: h}, now); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestNonsenseBlocksNobody: whatever headers say, requests go on.
func TestNonsenseBlocksNobody(t *testing.T) {
	for _, value := range []string{"", "-1", "0", "NaN", "1", "99999999999999999999", "999999999", "x\ny"} {
		for _, rules := range []LimitRules{refillRules, burstRules} {
			synctest.Test(t, func(t *testing.T) {
				v := bucket(1000, 1000)
				n := 0
				v.mangle = func(h http.Header) {
					if n++; n%2 == 0 {
						return
					}
					for _, k := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"} {
						h.Set(k, value)
					}
				}
				a := single(t, v, rules)
				for range 3 {
					atOnce(5, func(int) { a.get(t.Context(), "x") })
				}
				if v.refused() > 0 {
					t.Errorf("%q: %d refused", value, v.refused())
				}
			})
		}
	}
}

func TestLongestRetryAfterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := window(5000, 250)
		n := 0
		v.status = func(*http.Request) int {
			if n++; n == 1 {
				return http.StatusTooManyRequests
			}
			return http.StatusOK
		}
		v.mangle = func(h http.Header) { h.Set("Retry-After", "1000000") }
		if took := atOnce(1, func(int) { single(t, v, burstRules).get(t.Context(), "x") }); took != longestClosed {
			t.Errorf("waited %s", took)
		}
	})
}

// TestLimitersAreSharedByToken: accounts with one token share what is learned, another
// token or endpoint doesn't, and nobody keeps the token.
func TestLimitersAreSharedByToken(t *testing.T) {
	const token = "s3cr3t-token"
	limits := NewLimits()
	hash := func(endpoint, credential string) *Limiter {
		return limits.of(limits.hash(endpoint, credential), "api.example.com", refillRules, nil)
	}
	first := hash("https://api.example.com", token)
	if hash("https://api.example.com", token) != first {
		t.Error("two accounts of one token don't share a limiter")
	}
	if hash("https://api.example.com", "other") == first || hash("https://api.example.org", token) == first {
		t.Error("another token or endpoint shares the limiter")
	}
	if NewLimits().hash("https://api.example.com", token) == limits.hash("https://api.example.com", token) {
		t.Error("the hashes of two processes are equal")
	}
	if text := fmt.Sprintf("%+v %+v", limits, first); strings.Contains(text, token) {
		t.Error("the token is kept")
	}
	for i := range 10 * manyLimiters {
		synctest.Test(t, func(*testing.T) { // at a time long ago
			hash("https://api.example.com", strconv.Itoa(i)).used = time.Time{}
		})
	}
	if len(limits.limiters) > manyLimiters+1 {
		t.Errorf("%d limiters are kept", len(limits.limiters))
	}
}

func TestLimitsOfAnEnvironment(t *testing.T) {
	own, process := NewLimits(), LimitsOf(Environment{}, nil)
	tripper := http.DefaultTransport
	switch {
	case LimitsOf(Environment{Limits: own, Transport: tripper}, tripper) != own:
		t.Error("those of the environment are not used")
	case LimitsOf(Environment{}, nil) != process:
		t.Error("two accounts of the process don't share")
	case LimitsOf(Environment{Transport: tripper}, nil) == process, LimitsOf(Environment{}, tripper) == process:
		t.Error("an invented cloud shares the process'")
	}
}

// TestTwoAccountsHoldBackTogether, as one token's requests are counted together.
func TestTwoAccountsHoldBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(3600, 11)
		limits := NewLimits()
		accounts := []*limitedAccount{
			accountOf(t, v, limits, refillRules, &fixedSecrets{value: "one"}, nil),
			accountOf(t, v, limits, refillRules, &fixedSecrets{value: "one"}, nil),
		}
		accounts[0].get(t.Context(), "first")
		took := atOnce(20, func(i int) { accounts[i%2].get(started(t.Context()), "x") })
		if took < 10*time.Second || v.refused() > 0 {
			t.Errorf("took %s, %d refused", took, v.refused())
		}
	})
}

// guarded are secrets that many resolve at once.
type guarded struct {
	Secrets
	mu sync.Mutex
}

func (g *guarded) Resolve(ctx context.Context, reference string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Secrets.Resolve(ctx, reference)
}

func (g *guarded) Forget(reference string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Secrets.Forget(reference)
}

// TestRotationKeepsWhatIsKnown: a token that takes a refused one's place goes on with
// its limiter, also for those that wait already.
func TestRotationKeepsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := bucket(3600, 12)
		gone := false
		v.status = func(r *http.Request) int {
			if gone && r.Header.Get("Authorization") == "Bearer old" {
				return http.StatusUnauthorized
			}
			return http.StatusOK
		}
		limits := NewLimits()
		a := accountOf(t, v, limits, refillRules, &guarded{Secrets: &rotating{[]string{"old", "new"}}}, nil)
		a.get(t.Context(), "first")
		v.mu.Lock()
		gone = true
		v.mu.Unlock()
		if took := atOnce(20, func(int) { a.get(started(t.Context()), "x") }); took < 8*time.Second || v.refused() > 0 {
			t.Errorf("took %s, %d refused", took, v.refused())
		}
		seen := map[*Limiter]bool{}
		for _, l := range limits.limiters {
			seen[l] = true
		}
		if len(limits.limiters) != 2 || len(seen) != 1 {
			t.Errorf("%d tokens with %d limiters", len(limits.limiters), len(seen))
		}
	})
}

// TestHoldingBackIsSaidOnce, in numbers, and again after a while without.
func TestHoldingBackIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		}
		v := bucket(3600, 60)
		v.mangle = func(h http.Header) { h.Set("X-Correlation-Id", "evil\nline") }
		a := accountOf(t, v, NewLimits(), refillRules, &fixedSecrets{value: "s3cr3t"}, log)
		a.get(t.Context(), "first")
		if got := lines(); got[0] != "" {
			t.Errorf("said before anything was held back: %q", got)
		}
		atOnce(20, func(int) { a.get(t.Context(), "x") })
		got := lines()
		if len(got) != 1 || !strings.Contains(got[0], "level=INFO") || !strings.Contains(got[0], "host=api.example.com") ||
			!strings.Contains(got[0], "remaining=58") || !strings.Contains(got[0], "limit_per_hour=3600") ||
			!strings.Contains(got[0], `goes_on="one request every 1s"`) || strings.Contains(got[0], "s3cr3t") {
			t.Errorf("said %q", got)
		}
		// A refusal is another matter, and said too, once.
		v.dry = true
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		atOnce(20, func(int) { _ = a.call(started(ctx), http.MethodGet, "x") })
		if got = lines(); len(got) != 1 || !strings.Contains(got[0], "level=WARN") || !strings.Contains(got[0], "next_in=") {
			t.Errorf("said %q", got)
		}
		v.dry = false
		_ = Sleep(t.Context(), 2*quiet)
		v.others(200)
		atOnce(20, func(int) { a.get(t.Context(), "x") })
		if got = lines(); len(got) == 0 || got[0] == "" {
			t.Error("nothing said after a while without")
		}
	})
}

// TestHeadersStayOutOfTheLog: what an answer says comes into the log as numbers only.
func TestHeadersStayOutOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		v := bucket(60, 2)
		n := 0
		v.mangle = func(h http.Header) {
			if n++; n < 3 {
				return
			}
			for _, k := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"} {
				h[http.CanonicalHeaderKey(k)] = []string{"1\nlevel=ERROR msg=forged"}
			}
		}
		a := accountOf(t, v, NewLimits(), refillRules, &fixedSecrets{value: "s3cr3t"}, log)
		for range 5 {
			a.get(t.Context(), "x")
		}
		if out.Len() == 0 || strings.Contains(out.String(), "forged") {
			t.Errorf("logged %q", out.String())
		}
	})
}
