// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestClassification(t *testing.T) {
	type want struct {
		code                 backends.Code
		reason               backends.Reason
		retryable, ambiguous bool
		after                time.Duration
		in                   string // part of the message
	}
	const html = "<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"
	tests := map[string]struct {
		answer answer
		want   want
	}{
		"gone":             {refusal(404, "not_found", "The resource you were accessing could not be found."), want{code: backends.NotFound}},
		"404 of a proxy":   {answer{status: 404, contentType: "text/html", body: "<h1>nothing here</h1>"}, want{code: backends.ProviderError, in: "404"}},
		"404, other JSON":  {jsonAnswer(404, `{"message":"Not Found"}`), want{code: backends.ProviderError}},
		"404, broken JSON": {jsonAnswer(404, `{"id":"not_found"`), want{code: backends.ProviderError}},
		"bad token":        {refusal(401, "unauthorized", "Unable to authenticate you."), want{code: backends.ProviderError, reason: backends.ReasonCredentials, in: "Unable to authenticate you (unauthorized)"}},
		"401 without JSON": {answer{status: 401}, want{code: backends.ProviderError, reason: backends.ReasonCredentials}},
		"scope":            {refusal(403, "forbidden", "You do not have access for the attempted action."), want{code: backends.ProviderError, reason: backends.ReasonPermission}},
		"403 without JSON": {answer{status: 403, body: "blocked"}, want{code: backends.ProviderError, reason: backends.ReasonPermission}},
		"capacity limit":   {refusal(403, "forbidden", "failed to create volume: volume/snapshot capacity limit exceeded"), want{code: backends.ProviderError, reason: backends.ReasonQuota}},
		"Droplet limit":    {refusal(422, "unprocessable_entity", "creating this/these droplet(s) will exceed your droplet limit"), want{code: backends.ProviderError, reason: backends.ReasonQuota}},
		"no room":          {refusal(422, "unprocessable_entity", "Size is not available in this region."), want{code: backends.ProviderError, reason: backends.ReasonCapacity}},
		"region closed":    {refusal(422, "unprocessable_entity", "Region is not available"), want{code: backends.ProviderError, reason: backends.ReasonCapacity}},
		"pending event":    {refusal(422, "unprocessable_entity", "Droplet already has a pending event."), want{code: backends.ProviderError, reason: backends.ReasonLocked, retryable: true}},
		"invalid":          {refusal(422, "unprocessable_entity", "Name is invalid"), want{code: backends.ProviderError, reason: backends.ReasonInvalid, in: "Name is invalid"}},
		"malformed":        {refusal(400, "bad_request", "malformed"), want{code: backends.ProviderError, reason: backends.ReasonInvalid}},
		"conflict":         {refusal(409, "conflict", "already exists"), want{code: backends.ProviderError, in: "already exists (conflict)"}},
		"another form":     {jsonAnswer(412, `{"code":"failed_precondition","message":"active snapshots exist"}`), want{code: backends.ProviderError, in: "active snapshots exist (failed_precondition)"}},
		"server error":     {refusal(500, "server_error", "Unexpected server-side error"), want{code: backends.ProviderError, ambiguous: true}},
		"unavailable":      {answer{status: 503, contentType: "text/plain", body: "Server Temporarily Unavailable"}, want{code: backends.ProviderError, ambiguous: true, in: "503"}},
		"HTML 502":         {answer{status: 502, contentType: "text/html", body: html}, want{code: backends.ProviderError, ambiguous: true, in: "status 502 (Bad Gateway) without an explanation"}},
		"408":              {answer{status: 408}, want{code: backends.ProviderError, ambiguous: true}},
		"redirect":         {answer{status: 302, header: map[string]string{"Location": "https://elsewhere.test"}}, want{code: backends.ProviderError, in: "redirect"}},
		"hourly limit":     {answer{status: 429, header: map[string]string{"Ratelimit-Reset": "1764514800"}}, want{code: backends.RateLimited, retryable: true}},
		"burst limit": {
			answer{status: 429, contentType: "application/json", body: `{"id":"too_many_requests","message":"API rate limit exceeded."}`, header: map[string]string{"Retry-After": "17"}},
			want{code: backends.RateLimited, retryable: true, after: 17 * time.Second},
		},
		"absurd retry-after":   {answer{status: 429, header: map[string]string{"Retry-After": "99999999999"}}, want{code: backends.RateLimited, retryable: true, after: time.Hour}},
		"negative retry-after": {answer{status: 429, header: map[string]string{"Retry-After": "-5"}}, want{code: backends.RateLimited, retryable: true}},
		"a volume's snapshots": {
			refusal(429, "too_many_requests", "failed to create snapshot: this operation is rate-limited - one request per 10m0s"),
			want{code: backends.RateLimited, after: 10 * time.Minute, in: "one request per 10m0s"},
		},
		"200, empty":        {jsonAnswer(200, ""), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, empty object": {jsonAnswer(200, "{}"), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, null":         {jsonAnswer(200, "null"), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, HTML":         {answer{status: 200, contentType: "text/html", body: "<html>login</html>"}, want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, wrong types":  {jsonAnswer(200, `{"droplet":{"id":"4711","status":7}}`), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, another id":   {jsonAnswer(200, `{"droplet":{"id":4712}}`), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"connection lost":   {answer{err: io.ErrUnexpectedEOF}, want{code: backends.ProviderError, reason: backends.ReasonUnreachable, ambiguous: true, in: "DigitalOcean can't be reached"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{"X-Request-Id": "req-1"}
			maps.Copy(header, tt.answer.header)
			tt.answer.header = header
			c := scripted(t, always(tt.answer))
			// One try: the classification alone, without the retry policy.
			var body dropletAnswer
			err := c.try(t.Context(), "Reading Droplet 4711", request{method: http.MethodGet, path: at("droplets", 4711)}, &body,
				func() bool { return body.Droplet != nil && body.Droplet.ID == 4711 })
			e := wantError(t, err)
			if e.Code != tt.want.code || e.Reason != tt.want.reason || e.Retryable != tt.want.retryable ||
				e.Ambiguous != tt.want.ambiguous || e.RetryAfter != tt.want.after {
				t.Errorf("got %+v, want %+v", e, tt.want)
			}
			if !strings.HasPrefix(e.Message, "Reading Droplet 4711: ") || !strings.HasSuffix(e.Message, ".") || !strings.Contains(e.Message, tt.want.in) {
				t.Errorf("message %q, want one sentence with %q", e.Message, tt.want.in)
			}
			if strings.ContainsAny(e.Message, "<>") {
				t.Errorf("HTML in the message: %s", e.Message)
			}
			if tt.answer.err == nil {
				if e.Details["status"] != tt.answer.status || e.Details["request_id"] != "req-1" || strings.Contains(e.Message, "req-1") {
					t.Errorf("details %v, message %q", e.Details, e.Message)
				}
			}
		})
	}
}

