// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

func TestSlots(t *testing.T) {
	got := slots(testKey, 100_000_000, 999_999_999)
	// Written down: another hash would make second VMs of all keys there are.
	if want := []int{426_814_294, 426_814_295}; !slices.Equal(got[:2], want) {
		t.Errorf("%v", got[:2])
	}
	if len(got) != maxSlots {
		t.Errorf("%d slots", len(got))
	}
	for _, r := range [][2]int{{100, 100}, {100, 163}, {100, 400}, {999_999_900, 999_999_999}} {
		got := slots(testKey, r[0], r[1])
		sorted := slices.Compact(slices.Sorted(slices.Values(got)))
		if len(sorted) != min(maxSlots, r[1]-r[0]+1) || sorted[0] < r[0] || sorted[len(sorted)-1] > r[1] {
			t.Errorf("%v: %v", r, got)
		}
	}
}

// TestTwoRunsOneKey lets two processes make one key at the same time: there is one
// VM, and the other learns whose it is.
func TestTwoRunsOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, cluster := emulate(t, slow())
		b := clientOf(t, emulator.Transport(cluster))
		var wg sync.WaitGroup
		made := make([]backends.Machine, 2)
		errs := make([]error, 2)
		for i, c := range []*Client{a, b} {
			wg.Go(func() {
				spec := testSpec()
				spec.Marks.Claim = fmt.Sprintf("claim%d", i)
				made[i], errs[i] = c.MakeMachine(t.Context(), spec)
			})
		}
		wg.Wait()
		if n := len(cluster.Machines()); n != 1 {
			t.Fatalf("%d VMs", n)
		}
		winner := slices.Index(errs, nil)
		if winner < 0 {
			t.Fatal(errs)
		}
		taken, ok := errors.AsType[*backends.NameTaken](errs[1-winner])
		if !ok || taken.Holder.ID != made[winner].ID || taken.Holder.Marks.Key != testKey || taken.Holder.Marks.Claim != made[winner].Marks.Claim {
			t.Fatalf("%v", errs[1-winner])
		}
		loser := []*Client{a, b}[1-winner]
		listed, err := backends.ListAll(t.Context(), loser.ListMachines, backends.Filter{Pool: testSpec().Marks.Pool})
		if err != nil || len(listed) != 1 || listed[0].Marks.Complete {
			t.Errorf("the half-made VM isn't listed where it was come upon: %+v, %v", listed, err)
		}
	})
}

// TestSlotOfAnother passes over slots that strangers, containers and templates have,
// and finds its own behind them when the first is free again.
func TestSlotOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := slots(testKey, 100_000_000, 999_999_999)
		c, cluster := emulate(t, emulated.Options{
			Boot:       time.Second,
			Containers: []emulated.Container{{VMID: all[1], Name: "dns", Node: "pve2"}},
		})
		cluster.PutStranger(all[0], "pve2", "someone", "better-compute: vmid=1 key="+testKey, "")
		cluster.AddTemplate(emulated.Template{VMID: all[2], Name: "other", Node: "pve1", Storage: "shared", DiskGiB: 1})
		m := mustCreate(t, c, testSpec())
		if m.ID != fmt.Sprint(all[3]) {
			t.Errorf("made in %s, want the fourth slot %d", m.ID, all[3])
		}
		cluster.Delete(all[0])
		_, err := c.MakeMachine(t.Context(), testSpec())
		if taken, ok := errors.AsType[*backends.NameTaken](err); !ok || taken.Holder.ID != m.ID || !taken.Holder.Marks.Complete {
			t.Errorf("%v", err)
		}
		found, err := c.FindMachines(t.Context(), testKey)
		if err != nil || len(found) != 1 || found[0].ID != m.ID {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

func TestNoFreeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{}, backends.Values{"vmid_min": int64(5000), "vmid_max": int64(5002)})
		for vmid := 5000; vmid <= 5002; vmid++ {
			cluster.PutStranger(vmid, "pve1", "x", "", "")
		}
		_, err := c.MakeMachine(t.Context(), testSpec())
		wantCode(t, err, backends.CapacityUnavailable)
		spec := testSpec()
		spec.Options = backends.Values{"vm_id": int64(5001)}
		_, err = c.MakeMachine(t.Context(), spec)
		if e := wantCode(t, err, backends.Conflict); e.Path.String() != "proxmox.vm_id" {
			t.Error(e.Path)
		}
		for _, v := range cluster.Machines() {
			if v.Name != "x" {
				t.Errorf("%+v", v)
			}
		}
	})
}

