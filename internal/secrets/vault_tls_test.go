// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Vault's token isn't sent to a server whose certificate nobody vouches for, nor to one
// that speaks no TLS newer than 1.1, even if its certificate is the right one.
func TestVaultInsistsOnTLS(t *testing.T) {
	for name, test := range map[string]struct {
		newest  uint16
		trusted bool
		want    string
	}{
		"self-signed": {tls.VersionTLS13, false, "certificate"},
		"TLS 1.1":     {tls.VersionTLS11, true, "can't be reached"},
		"a good one":  {tls.VersionTLS13, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			clearVaultEnvironment(t)
			var asked atomic.Int64
			vault := newFakeVault()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				vault.ServeHTTP(w, r)
			}))
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: test.newest}
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			t.Cleanup(server.Close)
			if test.trusted {
				file := filepath.Join(t.TempDir(), "ca.pem")
				text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				t.Setenv("VAULT_CACERT", file)
			}
			r := mustNew(t, Config{Vault: VaultConfig{Address: server.URL, Token: "t0k3n"}})
			_, err := r.Resolve(t.Context(), "vault://secret/app#token")
			if test.want == "" {
				if err != nil || asked.Load() == 0 {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if n := asked.Load(); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}
