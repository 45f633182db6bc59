// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// fixedSecrets resolves every reference to one value.
type fixedSecrets struct {
	value     string
	forgotten int
}

func (s *fixedSecrets) Resolve(context.Context, string) (string, error) { return s.value, nil }
func (s *fixedSecrets) Forget(string)                                   { s.forgotten++ }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCredentialGoesToTheEndpointOnly(t *testing.T) {
	endpoint, err := url.Parse("https://api.example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	secrets := &fixedSecrets{value: "s3cr3t"}
	sent, status := 0, http.StatusOK
	client := NewClient(Authorize(roundTrip(func(r *http.Request) (*http.Response, error) {
		sent++
		if r.Header.Get("Authorization") != "Bearer s3cr3t" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		answer := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}
		if status == http.StatusFound {
			answer.Header.Set("Location", "https://evil.example.com/")
		}
		return answer, nil
	}), secrets, "env://T", endpoint, func(c string) (string, string) { return "Authorization", "Bearer " + c }))

	get := func(target string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if answer != nil {
			_ = answer.Body.Close()
		}
		return answer, err
	}
	if _, err := get("https://api.example.com/v1/servers"); err != nil || sent != 1 {
		t.Fatalf("%v, %d sent", err, sent)
	}
	for _, elsewhere := range []string{"https://evil.example.com/v1/servers", "http://api.example.com/v1/servers", "https://api.example.com:444/"} {
		if _, err := get(elsewhere); err == nil || sent != 1 {
			t.Errorf("%s: %v, %d sent", elsewhere, err, sent)
		}
	}
	status = http.StatusFound
	if answer, err := get("https://api.example.com/v1/servers"); err != nil || answer.StatusCode != http.StatusFound || sent != 2 {
		t.Errorf("a redirect: %v, %d sent", err, sent)
	}
	status = http.StatusUnauthorized
	if _, err := get("https://api.example.com/v1/servers"); err != nil || secrets.forgotten != 1 {
		t.Errorf("401: %v, forgotten %d times", err, secrets.forgotten)
	}
}

func TestTransportErrorTellsWhatHappened(t *testing.T) {
	err := TransportError(t.Context(), "Acme", &url.Error{Op: "Get", URL: "https://user:pw@host/?token=x", Err: io.ErrUnexpectedEOF})
	e := AsError(err)
	if e == nil || e.Reason != ReasonUnreachable || !e.Ambiguous || strings.Contains(err.Error(), "pw") || strings.Contains(err.Error(), "token=") {
		t.Errorf("got %v", err)
	}
	inner := Errorf(InvalidConfig, "no secret")
	if got := TransportError(t.Context(), "Acme", &url.Error{Err: inner}); AsError(got) != inner {
		t.Errorf("got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := TransportError(ctx, "Acme", &url.Error{Err: context.Canceled}); !errors.Is(got, context.Canceled) {
		t.Errorf("got %v", got)
	}
}

// A proxy's password is in the text of the error that a malformed address causes,
// in whole or, as an "invalid port", in part: golang.org/x/net/http/httpproxy's form.
func TestTransportErrorHidesAProxysPassword(t *testing.T) {
	for _, proxy := range []string{
		"http://user:s3cr3t pw@proxy.example:3128", "http://user:s3cr3t@proxy.example:port", "http://user:s3cr3t/x@proxy.example",
		"http://user:s3cr3t%zz@proxy.example", "socks5://user:s3cr3t@[::1",
	} {
		_, problem := url.Parse(proxy)
		if problem == nil {
			t.Errorf("%s is a good url", proxy)
			continue
		}
		for _, cause := range []error{
			fmt.Errorf("invalid proxy address %q: %v", proxy, problem), //nolint:errorlint // As it is done there.
			fmt.Errorf("proxyconnect tcp: %w", problem),
		} {
			got := TransportError(t.Context(), "Acme", &url.Error{Op: "Get", URL: "https://api.example.com", Err: cause}).Error()
			if strings.Contains(got, "s3cr3t") || strings.Contains(got, "zz") {
				t.Errorf("%s: %s", proxy, got)
			}
		}
	}
}

func TestWithoutUserinfo(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"plain: words":                         "plain: words",
		`parse "https://user:p w@host/x": bad`: `parse "https://…@host/x": bad`,
		`dial https://user:pw@host:443/a, then http://b`: `dial https://…@host:443/a, then http://b`,
		`user:pw@host`:                         `…@host`,
		`"http://u:p\"q@host" x`:               `"http://…@host" x`,
		"http://u:p@a@host":                    "http://…@host",
		"lookup api.example.com: no such host": "lookup api.example.com: no such host",
	} {
		if got := WithoutUserinfo(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLoggedLeavesOutWhatMayBeSecret(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := NewClient(Logged(roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTeapot, Body: io.NopCloser(strings.NewReader("s3cr3t-body")), Request: r}, nil
	}), log))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/servers?q=s3cr3t-query", strings.NewReader("s3cr3t-sent"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer s3cr3t-header")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	line := out.String()
	if !strings.Contains(line, "POST") || !strings.Contains(line, "/v1/servers") || !strings.Contains(line, "418") || strings.Contains(line, "s3cr3t") {
		t.Errorf("logged %q", line)
	}
}

// rotating gives another value after each Forget.
type rotating struct{ values []string }

func (s *rotating) Resolve(context.Context, string) (string, error) { return s.values[0], nil }
func (s *rotating) Forget(string) {
	if len(s.values) > 1 {
		s.values = s.values[1:]
	}
}

func TestRotatedCredentialIsTriedOnce(t *testing.T) {
	endpoint, err := url.Parse("https://api.example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		values []string
		sent   int
		status int
	}{
		"rotated":            {[]string{"old", "new"}, 2, http.StatusOK},
		"rotated, also bad":  {[]string{"old", "older", "new"}, 2, http.StatusUnauthorized},
		"the same as before": {[]string{"old"}, 1, http.StatusUnauthorized},
	} {
		sent := 0
		client := NewClient(Authorize(roundTrip(func(r *http.Request) (*http.Response, error) {
			sent++
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != "body" {
				t.Errorf("%s: try %d sent %q, %v", name, sent, body, err)
			}
			status := http.StatusUnauthorized
			if r.Header.Get("Authorization") == "new" {
				status = http.StatusOK
			}
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
		}), &rotating{test.values}, "vault://kv/t#v", endpoint, func(c string) (string, string) { return "Authorization", c }))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/servers", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = answer.Body.Close()
		if sent != test.sent || answer.StatusCode != test.status {
			t.Errorf("%s: sent %d times, status %d", name, sent, answer.StatusCode)
		}
	}
}
