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

func TestCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		spec := testSpec()
		spec.Offer = "2c-4g-20d"
		spec.Labels = map[string]string{"role": "web", "edge": ""}
		spec.SSHKeys = []string{"ssh-ed25519 AAAAC3Nza+/x= someone@somewhere"}
		spec.Options = backends.Values{"tags": []any{"blue"}, "on_boot": true, "cpu_type": "host"}
		m := mustCreate(t, c, spec)
		v := emulatedVM(t, cluster, m.ID)
		if v.ID != slots(testKey, 100_000_000, 999_999_999)[0] {
			t.Errorf("VMID %d is not the key's first slot", v.ID)
		}
		want := map[string]string{
			"name": "web-0", "cores": "2", "memory": "4096", "onboot": "1", "cpu": "host", "ipconfig0": "ip=dhcp",
			"sshkeys": "ssh-ed25519%20AAAAC3Nza%2B%2Fx%3D%20someone%40somewhere",
		}
		for name, value := range want {
			if v.Config[name] != value {
				t.Errorf("%s is %q, want %q", name, v.Config[name], value)
			}
		}
		if size, _ := (vmConfig{"scsi0": scalar(v.Config["scsi0"])}).diskSize("scsi0"); size != 20*gib {
			t.Errorf("the disk is %q", v.Config["scsi0"])
		}
		for _, tag := range []string{"better-compute", "bc-key-" + testKey, "bc-claim-" + testClaim, "bc-pool-" + spec.Marks.Pool, "debian", "template", "role.web", "edge", "blue"} {
			if !slices.Contains(v.Tags, tag) {
				t.Errorf("the tag %s is missing: %v", tag, v.Tags)
			}
		}
		if !strings.Contains(v.Config["description"], "Debian 13 (trixie)") {
			t.Errorf("the template's description is lost: %q", v.Config["description"])
		}
		if !v.Running || m.State != backends.StateRunning || !m.Marks.Complete {
			t.Errorf("running %v, %+v", v.Running, m)
		}
		if len(m.Addresses) == 0 || m.Addresses[0].Address == "127.0.0.1" {
			t.Errorf("addresses %v", m.Addresses)
		}
		got, err := c.GetMachine(t.Context(), m.ID)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: spec.Marks.Pool})
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		for _, m := range []backends.Machine{got, listed[0]} {
			if m.Offer != "2c-4g-20d" || m.ImageID != "9000" || m.State != backends.StateRunning || m.Region != "pve" {
				t.Errorf("%+v", m)
			}
			marks := spec.Marks
			marks.Complete = true
			if m.Marks != marks {
				t.Errorf("marks %+v", m.Marks)
			}
		}
	})
}

// TestTagComesLast holds that no call but the last one writes better-compute, and
// that a VM is half made, by list and by get, until then.
func TestTagComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		spec := testSpec()
		m, err := c.MakeMachine(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		half := func(step string) {
			t.Helper()
			if slices.Contains(emulatedVM(t, cluster, m.ID).Tags, ManagedTag) {
				t.Errorf("%s: tagged already", step)
			}
			got, err := c.GetMachine(t.Context(), m.ID)
			if err != nil || !got.Marks.Managed || got.Marks.Complete || got.Marks.Key != testKey || got.Marks.Claim != testClaim {
				t.Errorf("%s: %+v, %v", step, got, err)
			}
		}
		half("made")
		if m, err = c.FinishMachine(t.Context(), m, spec); err != nil {
			t.Fatal(err)
		}
		half("finished")
		listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: spec.Marks.Pool})
		if err != nil || len(listed) != 1 || listed[0].Marks.Complete {
			t.Errorf("%+v, %v", listed, err)
		}
		marks := m.Marks
		marks.Complete = true
		if m, err = c.MarkMachine(t.Context(), m, marks); err != nil || !m.Marks.Complete {
			t.Fatal(m, err)
		}
		if !slices.Contains(emulatedVM(t, cluster, m.ID).Tags, ManagedTag) {
			t.Error("not tagged")
		}
	})
}

