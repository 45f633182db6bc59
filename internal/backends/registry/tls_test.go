// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package registry_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
)

// No cloud's client talks to a server whose certificate nobody vouches for, or to one
// that speaks no TLS newer than 1.1, however its certificate is looked at.
func TestClientsInsistOnTLS(t *testing.T) {
	known, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		newest uint16
		want   string
	}{
		"self-signed": {tls.VersionTLS13, "certificate"},
		"TLS 1.1":     {tls.VersionTLS11, "protocol version"},
	} {
		var asked atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: test.newest}
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		t.Cleanup(server.Close)
		leaf := server.Certificate().Raw
		pin := sha256.Sum256(leaf)
		for account, more := range map[string]map[string]backends.Values{
			"hetzner-cloud": {"": {"endpoint": server.URL + "/v1"}},
			"digitalocean":  {"": {"endpoint": server.URL, "region": "fra1"}},
			"proxmox": {
				"": {"url": server.URL}, "pinned": {"url": server.URL, "tls_fingerprint": hex.EncodeToString(pin[:])},
				"with a CA": {"url": server.URL, "ca_certificate": base64.RawURLEncoding.EncodeToString(leaf)},
				"insecure":  {"url": server.URL, "insecure": true},
			},
		} {
			for how, values := range more {
				if how != "" && name == "self-signed" {
					continue // the account vouches for it
				}
				definition, ok := known.Lookup(account)
				if !ok {
					t.Fatalf("no cloud %s", account)
				}
				values["token"] = "env://TOKEN"
				var carrier http.RoundTripper // what carries the backend's requests: past it are retries, which take long
				_, err := definition.Create(backends.WithDefaults(definition.Manifest.Account, values), backends.Environment{
					Secrets: secrets{}, Log: slog.New(slog.DiscardHandler),
					Wrap: func(base http.RoundTripper) http.RoundTripper { carrier = base; return base },
				})
				if err != nil || carrier == nil {
					t.Fatal(account, carrier, err)
				}
				if err := send(t, carrier, server.URL); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s, %s %s: %v", name, account, how, err)
				}
			}
		}
		if n := asked.Load(); n != 0 {
			t.Errorf("%s: %d requests were sent", name, n)
		}
		// The server itself works, for whoever doesn't mind.
		careless := server.Client().Transport.(*http.Transport).Clone()
		careless.TLSClientConfig.MinVersion = tls.VersionTLS10
		if err := send(t, careless, server.URL); err != nil {
			t.Errorf("%s: the server can't be reached at all: %v", name, err)
		}
	}
}

func send(t *testing.T, carrier http.RoundTripper, address string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := carrier.RoundTrip(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Body.Close()
}