// The words that decide are the API's, not those of what is being done: a Droplet
// may be called already-taken.
func TestSaysLooksAtTheAPIsWordsOnly(t *testing.T) {
	c := scripted(t, always(refusal(422, "unprocessable_entity", "Name is invalid")))
	err := c.tell(t.Context(), "Tagging Droplet already-taken", request{method: http.MethodPost, path: at("tags")})
	if says(err, 422, "already", "taken") || !says(err, 422, "is invalid") || says(err, 409, "is invalid") {
		t.Errorf("got %v", err)
	}
}

func TestRateLimitReportsTheReset(t *testing.T) {
	n := &note{status: http.StatusTooManyRequests, header: http.Header{"Ratelimit-Reset": {"1764514800"}}}
	if e := wantError(t, refused("Listing", n)); e.Details["reset"] != "2025-11-30T15:00:00Z" {
		t.Errorf("got %v", e.Details)
	}
}

func TestSecretThatCannotBeResolved(t *testing.T) {
	refusal := backends.Errorf(backends.InvalidConfig, "DIGITALOCEAN_TOKEN is not set.")
	refusal.Reason = backends.ReasonSecret
	s := always(jsonAnswer(200, "{}"))
	err := clientOf(t, s, &fixedSecrets{err: refusal}).Prove(t.Context())
	if e := wantError(t, err); e.Reason != backends.ReasonSecret || len(s.requests) != 0 {
		t.Errorf("got %v after %v", e, s.requests)
	}
}

func TestEveryTryAuthorizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		s := &script{}
		s.answer = func(r *http.Request, nth int) answer {
			seen = append(seen, r.Header.Get("Authorization"))
			if !strings.Contains(r.Header.Get("User-Agent"), "bettercompute-test/1.0.0") {
				t.Errorf("user agent %q", r.Header.Get("User-Agent"))
			}
			if nth == 1 {
				return answer{status: 502}
			}
			return refusal(401, "unauthorized", "Unable to authenticate you.")
		}
		secrets := &fixedSecrets{token: testToken}
		e := wantError(t, clientOf(t, s, secrets).Prove(t.Context()))
		if len(seen) != 2 || seen[0] != "Bearer "+testToken || seen[1] != seen[0] || secrets.forgotten != 1 {
			t.Errorf("%d requests, forgotten %d times", len(seen), secrets.forgotten)
		}
		if e.Reason != backends.ReasonCredentials {
			t.Errorf("got %v", e)
		}
	})
}

func TestRetries(t *testing.T) {
	good := jsonAnswer(201, `{"action":{"id":9,"type":"power_on","status":"in-progress","resource_id":4711,"resource_type":"droplet"}}`)
	t.Run("a pending event is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answer: func(_ *http.Request, nth int) answer {
				if nth <= 8 {
					return refusal(422, "unprocessable_entity", "Droplet already has a pending event.")
				}
				return good
			}}
			err := scripted(t, s).Power(t.Context(), backends.Machine{ID: "4711"}, backends.PowerOn)
			if err != nil || len(s.requests) != 9 {
				t.Errorf("%d requests, %v", len(s.requests), err)
			}
		})
	})
	t.Run("an unreachable API is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := always(answer{err: errors.New("connection refused")})
			_, err := scripted(t, s).GetMachine(t.Context(), "4711")
			if e := wantError(t, err); e.Reason != backends.ReasonUnreachable || len(s.requests) != 5 {
				t.Errorf("%d requests, %v", len(s.requests), err)
			}
		})
	})
	t.Run("an hourly limit is waited for, without a storm", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := &script{answer: func(*http.Request, int) answer {
				if time.Since(start) < 10*time.Minute {
					return answer{status: 429, header: map[string]string{"Ratelimit-Reset": "4102444800"}}
				}
				return good
			}}
			err := scripted(t, s).Power(t.Context(), backends.Machine{ID: "4711"}, backends.PowerOff)
			if n := len(s.requests); err != nil || n > 50 {
				t.Errorf("%d requests, %v", n, err)
			}
		})
	})
	t.Run("a burst limit is waited for as told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answer: func(_ *http.Request, nth int) answer {
				if nth == 1 {
					return answer{status: 429, header: map[string]string{"Retry-After": "20"}}
				}
				return good
			}}
			start := time.Now()
			err := scripted(t, s).Power(t.Context(), backends.Machine{ID: "4711"}, backends.PowerOff)
			if waited := time.Since(start); err != nil || waited < 20*time.Second || waited > 25*time.Second {
				t.Errorf("waited %v, %v", waited, err)
			}
		})
	})
}

// When little is left of the hour, requests go out no faster than it refills; as
// long as there is enough they all go at once.
func TestSlowsDownBeforeTheWall(t *testing.T) {
	for remaining, want := range map[string]time.Duration{"4000": 0, "12": 20 * 720 * time.Millisecond, "": 0} {
		synctest.Test(t, func(t *testing.T) {
			s := always(answer{
				status: 200, contentType: "application/json", body: `{"droplet":{"id":4711}}`,
				header: map[string]string{"Ratelimit-Limit": "5000", "Ratelimit-Remaining": remaining},
			})
			c := scripted(t, s)
			start := time.Now()
			for range 22 { // the first tells how much is left, the second goes at once
				if _, err := c.GetMachine(t.Context(), "4711"); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start); took != want {
				t.Errorf("%q left: took %v, want %v", remaining, took, want)
			}
		})
	}
}

func TestPathOfTheEndpointIsKept(t *testing.T) {
	for _, endpoint := range []string{"https://proxy.test/do", "https://proxy.test"} {
		s := always(jsonAnswer(200, `{"vpc":{"id":"760e09ef-dc84-11e8-981e-3cfdfeaae000","region":"fra1"}}`))
		c := clientOf(t, s, &fixedSecrets{token: testToken}, backends.Values{"endpoint": endpoint})
		if _, err := c.fetchReferred(t.Context(), referred{vpcKind, "760e09ef-dc84-11e8-981e-3cfdfeaae000"}); err != nil {
			t.Fatal(err)
		}
		want := "GET " + strings.TrimPrefix(endpoint, "https://proxy.test") + "/v2/vpcs/760e09ef-dc84-11e8-981e-3cfdfeaae000"
		if s.requests[0] != want {
			t.Errorf("got %s, want %s", s.requests[0], want)
		}
	}
}