// TestParallelCreates clones one template 20 times, with locks that can't be had.
func TestParallelCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow(), backends.Values{"node": "pve1"})
		other := clientOf(t, emulator.Transport(cluster), backends.Values{"node": "pve2"})
		for _, rule := range []emulator.Rule{
			{Method: "POST", Path: "/api2/json/nodes/*/qemu/9000/clone", Nth: 3, Times: 4, Kind: emulator.KindLockTimeout},
			{Method: "PUT", Path: "/api2/json/nodes/*/qemu/*/config", Nth: 5, Times: 3, Kind: emulator.KindLockTimeout},
			{Method: "POST", Path: "/api2/json/nodes/*/qemu/*/status/start", Nth: 2, Times: 3, Kind: emulator.KindLockTimeout},
			{Method: "POST", Path: "/api2/json/nodes/*/qemu/9000/clone", Nth: 12, Times: 2, Kind: emulator.KindLocked},
		} {
			if err := cluster.AddFault(rule); err != nil {
				t.Fatal(err)
			}
		}
		const n = 20
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() {
				client := c
				if i%2 == 1 {
					client = other
				}
				_, errs[i] = create(t.Context(), client, specOf(i))
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, v := range cluster.Machines() {
			n, ok := readTags(v.ID, v.Tags)
			if !ok || !n.marks.Complete || !v.Running {
				t.Errorf("VM %d: %v, running %v", v.ID, v.Tags, v.Running)
			}
			keys[n.marks.Key] = true
			var i int
			if _, err := fmt.Sscanf(v.Name, "web-%d", &i); err != nil || v.Node != []string{"pve1", "pve2"}[i%2] {
				t.Errorf("%s is on %s, %v", v.Name, v.Node, err)
			}
		}
		clones := 0
		for _, call := range calls(cluster) {
			if strings.HasSuffix(call, "/9000/clone") {
				clones++
			}
		}
		if clones != n+6 {
			t.Errorf("%d clones were asked for: the faults had no effect, or more than one each", clones)
		}
		if len(keys) != n || len(cluster.Machines()) != n {
			t.Errorf("%d VMs with %d keys", len(cluster.Machines()), len(keys))
		}
	})
}

// TestCallsOfCreates holds the budget of DESIGN.md §7: 6 calls for each VM, besides
// those that are shared, and polls. A disk that grows is a seventh.
func TestCallsOfCreates(t *testing.T) {
	for offer, each := range map[string]int{"2c-4g": 6, "2c-4g-20d": 7} {
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, slow())
			const n = 10
			wish := func(i int) backends.MachineSpec {
				spec := specOf(i)
				spec.Offer, spec.Options = offer, static(i)
				return spec
			}
			for i := range n {
				if _, issues, err := c.CheckMachine(t.Context(), wish(i)); err != nil || len(issues) > 0 {
					t.Fatal(issues, err)
				}
			}
			cluster.ClearCalls()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if _, err := create(t.Context(), c, wish(i)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if made := calls(cluster); len(made) > each*n+8 {
				t.Errorf("%s: %d calls for %d VMs:\n%s", offer, len(made), n, strings.Join(made, "\n"))
			}
			polls := len(cluster.Calls()) - len(calls(cluster))
			if polls > 150 {
				t.Errorf("%d polls of tasks: they grow with the VMs", polls)
			}
			t.Logf("%s: %d polls", offer, polls)
		})
	}
}

func static(i int) backends.Values {
	return backends.Values{"ip_config": []any{backends.Values{"ipv4": fmt.Sprintf("10.1.0.%d/24", i+1), "gateway": "10.1.0.254"}}}
}

// TestLostAnswers loses the answer of every kind of call that changes something.
func TestLostAnswers(t *testing.T) {
	for _, call := range []string{
		"POST /api2/json/nodes/pve1/qemu/9000/clone", "PUT /api2/json/nodes/*/qemu/*/config", "PUT /api2/json/nodes/*/qemu/*/resize",
		"POST /api2/json/nodes/*/qemu/*/status/start",
	} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, slow())
				method, path, _ := strings.Cut(call, " ")
				if err := cluster.AddFault(emulator.Rule{Method: method, Path: path, Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer}); err != nil {
					t.Fatal(err)
				}
				spec := testSpec()
				spec.Offer = "2c-4g-20d"
				m := mustCreate(t, c, spec)
				if !slices.ContainsFunc(cluster.Calls(), func(c emulator.Call) bool { return c.Method == method && c.Status == 0 }) {
					t.Errorf("no answer was lost: %v", calls(cluster))
				}
				if all := cluster.Machines(); len(all) != 1 || !all[0].Running || fmt.Sprint(all[0].ID) != m.ID {
					t.Errorf("%+v", all)
				}
			})
		})
	}
}

