// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const appPath = "secret/data/app"

func inBubble(t *testing.T, f *fakeVault) *Resolver {
	t.Helper()
	return mustNew(t, Config{Vault: VaultConfig{Address: "http://vault.invalid", Token: "t0k3n", Transport: inMemory{f}}})
}

// rotate changes the value of secret/app#token.
func (f *fakeVault) rotate(value string) {
	f.set(func(f *fakeVault) { f.secrets[appPath] = v2(map[string]any{"token": value}) })
}

func TestVaultMemory(t *testing.T) {
	clearVaultEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeVault()
		r := inBubble(t, f)
		wantValue(t, r, "vault://secret/app#token", "S3CR3T")
		f.rotate("new")
		time.Sleep(vaultMemory - time.Nanosecond)
		wantValue(t, r, "vault://secret/app#token", "S3CR3T")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r.vault.mu.Lock()
		kept := len(r.vault.memory)
		r.vault.mu.Unlock()
		if kept != 0 {
			t.Errorf("%d secrets are in memory after %s", kept, vaultMemory)
		}
		wantValue(t, r, "vault://secret/app#token", "new")
		if n := f.count(appPath); n != 2 {
			t.Errorf("%d reads, want 2", n)
		}
	})
}

func TestVaultForget(t *testing.T) {
	clearVaultEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeVault()
		r := inBubble(t, f)
		wantValue(t, r, "vault://secret/app#token", "S3CR3T")
		f.rotate("new")
		r.Forget("vault://kv1/app#token") // another's
		r.Forget("not a reference")
		wantValue(t, r, "vault://secret/app#token", "S3CR3T")
		time.Sleep(10 * time.Second)
		r.Forget("vault://secret/app#token")
		wantValue(t, r, "vault://secret/app#token", "new")
		// The first value's timer, due in 20 s, must not take the second out early.
		time.Sleep(vaultMemory - time.Nanosecond)
		wantValue(t, r, "vault://secret/app#token", "new")
		if n := f.count(appPath); n != 2 {
			t.Errorf("%d reads, want 2", n)
		}
	})
}

// An answer that was under way when its value was refused is not remembered, and
// who asks after the refusal doesn't get it.
func TestVaultForgetOvertakes(t *testing.T) {
	clearVaultEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeVault()
		r := inBubble(t, f)
		hold := make(chan struct{})
		f.set(func(f *fakeVault) { f.hold = hold })
		var before, after sync.WaitGroup
		before.Go(func() { _, _ = r.Resolve(t.Context(), "vault://secret/app#token") })
		synctest.Wait()
		r.Forget("vault://secret/app#token")
		f.set(func(f *fakeVault) { f.hold = nil })
		f.rotate("new")
		after.Go(func() { wantValue(t, r, "vault://secret/app#token", "new") })
		after.Wait()
		f.rotate("newest") // the late answer may not replace what is remembered by now
		close(hold)
		before.Wait()
		wantValue(t, r, "vault://secret/app#token", "new")
		r.vault.mu.Lock()
		defer r.vault.mu.Unlock()
		if len(r.vault.forgets)+len(r.vault.inFlight) != 0 {
			t.Errorf("bookkeeping is left: %v %v", r.vault.forgets, r.vault.inFlight)
		}
	})
}

func TestVaultReadsAreShared(t *testing.T) {
	clearVaultEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeVault()
		r := inBubble(t, f)
		hold := make(chan struct{})
		f.set(func(f *fakeVault) { f.hold = hold })

		// The one who started the read gives up; the others still get its answer.
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.Resolve(first, "vault://secret/app#token"); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled Resolve: %v", err)
			}
		})
		synctest.Wait()
		for i := range 100 {
			field := []string{"token", "other"}[i%2]
			wg.Go(func() {
				wantValue(t, r, "vault://secret/app#"+field, map[string]string{"token": "S3CR3T", "other": "S3CR3T-2"}[field])
			})
		}
		synctest.Wait()
		start := time.Now()
		cancel()
		synctest.Wait()
		if time.Since(start) != 0 {
			t.Error("the cancelled Resolve waited")
		}
		close(hold)
		wg.Wait()
		if n := f.count(appPath); n != 1 {
			t.Errorf("101 concurrent resolves made %d reads, want 1", n)
		}
	})
}

// A Vault that hangs is given up before the cloud's request is.
func TestVaultHangs(t *testing.T) {
	clearVaultEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeVault()
		f.hold = make(chan struct{})
		r := inBubble(t, f)
		start := time.Now()
		if e := wantFailure(t, r, "vault://secret/app#token", "doesn't answer in time"); !e.Retryable {
			t.Error("not retryable")
		}
		if d := time.Since(start); d != vaultTimeout {
			t.Errorf("gave up after %s, want %s", d, vaultTimeout)
		}
	})
}

// For the race detector: everything at once.
func TestResolverConcurrently(t *testing.T) {
	f := newFakeVault()
	r, _ := serve(t, f)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 10 {
				switch (i + j) % 4 {
				case 0:
					f.rotate("v" + strconv.Itoa(j))
				case 1:
					r.Forget("vault://secret/app#token")
				default:
					if v, err := r.Resolve(t.Context(), "vault://secret/app#token"); err != nil || v == "" {
						t.Errorf("Resolve: %q, %v", v, err)
					}
					if _, err := r.Resolve(t.Context(), "vault://kv1/app#token"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}