// TestHiddenSlot passes over a VMID that the token doesn't see.
func TestHiddenSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := slots(testKey, 100_000_000, 999_999_999)
		c, cluster := emulate(t, emulated.Options{Denials: emulated.Denials{{Path: fmt.Sprintf("/vms/%d", all[0]), Privilege: "VM.Audit"}}})
		cluster.PutStranger(all[0], "pve1", "secret", "", "")
		if m := mustCreate(t, c, testSpec()); m.ID != fmt.Sprint(all[1]) {
			t.Errorf("made in %s, want %d", m.ID, all[1])
		}
	})
}

// TestPoolToken makes one key twice at once, and after an interruption, with a token
// whose rights come from a resource pool: it doesn't see a clone that still runs.
func TestPoolToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := slow()
		token, _, _ := strings.Cut(testToken, "=")
		options.Grants = poolToken(token)
		inPool := backends.Values{"pool": "tofu"}
		a, cluster := emulate(t, options, inPool)
		b := clientOf(t, emulator.Transport(cluster), inPool)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Second, context.Canceled)
		defer cancel()
		if _, err := a.MakeMachine(ctx, testSpec()); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if seen, err := a.guests.get(t.Context(), 0); err != nil || len(seen) != 1 {
			t.Fatalf("the token sees the clone: %v, %v", seen, err)
		}
		var wg sync.WaitGroup
		for _, c := range []*Client{a, b} {
			wg.Go(func() {
				_, err := c.MakeMachine(t.Context(), testSpec())
				if taken, ok := errors.AsType[*backends.NameTaken](err); !ok || taken.Holder.Marks.Key != testKey {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(cluster.Machines()); n != 1 {
			t.Errorf("%d VMs", n)
		}
		m := mustCreate(t, a, specOf(1))
		if err := a.DeleteMachine(t.Context(), m); err != nil {
			t.Error(err)
		}
		_, err := a.GetMachine(t.Context(), m.ID)
		wantCode(t, err, backends.NotFound)
	})
}

// poolToken are the rights of a token that come from a resource pool.
func poolToken(token string) []emulated.Grant {
	return []emulated.Grant{
		{Token: token, Path: "/pool/tofu", Privileges: []string{"*"}},
		{Token: token, Path: "/vms/9000", Privileges: []string{"VM.Clone", "VM.Audit"}},
		{Token: token, Path: "/storage", Privileges: []string{"*"}},
		{Token: token, Path: "/sdn", Privileges: []string{"*"}},
	}
}

// TestTwoPoolTokens makes one key with two tokens at once, neither of which sees the
// other's clone, nor its task, until it has ended: one VM is left.
func TestTwoPoolTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _, _ := strings.Cut(testToken, "=")
		const second = "bc@pve!other"
		options := slow()
		options.Grants = append(poolToken(first), poolToken(second)...)
		inPool := backends.Values{"pool": "tofu"}
		a, cluster := emulate(t, options, inPool)
		b, ok := backendOf(t, emulator.Transport(cluster), &fixedSecrets{token: second + "=hunter2"}, inPool).(*Client)
		if !ok {
			t.Fatal("no client")
		}
		var wg sync.WaitGroup
		var made backends.Machine
		wg.Go(func() {
			var err error
			if made, err = a.MakeMachine(t.Context(), testSpec()); err != nil {
				t.Error(err)
			}
		})
		if err := backends.Sleep(t.Context(), 3*time.Second); err != nil {
			t.Fatal(err)
		}
		spec := testSpec()
		spec.Marks.Claim = "other"
		_, err := b.MakeMachine(t.Context(), spec)
		wg.Wait()
		if taken, ok := errors.AsType[*backends.NameTaken](err); !ok || taken.Holder.ID != made.ID || taken.Holder.Marks.Claim != testClaim {
			t.Errorf("%v", err)
		}
		if all := cluster.Machines(); len(all) != 1 || fmt.Sprint(all[0].ID) != made.ID {
			t.Errorf("%+v", all)
		}
		clones := 0
		for _, task := range cluster.Tasks() {
			if task.Type == "qmclone" && task.Exit == "OK" {
				clones++
			}
		}
		if clones != 2 {
			t.Errorf("%d clones: the tokens saw each other", clones)
		}
	})
}

