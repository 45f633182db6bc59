// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// refusal is an answer in the API's form for errors.
func refusal(status int, code, message, details string) answer {
	return jsonAnswer(status, `{"error":{"code":"`+code+`","message":"`+message+`","details":`+details+`}}`)
}

func TestClassification(t *testing.T) {
	type want struct {
		code                 backends.Code
		reason               backends.Reason
		retryable, ambiguous bool
		after                time.Duration
		in                   string // part of the message
	}
	tests := map[string]struct {
		answer answer
		want   want
	}{
		"gone":              {refusal(404, "not_found", "server with ID '4711' not found", "null"), want{code: backends.NotFound}},
		"unknown route":     {refusal(404, "not_found", "api route not found", "null"), want{code: backends.ProviderError}},
		"404 of a proxy":    {answer{status: 404, contentType: "text/html", body: "<h1>nothing here</h1>"}, want{code: backends.ProviderError, in: "404"}},
		"404, other JSON":   {jsonAnswer(404, `{"message":"Not Found"}`), want{code: backends.ProviderError}},
		"404, broken JSON":  {jsonAnswer(404, `{"error":{"code":"not_found"`), want{code: backends.ProviderError}},
		"bad token":         {refusal(401, "unauthorized", "the token you have provided is invalid", "null"), want{code: backends.ProviderError, reason: backends.ReasonCredentials, in: "token you have provided"}},
		"401 without JSON":  {answer{status: 401}, want{code: backends.ProviderError, reason: backends.ReasonCredentials}},
		"read-only, old":    {refusal(401, "token_readonly", "token is only allowed to perform GET requests", "null"), want{code: backends.ProviderError, reason: backends.ReasonPermission}},
		"read-only":         {refusal(403, "forbidden", "insufficient permissions", "null"), want{code: backends.ProviderError, reason: backends.ReasonPermission}},
		"403 without JSON":  {answer{status: 403, body: "blocked"}, want{code: backends.ProviderError, reason: backends.ReasonPermission}},
		"quota":             {refusal(403, "resource_limit_exceeded", "server limit exceeded", `{"limits":[{"name":"server_limit"}]}`), want{code: backends.ProviderError, reason: backends.ReasonQuota, in: "server_limit"}},
		"capacity":          {refusal(412, "resource_unavailable", "error during placement", "null"), want{code: backends.ProviderError, reason: backends.ReasonCapacity}},
		"placement":         {refusal(422, "placement_error", "no room", "{}"), want{code: backends.ProviderError, reason: backends.ReasonCapacity}},
		"412, another":      {refusal(412, "brand_new", "wrong version", "{}"), want{code: backends.ProviderError}},
		"locked":            {refusal(423, "locked", "server is locked", "null"), want{code: backends.ProviderError, reason: backends.ReasonLocked, retryable: true}},
		"locked by support": {refusal(423, "resource_locked", "ask support", "null"), want{code: backends.ProviderError, reason: backends.ReasonLocked}},
		"conflict":          {refusal(409, "conflict", "changed meanwhile", "null"), want{code: backends.ProviderError, retryable: true}},
		"maintenance":       {refusal(503, "maintenance", "maintenance", "null"), want{code: backends.ProviderError, retryable: true}},
		"protected":         {refusal(423, "protected", "server is delete protected", "null"), want{code: backends.ProviderError, reason: backends.ReasonProtected}},
		"invalid": {
			refusal(422, "invalid_input", "invalid input in field 'name'", `{"fields":[{"name":"name","messages":["too long","too short"]}]}`),
			want{code: backends.ProviderError, reason: backends.ReasonInvalid, in: "name: too long, too short"},
		},
		"invalid, details {}":     {refusal(422, "invalid_input", "unsupported location for server type", "{}"), want{code: backends.ProviderError, reason: backends.ReasonInvalid, in: "unsupported location for server type"}},
		"invalid, odd details":    {refusal(422, "invalid_input", "bad", `{"fields":"name"}`), want{code: backends.ProviderError, reason: backends.ReasonInvalid}},
		"invalid, details a list": {refusal(422, "invalid_input", "bad", `["x"]`), want{code: backends.ProviderError, reason: backends.ReasonInvalid}},
		"removed endpoint":        {refusal(410, "deprecated_api_endpoint", "removed", `{"announcement":"https://x"}`), want{code: backends.ProviderError}},
		"unknown code":            {refusal(422, "brand_new", "what", "null"), want{code: backends.ProviderError, in: "what (brand_new)"}},
		"server error":            {refusal(500, "server_error", "oops", "null"), want{code: backends.ProviderError, ambiguous: true}},
		"unavailable":             {refusal(503, "unavailable", "later", "null"), want{code: backends.ProviderError, ambiguous: true}},
		"timeout":                 {refusal(504, "timeout", "slow", "null"), want{code: backends.ProviderError, ambiguous: true}},
		"HTML 502":                {answer{status: 502, contentType: "text/html", body: "<html>Bad Gateway</html>"}, want{code: backends.ProviderError, ambiguous: true, in: "502"}},
		"408":                     {answer{status: 408}, want{code: backends.ProviderError, ambiguous: true}},
		"redirect":                {answer{status: 302, contentType: "application/json", body: `{}`, header: map[string]string{"Location": "https://elsewhere.test"}}, want{code: backends.ProviderError, in: "redirect"}},
		"429 without JSON":        {answer{status: 429}, want{code: backends.RateLimited, retryable: true, after: time.Second}},
		"429 of a large project": {
			answer{status: 429, contentType: "application/json", body: `{"error":{"code":"rate_limit_exceeded","message":"limit of 7200 requests per hour reached"}}`, header: map[string]string{"RateLimit-Limit": "7200"}},
			want{code: backends.RateLimited, retryable: true, after: time.Second},
		},
		"429 of a small one": {
			answer{status: 429, header: map[string]string{"RateLimit-Limit": "60", "RateLimit-Reset": "1764514800"}},
			want{code: backends.RateLimited, retryable: true, after: time.Minute},
		},
		"200, empty":        {jsonAnswer(200, ""), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, empty object": {jsonAnswer(200, "{}"), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, null":         {jsonAnswer(200, "null"), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, HTML":         {answer{status: 200, contentType: "text/html", body: "<html>login</html>"}, want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, wrong types":  {jsonAnswer(200, `{"server":{"id":"4711","status":7}}`), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"200, another id":   {jsonAnswer(200, `{"server":{"id":4712}}`), want{code: backends.ProviderError, ambiguous: true, in: "can't be understood"}},
		"connection lost":   {answer{err: io.ErrUnexpectedEOF}, want{code: backends.ProviderError, reason: backends.ReasonUnreachable, ambiguous: true, in: "Hetzner Cloud can't be reached"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.answer.header = withHeader(tt.answer.header, "X-Correlation-Id", "corr-1")
			c := clientOf(t, always(tt.answer), &fixedSecrets{token: testToken})
			// One try: the classification alone, without the retry policy.
			var body struct {
				Server struct {
					ID int64 `json:"id"`
				} `json:"server"`
			}
			got, err := send(t.Context(), c.api, http.MethodGet, "/servers/4711", nil, &body)
			if err == nil && succeeded(got) && body.Server.ID != 4711 {
				err = errNoObject
			}
			e := wantError(t, failure(t.Context(), "Reading server 4711", got, err))
			if e.Code != tt.want.code || e.Reason != tt.want.reason || e.Retryable != tt.want.retryable ||
				e.Ambiguous != tt.want.ambiguous || e.RetryAfter != tt.want.after {
				t.Errorf("got %+v, want %+v", e, tt.want)
			}
			if !strings.HasPrefix(e.Message, "Reading server 4711: ") || !strings.HasSuffix(e.Message, ".") || !strings.Contains(e.Message, tt.want.in) {
				t.Errorf("message %q, want one sentence with %q", e.Message, tt.want.in)
			}
			if tt.answer.err == nil {
				if e.Details["status"] != tt.answer.status || e.Details["correlation_id"] != "corr-1" || strings.Contains(e.Message, "corr-1") {
					t.Errorf("details %v, message %q", e.Details, e.Message)
				}
			}
		})
	}
}

func withHeader(h map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	maps.Copy(out, h)
	return out
}

func TestRateLimitReportsTheReset(t *testing.T) {
	got := &hcloud.Response{Response: &http.Response{StatusCode: http.StatusTooManyRequests}}
	got.Meta.Ratelimit = hcloud.Ratelimit{Limit: 3600, Reset: time.Unix(1764514800, 0)}
	e := wantError(t, refused("Listing", got))
	if e.Details["reset"] != "2025-11-30T15:00:00Z" || e.RetryAfter != time.Second {
		t.Errorf("got %v after %v", e.Details, e.RetryAfter)
	}
}

func TestSecretThatCannotBeResolved(t *testing.T) {
	refusal := backends.Errorf(backends.InvalidConfig, "HCLOUD_TOKEN is not set.")
	refusal.Reason = backends.ReasonSecret
	s := always(jsonAnswer(200, "{}"))
	c := clientOf(t, s, &fixedSecrets{err: refusal})
	err := c.Prove(t.Context())
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
			if nth == 1 {
				return answer{status: 502}
			}
			return refusal(401, "unauthorized", "the token you have provided is invalid", "null")
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
	busy := refusal(423, "locked", "cannot perform operation because server is locked", "null")
	good := jsonAnswer(201, `{"action":{"id":9,"command":"start_server","status":"running","progress":0,"started":"2026-11-30T00:00:00Z","finished":null,"error":null,"resources":[]}}`)
	t.Run("a lock is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answer: func(_ *http.Request, nth int) answer {
				if nth <= 8 {
					return busy
				}
				return good
			}}
			err := clientOf(t, s, &fixedSecrets{token: testToken}).Power(t.Context(), backends.Machine{ID: "4711"}, backends.PowerOn)
			if err != nil || len(s.requests) != 9 {
				t.Errorf("%d requests, %v", len(s.requests), err)
			}
		})
	})
	t.Run("an unreachable API is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := always(answer{err: errors.New("connection refused")})
			_, err := clientOf(t, s, &fixedSecrets{token: testToken}).GetMachine(t.Context(), "4711")
			if e := wantError(t, err); e.Reason != backends.ReasonUnreachable || len(s.requests) != 5 {
				t.Errorf("%d requests, %v", len(s.requests), err)
			}
		})
	})
	t.Run("a rate limit is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answer: func(_ *http.Request, nth int) answer {
				if nth <= 30 {
					return answer{status: 429, header: map[string]string{"RateLimit-Reset": "4102444800"}}
				}
				return good
			}}
			start := time.Now()
			err := clientOf(t, s, &fixedSecrets{token: testToken}).Power(t.Context(), backends.Machine{ID: "4711"}, backends.PowerOff)
			if waited := time.Since(start); err != nil || waited < 30*time.Second || waited > time.Minute {
				t.Errorf("waited %v, %v", waited, err)
			}
		})
	})
}
