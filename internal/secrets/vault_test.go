// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// newFakeVault has a v2 store, a v1 store, a nested v2 store, and an engine that
// is neither.
func newFakeVault() *fakeVault {
	return &fakeVault{
		token: "t0k3n",
		mounts: map[string]fakeMount{
			"secret": {"kv", "2"}, "kv1": {"kv", "1"}, "old": {"generic", ""}, "plain": {"kv", ""},
			"team/kv": {"kv", "2"}, "db": {"database", ""},
		},
		secrets: map[string]any{
			"secret/data/app":       v2(map[string]any{"token": "S3CR3T", "other": "S3CR3T-2", "pin": json.Number("12345678901234567890"), "list": []string{"S3CR3T"}, "flag": true, "null": nil, "lines": "S3CR3T\nx"}),
			"kv1/app":               map[string]any{"token": "S3CR3T-V1"},
			"old/app":               map[string]any{"token": "S3CR3T-OLD"},
			"plain/app":             map[string]any{"token": "S3CR3T-PLAIN"},
			"team/kv/data/deep/app": v2(map[string]any{"token": "S3CR3T-DEEP"}),
			"kv1/data/app":          map[string]any{"token": "S3CR3T-ODD"},
			"db/creds/app":          map[string]any{"token": "S3CR3T-DB"},
		},
		deleted: map[string]string{"secret/data/gone": "deleted", "secret/data/ashes": "destroyed"},
		denied:  map[string]bool{"secret/data/private": true},
	}
}

// clearVaultEnvironment keeps the tests apart from the variables of who runs them.
func clearVaultEnvironment(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "VAULT_") {
			t.Setenv(name, "")
		}
	}
}

func serve(t *testing.T, f *fakeVault) (*Resolver, *httptest.Server) {
	t.Helper()
	clearVaultEnvironment(t)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return mustNew(t, Config{Vault: VaultConfig{Address: server.URL, Namespace: f.namespace, Token: "t0k3n"}}), server
}

func TestVaultReads(t *testing.T) {
	for name, change := range map[string]func(*fakeVault){
		"mounts told":             func(*fakeVault) {},
		"in a namespace":          func(f *fakeVault) { f.namespace = "org/team-a" },
		"namespace in the mounts": func(f *fakeVault) { f.namespace = "org/team-a"; f.reportPrefix = "org/team-a/" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeVault()
			change(f)
			r, _ := serve(t, f)
			for reference, want := range map[string]string{
				"vault://secret/app#token":       "S3CR3T",
				"vault://secret/app#pin":         "12345678901234567890",
				"vault://kv1/app#token":          "S3CR3T-V1",
				"vault://kv1/data/app#token":     "S3CR3T-ODD",
				"vault://old/app#token":          "S3CR3T-OLD",
				"vault://plain/app#token":        "S3CR3T-PLAIN",
				"vault://team/kv/deep/app#token": "S3CR3T-DEEP",
			} {
				wantValue(t, r, reference, want)
			}
			if n := f.count("secret/data/app"); n != 1 {
				t.Errorf("two fields of one secret cost %d reads, want 1", n)
			}
			if n := f.count("sys/internal/ui/mounts/secret/app"); n != 1 {
				t.Errorf("the mount was asked for %d times, want 1", n)
			}
		})
	}
}

func TestVaultReadsWithoutMounts(t *testing.T) {
	f := newFakeVault()
	f.hideMounts = true
	r, _ := serve(t, f)
	wantValue(t, r, "vault://secret/app#token", "S3CR3T")
	wantValue(t, r, "vault://kv1/app#token", "S3CR3T-V1") // kv1/data/app exists and isn't v2
	wantValue(t, r, "vault://old/app#token", "S3CR3T-OLD")
	wantFailure(t, r, "vault://secret/none#token", "no secret there")
	wantFailure(t, r, "vault://secret/private#token", "no secret there") // what v1's path says
	wantFailure(t, r, "vault://secret/gone#token", "deleted")
	f.set(func(f *fakeVault) { f.denied["secret/private"] = true })
	wantFailure(t, r, "vault://secret/private#token", "denies the permission")
	// A policy of v1 paths alone: the v2 path is 403, not 404.
	f.set(func(f *fakeVault) {
		f.denied["old/data/v1only"] = true
		f.secrets["old/v1only"] = map[string]any{"token": "x"}
	})
	wantValue(t, r, "vault://old/v1only#token", "x")
}

