// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// TestTLS connects to a server whose certificate no system trusts, in each of the
// ways that an account has.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("%s, which has no reason phrase", r.Proto)
		}
		_, _ = w.Write([]byte(`{"data":{"version":"9.2.11"}}`))
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	leaf := server.Certificate()
	sum := sha256.Sum256(leaf.Raw)
	pin := hex.EncodeToString(sum[:])
	var colons []string
	for i := 0; i < len(pin); i += 2 {
		colons = append(colons, strings.ToUpper(pin[i:i+2]))
	}
	other := sha256.Sum256([]byte("other"))
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}))
	secrets := &fixedSecrets{token: testToken, known: map[string]string{"env://CA": text, "env://NONSENSE": "-----BEGIN hunter2", "env://DER": base64.StdEncoding.EncodeToString(leaf.Raw)}}
	for name, test := range map[string]struct {
		account backends.Values
		good    bool
	}{
		"system roots":       {backends.Values{}, false},
		"pin":                {backends.Values{"tls_fingerprint": pin}, true},
		"pin with colons":    {backends.Values{"tls_fingerprint": strings.Join(colons, ":")}, true},
		"another pin":        {backends.Values{"tls_fingerprint": hex.EncodeToString(other[:])}, false},
		"CA by reference":    {backends.Values{"ca_certificate": "env://CA"}, true},
		"CA, DER, reference": {backends.Values{"ca_certificate": "env://DER"}, true},
		"CA as it is":        {backends.Values{"ca_certificate": base64.RawURLEncoding.EncodeToString(leaf.Raw)}, true},
		"no CA":              {backends.Values{"ca_certificate": "env://NONSENSE"}, false},
		"insecure":           {backends.Values{"insecure": true}, true},
	} {
		test.account["url"] = server.URL
		err := backendOf(t, nil, secrets, test.account).Prove(t.Context())
		if (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			continue
		}
		e := wantError(t, err)
		if e.Ambiguous || e.Retryable {
			t.Errorf("%s: retried: %+v", name, e)
		}
		if name != "no CA" && !strings.Contains(e.Remedy, "tls_fingerprint") {
			t.Errorf("%s: %s", name, e.Remedy)
		}
	}
	// The authority is right and the host is another.
	moved := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	err := backendOf(t, nil, secrets, backends.Values{"url": moved, "ca_certificate": "env://CA"}).Prove(t.Context())
	if err == nil {
		t.Error("a certificate of another host was taken")
	}
}