// TestClaimIsHeeded: a run that was taken over doesn't go on.
func TestClaimIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m, err := c.MakeMachine(t.Context(), testSpec())
		if err != nil {
			t.Fatal(err)
		}
		taken := m.Marks
		taken.Claim = "theirs"
		other := clientOf(t, emulator.Transport(cluster))
		if _, err := other.MarkMachine(t.Context(), m, taken); err != nil {
			t.Fatal(err)
		}
		_, err = c.FinishMachine(t.Context(), m, testSpec())
		wantCode(t, err, backends.Conflict)
		if v := emulatedVM(t, cluster, m.ID); v.Running || v.Config["ipconfig0"] != "" || !slices.Contains(v.Tags, "bc-claim-theirs") {
			t.Errorf("%+v", v)
		}
	})
}

// TestInterruptedClone ends a run while its clone runs; the next one finishes it.
func TestInterruptedClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, context.Canceled)
		defer cancel()
		if _, err := c.MakeMachine(ctx, testSpec()); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		next := clientOf(t, emulator.Transport(cluster))
		spec := testSpec()
		_, err := next.MakeMachine(t.Context(), spec)
		taken, ok := errors.AsType[*backends.NameTaken](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		listed, err := backends.ListAll(t.Context(), next.ListMachines, backends.Filter{Pool: spec.Marks.Pool})
		if err != nil || len(listed) != 1 || listed[0].ID != taken.Holder.ID {
			t.Fatal(listed, err)
		}
		if _, err := complete(t.Context(), next, listed[0], spec); err != nil {
			t.Fatal(err)
		}
		if all := cluster.Machines(); len(all) != 1 || !all[0].Running || !slices.Contains(all[0].Tags, ManagedTag) {
			t.Errorf("%+v", all)
		}
	})
}

// TestFinishTwice finishes what is finished: nothing but reads and a start.
func TestFinishTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		spec := testSpec()
		spec.Offer = "2c-4g-20d"
		spec.Options = static(1)
		spec.Network = "vmbr0"
		m, err := c.MakeMachine(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = c.FinishMachine(t.Context(), m, spec); err != nil {
			t.Fatal(err)
		}
		cluster.ClearCalls()
		if _, err := c.FinishMachine(t.Context(), m, spec); err != nil {
			t.Fatal(err)
		}
		for _, call := range calls(cluster) {
			if !strings.HasPrefix(call, "GET ") && !strings.HasSuffix(call, "/status/start") {
				t.Errorf("a second time: %s", call)
			}
		}
	})
}

// TestTaskErrors shows what a failed task says.
func TestTaskErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		if err := cluster.AddFault(emulator.Rule{Method: "POST", Path: "/api2/json/nodes/*/qemu/9000/clone", Nth: 1, Times: 1, Kind: emulator.KindCapacity}); err != nil {
			t.Fatal(err)
		}
		_, err := c.MakeMachine(t.Context(), testSpec())
		e := wantCode(t, err, backends.ProviderError)
		if e.Reason != backends.ReasonCapacity || !strings.Contains(e.Message, "Its log ends: ") {
			t.Errorf("%v (%s)", e, e.Reason)
		}
		if n := len(cluster.Machines()); n != 0 {
			t.Errorf("%d VMs", n)
		}
	})
}

// TestWarnings takes a task that ends with warnings for done, and passes them on.
func TestWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		cluster.SetWarnings(1)
		var mu sync.Mutex
		var said []string
		ctx := backends.WithWarnings(t.Context(), func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		})
		if _, err := create(ctx, c, testSpec()); err != nil {
			t.Fatal(err)
		}
		if len(said) == 0 || !strings.Contains(said[0], "warnings: 1") || !strings.Contains(said[0], "WARN") {
			t.Errorf("%q", said)
		}
	})
}

// send sends a request as someone else's client does.
func send(t *testing.T, cluster http.Handler, method, path, form string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://pve.test:8006/api2/json"+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "PVEAPIToken="+testToken)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := emulator.Transport(cluster).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode > 299 {
		t.Fatalf("%s %s: %s", method, path, got.Status)
	}
}
