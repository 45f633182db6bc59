// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

type fixed string

func (f fixed) Resolve(context.Context, string) (string, error) { return string(f), nil }
func (fixed) Forget(string)                                     {}

// limitedCloud is an emulated DigitalOcean with its limits on: 5,000 an hour, 250 a
// minute.
func limitedCloud() *emulated.Service {
	return emulated.New(emulated.Options{Boot: 8 * time.Second, Latency: 50 * time.Millisecond, RateLimit: 5000})
}

// drain uses requests up, as another process would, evenly over a time: an unknown
// path counts too.
func drain(t *testing.T, cloud http.Handler, n int, over time.Duration) {
	t.Helper()
	begun := time.Now()
	for i := range n {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.test/v2/nothing", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer secret")
		if _, err = emulator.Transport(cloud).RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		_ = backends.Sleep(t.Context(), time.Until(begun.Add(over*time.Duration(i+1)/time.Duration(n))))
	}
}

// apply makes n Droplets, ten at a time as the CLIs do, each within twenty minutes.
func apply(t *testing.T, cloud http.Handler, n int) {
	t.Helper()
	registry, err := backends.NewRegistry(digitalocean.New(digitalocean.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := reference.ParseKind(registry, reference.KindAccount, "digitalocean://root/main?region=fra1&token=env://DIGITALOCEAN_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	env := backends.Environment{Secrets: fixed("secret"), Transport: emulator.Transport(cloud), UserAgent: "test"}
	account, err := reconcile.NewAccounts(registry, env).Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	pool := ref.NewPool("web", false, reference.Limits{})
	var wg sync.WaitGroup
	atOnce := make(chan struct{}, 10)
	for i := range n {
		wg.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			name := fmt.Sprintf("web-%d", i)
			_, err := account.Create(ctx, reconcile.Wish{Pool: pool, Spec: backends.MachineSpec{
				Name: name, Offer: "s-1vcpu-1gb", Image: "debian-13-x64", Region: "fra1", Start: true,
				Marks: backends.Marks{
					Managed: true, Key: reference.InstanceID(pool.PoolID(), name), Account: pool.AccountID(), Pool: pool.PoolID(),
					Digest: "iabcdef", Claim: reconcile.NewClaim(),
				},
			}})
			if err != nil {
				t.Errorf("Droplet %d: %v", i, err)
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

// TestSixtyCreatesOnANearlyEmptyLimit finish without an error and run into the wall
// hardly ever, whichever limit it is.
func TestSixtyCreatesOnANearlyEmptyLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		used int
		over time.Duration
		most int // refused
	}{
		// What is used comes back as evenly: 1.4 requests a second.
		"the hour's, none left":   {5000, time.Hour, 2},
		"the hour's, few left":    {4980, time.Hour, 2},
		"the minute's, none left": {250, 10 * time.Second, 4},
		"the minute's, few left":  {230, 10 * time.Second, 4},
		"ours alone":              {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := limitedCloud()
				drain(t, cloud, tt.used, tt.over)
				cloud.ClearCalls()
				begun := time.Now()
				apply(t, cloud, 60)
				if n := refused(cloud); n > tt.most {
					t.Errorf("%d of %d calls were refused", n, len(cloud.Calls()))
				}
				complete := 0
				for _, d := range cloud.Droplets() {
					if slices.Contains(d.Tags, "better-compute:complete") {
						complete++
					}
				}
				if complete != 60 {
					t.Errorf("%d of %d Droplets are complete", complete, len(cloud.Droplets()))
				}
				t.Logf("%d calls, %d refused, %s", len(cloud.Calls()), refused(cloud), time.Since(begun))
			})
		})
	}
}