// TestStuckSlot: a node that crashed has left a locked VM that says nothing. It isn't
// probed past, and the error says what removes it; then its slot is a stranger's.
func TestStuckSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := slots(testKey, 100_000_000, 999_999_999)
		c, cluster := emulate(t, slow())
		cluster.PutStranger(all[0], "pve2", "", temporary, "")
		cluster.SetOption(all[0], "lock", "clone")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := c.MakeMachine(ctx, testSpec())
		if e := wantError(t, err); !errors.Is(err, context.DeadlineExceeded) || e.Reason != backends.ReasonLocked ||
			!strings.Contains(e.Message, "pve2") || !strings.Contains(e.Remedy, fmt.Sprintf("qm unlock %d", all[0])) {
			t.Errorf("%v\n%s", err, e.Remedy)
		}
		if n := len(cluster.Machines()); n != 1 {
			t.Errorf("%d VMs: it was probed past", n)
		}
		cluster.SetOption(all[0], "lock", "")
		if m := mustCreate(t, c, testSpec()); m.ID != fmt.Sprint(all[1]) {
			t.Errorf("made in %s", m.ID)
		}
	})
}

// TestCrashedNode lets the node go down that a clone runs on: what became of it is
// looked at, and what is left of it is told.
func TestCrashedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = c.MakeMachine(ctx, testSpec()) })
		for len(cluster.Machines()) == 0 {
			if err := backends.Sleep(t.Context(), 100*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		cluster.SetNode("pve1", false)
		cluster.SetNode("pve1", true)
		wg.Wait()
		if e := wantError(t, err); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(e.Remedy, "qm unlock") || !strings.Contains(err.Error(), unexpected) {
			t.Errorf("%v\n%s", err, e.Remedy)
		}
		if all := cluster.Machines(); len(all) != 1 || all[0].Config["lock"] != "clone" {
			t.Errorf("%+v", all)
		}
	})
}

// TestStuckClone: the same once it says that it is ours.
func TestStuckClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		m, err := c.MakeMachine(t.Context(), testSpec())
		if err != nil {
			t.Fatal(err)
		}
		cluster.SetOption(atoi(t, m.ID), "lock", "clone")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err = c.FinishMachine(ctx, m, testSpec())
		if e := wantError(t, err); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(e.Remedy, "qm unlock "+m.ID) {
			t.Errorf("%v\n%s", err, e.Remedy)
		}
	})
}

// TestNewVMIDFindsTheOld: a half-made VM in a slot of the key is found although the
// wish asks for a VMID by now.
func TestNewVMIDFindsTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m, err := c.MakeMachine(t.Context(), testSpec())
		if err != nil {
			t.Fatal(err)
		}
		spec := testSpec()
		spec.Options = backends.Values{"vm_id": int64(4711)}
		_, err = c.MakeMachine(t.Context(), spec)
		if taken, ok := errors.AsType[*backends.NameTaken](err); !ok || taken.Holder.ID != m.ID {
			t.Errorf("%v", err)
		}
		if n := len(cluster.Machines()); n != 1 {
			t.Errorf("%d VMs", n)
		}
	})
}

// TestAnonymousSlot waits for a slot whose holder doesn't say yet whose it is, both
// where that is a stranger's in the end and where it is ours.
func TestAnonymousSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := slots(testKey, 100_000_000, 999_999_999)
		c, cluster := emulate(t, slow())
		send(t, cluster, http.MethodPost, "/nodes/pve1/qemu/9000/clone", fmt.Sprintf("newid=%d&name=theirs&full=1", all[0]))
		m, err := c.MakeMachine(t.Context(), testSpec())
		if err != nil || m.ID != fmt.Sprint(all[1]) {
			t.Errorf("%v, %v", m.ID, err)
		}
	})
}

// TestMarksTakenAway: a VM with the VMID and the name of ours isn't made a second time;
// a stranger's with another name is passed.
func TestMarksTakenAway(t *testing.T) {
	for name, want := range map[string]backends.Code{"web-0": backends.AccessDenied, "theirs": ""} {
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, emulated.Options{})
			spec := testSpec()
			m := mustCreate(t, c, spec)
			cluster.SetOption(atoi(t, m.ID), "tags", "mine")
			cluster.SetOption(atoi(t, m.ID), "description", "hello")
			cluster.SetOption(atoi(t, m.ID), "name", name)
			_, err := c.MakeMachine(t.Context(), spec)
			if want == "" && err == nil {
				return
			}
			if e := wantCode(t, err, want); !strings.Contains(e.Message, "The marks are gone") || len(cluster.Machines()) != 1 {
				t.Errorf("%v", e)
			}
		})
	}
}
