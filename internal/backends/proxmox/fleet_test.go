// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// mortal is the network of a process that is killed after so many calls that change
// something: from then on it hears nothing any more.
type mortal struct {
	http.RoundTripper
	left atomic.Int64
	kill context.CancelFunc
}

var errKilled = errors.New("killed")

func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.left.Load() <= 0 {
		return nil, errKilled
	}
	answer, err := m.RoundTripper.RoundTrip(r)
	if r.Method != http.MethodGet && m.left.Add(-1) <= 0 {
		m.kill()
		return nil, errKilled
	}
	return answer, err
}

// opened is an account and its one pool.
type opened struct {
	*reconcile.Account
	pool reference.Reference
}

// account is the account pinned to a node, in a process of its own.
func account(t *testing.T, transport http.RoundTripper, node string) opened {
	t.Helper()
	registry, err := backends.NewRegistry(proxmox.New(proxmox.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	uri := "proxmox://root/" + node + "?node=" + node + "&token=env://PROXMOX_TOKEN&url=https://pve.test:8006"
	ref, err := reference.ParseKind(registry, reference.KindAccount, uri)
	if err != nil {
		t.Fatal(err)
	}
	a, err := reconcile.NewAccounts(registry, backends.Environment{Secrets: fixed(goodToken), Transport: transport, UserAgent: "test"}).Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	return opened{a, ref.NewPool("web", false, reference.Limits{})}
}

const fleetSize = 20

// apply creates the fleet in two accounts, as one apply does.
func apply(ctx context.Context, t *testing.T, transport http.RoundTripper) error {
	t.Helper()
	accounts := []opened{account(t, transport, "pve1"), account(t, transport, "pve2")}
	var wg sync.WaitGroup
	errs := make([]error, fleetSize)
	for i := range fleetSize {
		wg.Go(func() {
			a := accounts[i%2]
			pool := a.pool
			name := fmt.Sprintf("web-%d", i)
			_, errs[i] = a.Create(ctx, reconcile.Wish{Pool: pool, Spec: backends.MachineSpec{
				Name: name, Offer: "2c-4g-10d", Image: "debian-13", Region: "pve", Start: true,
				Marks: backends.Marks{
					Managed: true, Key: reference.InstanceID(pool.PoolID(), name), Account: pool.AccountID(), Pool: pool.PoolID(),
					Digest: "iabcdef", Claim: reconcile.NewClaim(),
				},
			}})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// TestKilledFleet kills an apply of 20 VMs in two accounts, with locks that can't be
// had, at many places, and runs it again: there are exactly 20 VMs, each complete.
func TestKilledFleet(t *testing.T) {
	for _, calls := range []int64{1, 20, 27, 60, 85, 1000} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t, 9)
				for _, rule := range []emulator.Rule{
					{Method: http.MethodPost, Path: "*/clone", Nth: 3, Times: 5, Kind: emulator.KindLockTimeout},
					{Method: http.MethodPut, Path: "*/config", Nth: 5, Times: 5, Kind: emulator.KindLockTimeout},
				} {
					if err := cluster.AddFault(rule); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				network := &mortal{RoundTripper: emulator.Transport(cluster), kill: cancel}
				network.left.Store(calls)
				err := apply(ctx, t, network)
				if killed := err != nil; killed != (calls < 1000) {
					t.Fatalf("killed after %d calls: %v", calls, err)
				}
				if calls < 1000 {
					if err := apply(t.Context(), t, emulator.Transport(cluster)); err != nil && !onlyExist(err) {
						t.Fatal(err)
					}
				}
				wholeFleet(t, cluster)
			})
		})
	}
}

// onlyExist tells whether all that failed are conflicts with VMs that were complete
// when the first run was killed: their states are in a file that this test doesn't
// have.
func onlyExist(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range joined.Unwrap() {
		if _, exists := errors.AsType[*reconcile.ExistsError](e); !exists {
			return false
		}
	}
	return true
}

func wholeFleet(t *testing.T, cluster *emulated.Service) {
	t.Helper()
	keys := map[string]bool{}
	for _, v := range cluster.Machines() {
		for _, tag := range v.Tags {
			if strings.HasPrefix(tag, "bc-key-") {
				keys[tag] = true
			}
		}
		if !v.Running || !slices.Contains(v.Tags, proxmox.ManagedTag) || v.Config["cores"] != "2" {
			t.Errorf("VM %d: running %v, %v", v.ID, v.Running, v.Tags)
		}
		if _, locked := v.Config["lock"]; locked {
			t.Errorf("VM %d is locked", v.ID)
		}
	}
	if n := len(cluster.Machines()); n != fleetSize || len(keys) != fleetSize {
		t.Errorf("%d VMs with %d keys", n, len(keys))
	}
}

// TestTwoAppliesAtOnce: two processes make the same fleet at the same time.
func TestTwoAppliesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t, 9)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wg.Go(func() { errs[i] = apply(ctx, t, emulator.Transport(cluster)) })
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil && !onlyExist(err) {
				t.Error(err)
			}
		}
		wholeFleet(t, cluster)
	})
}