func TestVaultFailures(t *testing.T) {
	f := newFakeVault()
	r, server := serve(t, f)
	for reference, words := range map[string][]string{
		"vault://secret/app#nope":      {"no field \"nope\"", "vault kv get secret/app"},
		"vault://secret/app#list":      {"not a text"},
		"vault://secret/app#flag":      {"not a text"},
		"vault://secret/app#null":      {"not a text"},
		"vault://secret/app#lines":     {"line break"},
		"vault://secret/none#token":    {"vault://secret/none", "no secret there", "without data/"},
		"vault://secret/data/app#x":    {"no secret there", "without data/"},
		"vault://kv1/none#token":       {"no secret there"},
		"vault://secret/gone#token":    {"deleted", "undelete -versions=3 secret/gone"},
		"vault://secret/ashes#token":   {"destroyed", "kv put secret/ashes"},
		"vault://secret/private#token": {"denies the permission", "policies"},
		"vault://nowhere/app#token":    {"vault://nowhere/app"},
		"vault://db/creds/app#token":   {"not a key/value store"},
	} {
		if e := wantFailure(t, r, reference, words...); e.Retryable {
			t.Errorf("%s: retryable", reference)
		}
	}
	if n := f.count("db/creds/app"); n != 0 {
		t.Errorf("an engine that makes credentials was read %d times", n)
	}

	f.set(func(f *fakeVault) { f.sealed = true })
	if e := wantFailure(t, r, "vault://kv1/app#token", "sealed", "Unseal", server.URL); e.Retryable {
		t.Error("sealed: retryable")
	}
	f.set(func(f *fakeVault) { f.sealed = false; f.status = 502 })
	if e := wantFailure(t, r, "vault://kv1/app#token", "answers 502", server.URL); !e.Retryable {
		t.Error("502: not retryable")
	}
	if n := f.count("sys/internal/ui/mounts/kv1/app"); n != 2 { // once sealed, once 502
		t.Errorf("two resolves made %d calls: the library retries by itself", n)
	}
	f.set(func(f *fakeVault) { f.status = 429 })
	if e := wantFailure(t, r, "vault://kv1/app#token", "slow down"); !e.Retryable {
		t.Error("429: not retryable")
	}
	f.set(func(f *fakeVault) { f.status = 418 })
	wantFailure(t, r, "vault://kv1/app#token", "answers 418")
	f.set(func(f *fakeVault) { f.status = 200 }) // a page of something else
	wantFailure(t, r, "vault://kv1/app#token", "doesn't answer as a Vault does")
	f.set(func(f *fakeVault) { f.status = 0; f.token = "changed" })
	wantFailure(t, r, "vault://kv1/app#token", "denies the permission", "token is valid")
	f.set(func(f *fakeVault) { f.token = "t0k3n" })
	wantValue(t, r, "vault://kv1/app#token", "S3CR3T-V1") // no failure was remembered
}

