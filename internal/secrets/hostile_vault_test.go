// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// A redirect to another server, which Vault's client would follow with the token.
func TestVaultTokenFollowsNoRedirect(t *testing.T) {
	clearVaultEnvironment(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request came, with the token %q", r.Header.Get("X-Vault-Token"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for name, to := range map[string]string{"another server": elsewhere.URL + "/v1/x", "no address": "", "no url": "http://[::1"} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Location"] = []string{to}
				w.WriteHeader(status)
			}))
			r := mustNew(t, Config{Vault: VaultConfig{Address: server.URL, Token: "t0k3n"}})
			e := wantFailure(t, r, "vault://secret/app#token", "redirects", "not sent")
			if e.Retryable || strings.Contains(e.Error(), "t0k3n") {
				t.Errorf("%d to %s: %v", status, name, e)
			}
			server.Close()
		}
	}
}

// One to the same server is followed, as Vault's own tools do.
func TestVaultRedirectOnTheSameServer(t *testing.T) {
	clearVaultEnvironment(t)
	f := newFakeVault()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/old/"); ok {
			http.Redirect(w, r, "/"+rest, http.StatusTemporaryRedirect)
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer server.Close()
	wantValue(t, mustNew(t, Config{Vault: VaultConfig{Address: server.URL + "/old", Token: "t0k3n"}}), "vault://secret/app#token", "S3CR3T")
}

// hostileVault answers everything with one body.
type hostileVault struct {
	status int
	body   io.Reader
}

func (h hostileVault) RoundTrip(r *http.Request) (*http.Response, error) {
	body := h.body
	if d, ok := body.(*slowly); ok {
		d.ctx = r.Context()
	}
	return &http.Response{
		StatusCode: h.status, Status: fmt.Sprintf("%d \x1b[31mt0k3n", h.status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(body), ContentLength: -1, Request: r,
	}, nil
}

// slowly is a body that drips.
type slowly struct {
	ctx context.Context //nolint:containedctx // A body ends with its request.
}

func (s *slowly) Read(p []byte) (int, error) {
	if err := backends.Sleep(s.ctx, 10*time.Second); err != nil {
		return 0, err
	}
	p[0] = ' '
	return 1, nil
}

func TestHostileVaultAnswers(t *testing.T) {
	clearVaultEnvironment(t)
	const evil = `x\n\r\u001b[31m\u202e\u2028t0k3n`
	bodies := map[string]func() io.Reader{
		"drips": func() io.Reader { return &slowly{} },
		"50 MiB": func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"data":{"a":"`), io.LimitReader(endless{}, 50<<20))
		},
	}
	for name, text := range map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "a text": `"x"`, "a page": "<html>\x1b[31mt0k3n", "half": `{"data":{"data":{"token":`,
		"no UTF-8": "\xff\xfe", "deep": strings.Repeat(`{"data":`, 100_000), "deep lists": `{"data":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}",
		"wrong types": `{"data":{"path":7,"type":[],"options":"x","metadata":7,"data":[]},"errors":{}}`, "data is null": `{"data":null}`,
		"a huge number": `{"data":{"type":"kv","path":"secret/","options":{"version":1e999999999},"token":1e999999999,"metadata":{"version":1e999999999}}}`,
		"errors":        `{"errors":["` + evil + `"]}`, "warnings": `{"warnings":["` + evil + `"],"data":{"type":"` + evil + `"}}`,
		"an evil version": `{"data":{"type":"kv","path":"` + evil + `","options":{"version":"2"},"metadata":{"version":"` + evil + `"}}}`,
		"an evil value":   `{"data":{"type":"kv","path":"secret/","options":{"version":"1"},"token":"` + evil + `"}}`,
	} {
		bodies[name] = func() io.Reader { return strings.NewReader(text) }
	}
	for name, body := range bodies {
		for _, status := range []int{200, 204, 400, 403, 404, 429, 473, 500, 503, 999} {
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, Config{Vault: VaultConfig{Address: "http://vault.invalid", Token: "t0k3n", Transport: hostileVault{status, body()}}})
				begun := time.Now()
				value, err := r.Resolve(t.Context(), "vault://secret/app#token")
				if took := time.Since(begun); took > 2*vaultTimeout+time.Second {
					t.Errorf("%s, %d: it took %s", name, status, took)
				}
				problem(t, fmt.Sprintf("%s, %d", name, status), value, err)
				time.Sleep(2 * vaultMemory) // what is remembered goes
			})
		}
	}
}

// problem holds the outcome of a resolution to what is promised.
func problem(t *testing.T, name, value string, err error) {
	t.Helper()
	e := backends.AsError(err)
	switch {
	case err == nil:
		if value == "" || strings.ContainsFunc(value, unicode.IsControl) && !strings.HasPrefix(value, "-----BEGIN ") {
			t.Errorf("%s: the value is %q", name, value)
		}
	case e == nil || e.Code != backends.InvalidConfig || e.Reason != backends.ReasonSecret:
		t.Errorf("%s: %T %v", name, err, err)
	case strings.Contains(e.Error()+e.Remedy, "t0k3n") || strings.ContainsFunc(e.Error()+e.Remedy, unicode.IsControl) || len(e.Error()) > 2000:
		t.Errorf("%s: %.300q", name, e.Error()+e.Remedy)
	}
}

// Whatever a Vault answers when it is asked for the mount, and then for the secret.
func FuzzVaultAnswer(f *testing.F) {
	for _, status := range []int{200, 403, 404} {
		f.Add(status, `{"data":{"path":"secret/","type":"kv","options":{"version":"2"}}}`, `{"data":{"data":{"token":"x"},"metadata":{"version":1}}}`)
		f.Add(status, `{"data":{"path":"secret/","type":"kv","options":null}}`, `{"data":{"token":12e3}}`)
		f.Add(status, `{"errors":[]}`, `{"data":{"data":null,"metadata":{"destroyed":true,"version":7}}}`)
		f.Add(status, `null`, `{"data":{"token":"-----BEGIN x\n\u0000"}}`)
		f.Add(status, `{"data":{"path":"//","type":"generic"}}`, `[[[`)
	}
	f.Fuzz(func(t *testing.T, status int, mount, secret string) {
		if status < 100 || status > 999 {
			return
		}
		clearVaultEnvironment(t)
		answers := roundTripper(func(r *http.Request) (*http.Response, error) {
			body := secret
			if strings.Contains(r.URL.Path, "/sys/internal/") {
				body = mount
			}
			return hostileVault{status, strings.NewReader(body)}.RoundTrip(r)
		})
		synctest.Test(t, func(t *testing.T) {
			r := mustNew(t, Config{Vault: VaultConfig{Address: "http://vault.invalid", Token: "t0k3n-t0k3n", Transport: answers}})
			value, err := r.Resolve(t.Context(), "vault://secret/app#token")
			if err != nil {
				value = ""
			}
			if e := backends.AsError(err); err != nil && (e == nil || e.Code != backends.InvalidConfig) || err == nil && value == "" {
				t.Errorf("%q, %T %v", value, err, err)
			}
			time.Sleep(2 * vaultMemory)
		})
	})
}
