// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

type fixed string

func (f fixed) Resolve(context.Context, string) (string, error) { return string(f), nil }
func (fixed) Forget(string)                                     {}

// limitedCloud is an emulated Hetzner Cloud with its limit on: 3,600 an hour.
func limitedCloud() *emulated.Service {
	return emulated.New(emulated.Options{Boot: 8 * time.Second, Latency: 50 * time.Millisecond, RateLimit: 3600})
}

// drain uses requests up, as another process would: an unknown path counts too.
func drain(t *testing.T, cloud http.Handler, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.test/v1/nothing", http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer secret")
			if _, err = emulator.Transport(cloud).RoundTrip(r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// fleet is a pool, and what makes a machine in it.
type fleet struct {
	account *reconcile.Account
	pool    reference.Reference
}

func fleetOf(t *testing.T, cloud http.Handler) fleet {
	t.Helper()
	registry, err := backends.NewRegistry(hetzner.New(hetzner.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := reference.ParseKind(registry, reference.KindAccount, "hetzner-cloud://root/main?token=env://HCLOUD_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	env := backends.Environment{Secrets: fixed("secret"), Transport: emulator.Transport(cloud), UserAgent: "test"}
	account, err := reconcile.NewAccounts(registry, env).Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	return fleet{account, ref.NewPool("web", false, reference.Limits{})}
}

func (f fleet) create(ctx context.Context, i int) (backends.Machine, error) {
	made, err := f.account.Create(ctx, reconcile.Wish{Pool: f.pool, Spec: f.spec(i)})
	return made.Machine, err
}

func (f fleet) spec(i int) backends.MachineSpec {
	name := fmt.Sprintf("web-%d", i)
	return backends.MachineSpec{
		Name: name, Offer: "cx23", Image: "ubuntu-24.04", Region: "fsn1", Start: true,
		Marks: backends.Marks{
			Managed: true, Key: reference.InstanceID(f.pool.PoolID(), name), Account: f.pool.AccountID(), Pool: f.pool.PoolID(),
			Digest: "iabcdef", Claim: reconcile.NewClaim(),
		},
	}
}

// apply makes n machines, ten at a time as the CLIs do, each within twenty minutes.
func (f fleet) apply(t *testing.T, n int) {
	t.Helper()
	var wg sync.WaitGroup
	atOnce := make(chan struct{}, 10)
	for i := range n {
		wg.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			if _, err := f.create(ctx, i); err != nil {
				t.Errorf("machine %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func refused(cloud *emulated.Service) (n int) {
	for _, c := range cloud.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// TestSixtyCreatesOnANearlyEmptyBucket finish without an error, at the speed of the
// refill, and run into the wall hardly ever.
func TestSixtyCreatesOnANearlyEmptyBucket(t *testing.T) {
	for _, left := range []int{0, 20, 300} {
		t.Run(fmt.Sprint(left, " left"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := limitedCloud()
				drain(t, cloud, 3600-left)
				cloud.ClearCalls()
				begun := time.Now()
				fleetOf(t, cloud).apply(t, 60)
				took, calls := time.Since(begun), len(cloud.Calls())
				if n := refused(cloud); n > 4 {
					t.Errorf("%d of %d calls were refused", n, calls)
				}
				if most := time.Duration(calls+60) * time.Second; took > most {
					t.Errorf("took %s for %d calls, want %s at most", took, calls, most)
				}
				complete := 0
				for _, s := range cloud.Servers() {
					if s.Labels["better-compute.io/complete"] == "true" {
						complete++
					}
				}
				if complete != 60 {
					t.Errorf("%d of %d servers are complete", complete, len(cloud.Servers()))
				}
				t.Logf("%d calls, %d refused, %s", calls, refused(cloud), took)
			})
		})
	}
}

// TestRefreshOfAThousandDoesNotWait while there is more left than it needs.
func TestRefreshOfAThousandDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := limitedCloud()
		f := fleetOf(t, cloud)
		machines := make([]backends.Machine, 1000)
		for i := range machines {
			var err error
			if machines[i], err = f.account.Backend.MakeMachine(t.Context(), f.spec(i)); err != nil {
				t.Fatal(err)
			}
		}
		// Wait until the bucket is full, then leave a thirtieth of it.
		_ = backends.Sleep(t.Context(), 2*time.Hour)
		drain(t, cloud, 3480)
		cloud.ClearCalls()
		f = fleetOf(t, cloud) // another process
		begun := time.Now()
		var wg sync.WaitGroup
		for _, m := range machines {
			wg.Go(func() {
				if _, err := f.account.Read(t.Context(), f.pool.PoolID(), m.ID); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if calls := len(cloud.Calls()); time.Since(begun) > time.Second || calls > 22 || refused(cloud) > 0 {
			t.Errorf("%s, %d calls, %d refused", time.Since(begun), calls, refused(cloud))
		}
	})
}

// TestInterruptEndsAllThatHoldBack at once.
func TestInterruptEndsAllThatHoldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := limitedCloud()
		drain(t, cloud, 3600)
		f := fleetOf(t, cloud)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if _, err := f.create(ctx, i); !reconcile.Interrupted(err) {
					t.Errorf("%T %v", err, err)
				} else if strings.Contains(err.Error(), "secret") {
					t.Errorf("it shows the token: %v", err)
				}
			})
		}
		_ = backends.Sleep(ctx, 10*time.Second)
		begun := time.Now()
		cancel()
		wg.Wait()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("took %s", took)
		}
	})
}
