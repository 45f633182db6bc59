// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
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