func TestVaultUnreachable(t *testing.T) {
	clearVaultEnvironment(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	r := mustNew(t, Config{Vault: VaultConfig{Address: "http://user:S3CR3T@" + address + "?x=S3CR3T", Token: "t0k3n"}})
	if e := wantFailure(t, r, "vault://secret/app#token", "nothing listens at http://"+address); e.Retryable {
		t.Error("retryable")
	}
	// Unescaped, a password's beginning is read as a port, and its rest as a path.
	r = mustNew(t, Config{Vault: VaultConfig{Address: "http://" + address + "/S3CR3T@vault.example", Token: "t0k3n"}})
	wantFailure(t, r, "vault://secret/app#token", "nothing listens at http://…@vault.example")

	f := newFakeVault()
	tls := httptest.NewTLSServer(f)
	defer tls.Close()
	r = mustNew(t, Config{Vault: VaultConfig{Address: tls.URL, Token: "t0k3n"}})
	wantFailure(t, r, "vault://secret/app#token", "not trusted", "VAULT_CACERT")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VAULT_CACERT", ca)
	r = mustNew(t, Config{Vault: VaultConfig{Address: tls.URL, Token: "t0k3n"}})
	wantValue(t, r, "vault://secret/app#token", "S3CR3T")

	for _, bad := range []string{"S3CR3T", "http://S3CR3T\x7f", "://S3CR3T"} {
		r = mustNew(t, Config{Vault: VaultConfig{Address: bad, Token: "t0k3n"}})
		wantFailure(t, r, "vault://secret/app#token", "not a url")
	}
	server := httptest.NewServer(f)
	defer server.Close()
	r = mustNew(t, Config{Vault: VaultConfig{Address: server.URL, Token: "t0k3n\x01"}})
	wantFailure(t, r, "vault://secret/app#token", "printable characters")
	r = mustNew(t, Config{Vault: VaultConfig{Address: server.URL}})
	wantFailure(t, r, "vault://secret/app#token", "no token", "VAULT_TOKEN")
}

func TestVaultEnvironment(t *testing.T) {
	f := newFakeVault()
	f.namespace = "from-env"
	_, server := serve(t, f)
	r := mustNew(t, Config{})
	wantFailure(t, r, "vault://secret/app#token", "no address") // and isn't kept:
	t.Setenv("VAULT_ADDR", server.URL)
	t.Setenv("VAULT_TOKEN", "t0k3n\n")
	t.Setenv("VAULT_NAMESPACE", "from-env")
	t.Setenv("VAULT_WRAP_TTL", "5m")
	wantValue(t, r, "vault://secret/app#token", "S3CR3T")

	// The block wins over the environment, the agent's address included.
	f.set(func(f *fakeVault) { f.namespace = "from-block" })
	t.Setenv("VAULT_ADDR", "http://127.0.0.1:1")
	t.Setenv("VAULT_AGENT_ADDR", "http://127.0.0.1:1")
	t.Setenv("VAULT_TOKEN", "wrong")
	r = mustNew(t, Config{Vault: VaultConfig{Address: server.URL, Namespace: "from-block", Token: "t0k3n"}})
	wantValue(t, r, "vault://secret/app#token", "S3CR3T")

	t.Setenv("VAULT_SKIP_VERIFY", "S3CR3T")
	r = mustNew(t, Config{})
	wantFailure(t, r, "vault://secret/app#token", "environment variables")
}

func TestVaultCancelled(t *testing.T) {
	f := newFakeVault()
	r, _ := serve(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Resolve(ctx, "vault://secret/app#token"); !errors.Is(err, context.Canceled) || backends.AsError(err) != nil {
		t.Errorf("Resolve with an ended context: %v", err)
	}
}

func TestVaultAnswersAreBounded(t *testing.T) {
	clearVaultEnvironment(t)
	read := 0
	r := mustNew(t, Config{Vault: VaultConfig{Address: "http://vault.example.com", Token: "t0k3n", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(io.TeeReader(endless{}, counter(func(n int) { read += n })))}, nil
	})}})
	if _, err := r.Resolve(t.Context(), "vault://secret/app#token"); err == nil {
		t.Error("no error")
	}
	if read > 8*maxVaultAnswer {
		t.Errorf("%d bytes were read", read)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// endless is a JSON text that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	return len(p), nil
}

type counter func(int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}
