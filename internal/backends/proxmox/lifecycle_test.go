// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
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

// putStranger puts someone else's VM where one of ours was.
func putStranger(cluster *emulated.Service, vmid int) map[string]string {
	cluster.PutStranger(vmid, "pve2", "theirs", "hands off", "prod")
	for _, v := range cluster.VMs() {
		if v.ID == vmid {
			return v.Config
		}
	}
	return nil
}

// TestStrangerIsUntouched puts a stranger's VM into the VMID of one of ours: nothing
// that changes anything is sent to it.
func TestStrangerIsUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		spec := testSpec()
		m := mustCreate(t, c, spec)
		before := putStranger(cluster, atoi(t, m.ID))
		cluster.SetPower(atoi(t, m.ID), true)
		marks := m.Marks
		marks.Claim = "other"
		for name, do := range map[string]func(context.Context) error{
			"delete":    func(ctx context.Context) error { return c.DeleteMachine(ctx, m) },
			"power":     func(ctx context.Context) error { return c.Power(ctx, m, backends.PowerOff) },
			"cycle":     func(ctx context.Context) error { return c.Power(ctx, m, backends.PowerCycle) },
			"protect":   func(ctx context.Context) error { return c.Protect(ctx, m, true) },
			"reinstall": func(ctx context.Context) error { return c.Reinstall(ctx, m, spec) },
			"finish":    func(ctx context.Context) error { _, err := c.FinishMachine(ctx, m, spec); return err },
			"mark":      func(ctx context.Context) error { _, err := c.MarkMachine(ctx, m, marks); return err },
		} {
			if e := wantCode(t, do(t.Context()), backends.AccessDenied); !strings.Contains(e.Message, "theirs") {
				t.Errorf("%s: %v", name, e)
			}
		}
		for _, call := range calls(cluster) {
			if after := slices.Index(calls(cluster), call); !strings.HasPrefix(call, "GET") && strings.Contains(call, "/nodes/pve2/") {
				t.Errorf("call %d: %s", after, call)
			}
		}
		got, err := c.GetMachine(t.Context(), m.ID)
		if err != nil || got.Marks != (backends.Marks{}) || got.Name != "theirs" {
			t.Errorf("%+v, %v", got, err)
		}
		if listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{}); err != nil || len(listed) != 0 {
			t.Errorf("%+v, %v", listed, err)
		}
		v := emulatedVM(t, cluster, m.ID)
		if fmt.Sprint(v.Config) != fmt.Sprint(before) || !v.Running {
			t.Errorf("%v, before %v", v.Config, before)
		}
		// Planned anew, it gets another VMID.
		if again := mustCreate(t, c, spec); again.ID == m.ID {
			t.Error("made in the stranger's VMID")
		}
	})
}

// TestGone holds what is no machine any more: a VMID that is free, a container's, a
// template's.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		cluster.Delete(atoi(t, m.ID))
		for _, id := range []string{m.ID, "150", "9000"} {
			_, err := c.GetMachine(t.Context(), id)
			wantCode(t, err, backends.NotFound)
		}
		wantCode(t, c.DeleteMachine(t.Context(), m), backends.NotFound)
		_, err := c.GetMachine(t.Context(), "07")
		wantCode(t, err, backends.InvalidInput)
	})
}

// TestHiddenIsNotGone: what the token doesn't see is not taken for gone.
func TestHiddenIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		cluster.SetDenials(emulated.Denials{{Path: "/vms/" + m.ID, Privilege: "VM.Audit"}})
		if got, err := c.GetMachine(t.Context(), m.ID); err != nil || !got.Partial || got.Marks.Managed {
			t.Errorf("%+v, %v", got, err)
		}
		wantCode(t, c.DeleteMachine(t.Context(), m), backends.AccessDenied)
	})
}

// TestCopyIsNobodys copies one of our VMs by hand, tags, description and all.
func TestCopyIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		send(t, cluster, "POST", "/nodes/pve1/qemu/"+m.ID+"/clone", "newid=777&full=1")
		if v := emulatedVM(t, cluster, "777"); !slices.Contains(v.Tags, ManagedTag) {
			t.Fatalf("no copy of the tags: %v", v.Tags)
		}
		got, err := c.GetMachine(t.Context(), "777")
		if err != nil || got.Marks.Managed {
			t.Errorf("%+v, %v", got, err)
		}
		listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{})
		if err != nil || len(listed) != 1 || listed[0].ID != m.ID {
			t.Errorf("%+v, %v", listed, err)
		}
		copied := m
		copied.ID = "777"
		wantCode(t, c.DeleteMachine(t.Context(), copied), backends.AccessDenied)
	})
}

// TestNodeDown lists and gets what a node has that is down, partly.
func TestNodeDown(t *testing.T) {
	for _, how := range []string{"offline", "595"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, slow())
				here, there := specOf(1), specOf(2)
				there.Options = backends.Values{"node": "pve2"}
				a, b := mustCreate(t, c, here), mustCreate(t, c, there)
				if err := backends.Sleep(t.Context(), 2*emulated.DefaultLag); err != nil {
					t.Fatal(err)
				}
				if how == "offline" {
					cluster.SetNode("pve2", false)
				} else if err := cluster.AddFault(emulator.Rule{Path: "/api2/json/nodes/pve2/*", Nth: 1, Times: emulator.Forever, Kind: emulator.KindNodeDown}); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: here.Marks.Pool})
				if err != nil || len(listed) != 2 {
					t.Fatal(listed, err)
				}
				if took := time.Since(begun); took > time.Second {
					t.Errorf("the list took %s", took)
				}
				got, err := c.GetMachine(t.Context(), b.ID)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(listed, func(m backends.Machine) bool { return m.ID == b.ID })
				for _, m := range []backends.Machine{listed[i], got} {
					if !m.Partial || m.State != backends.StateUnknown || !m.Marks.Complete || m.Marks.Key != there.Marks.Key || !strings.Contains(m.Message, "pve2") || m.Name != "web-2" {
						t.Errorf("%+v", m)
					}
				}
				if whole := listed[1-i]; whole.ID != a.ID || whole.Partial || whole.State != backends.StateRunning {
					t.Errorf("%+v", whole)
				}
				if addresses, err := c.ReadAddresses(t.Context(), got); err != nil || addresses != nil {
					t.Errorf("%v, %v", addresses, err)
				}
			})
		})
	}
}

// TestCallsOfLists holds the budget of a refresh: 2 calls and one for each node.
func TestCallsOfLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		for i := range 12 {
			spec := specOf(i)
			spec.Options = backends.Values{"node": []string{"pve1", "pve2"}[i%2]}
			mustCreate(t, c, spec)
		}
		cluster.ClearCalls()
		if listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{}); err != nil || len(listed) != 12 {
			t.Fatal(len(listed), err)
		}
		if made := calls(cluster); len(made) != 4 {
			t.Errorf("%v", made)
		}
		// A pool on one node costs nothing of the other.
		spec := specOf(12)
		spec.Marks.Pool = "pool_other"
		mustCreate(t, c, spec)
		cluster.ClearCalls()
		if listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: "pool_other"}); err != nil || len(listed) != 1 {
			t.Fatal(len(listed), err)
		}
		if made := calls(cluster); len(made) != 3 {
			t.Errorf("%v", made)
		}
	})
}

// TestMoved follows a VM to another node.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		cluster.Move(atoi(t, m.ID), "pve2")
		if err := c.Power(t.Context(), m, backends.PowerOff); err != nil {
			t.Fatal(err)
		}
		got, err := c.GetMachine(t.Context(), m.ID)
		if err != nil || got.State != backends.StateStopped {
			t.Errorf("%+v, %v", got, err)
		}
		marks := m.Marks
		marks.Claim = "another"
		cluster.Move(atoi(t, m.ID), "pve1")
		if m, err = c.MarkMachine(t.Context(), m, marks); err != nil {
			t.Fatal(err)
		}
		if v := emulatedVM(t, cluster, m.ID); !slices.Contains(v.Tags, "bc-claim-another") || !strings.Contains(v.Config["description"], "claim=another") {
			t.Errorf("%v %q", v.Tags, v.Config["description"])
		}
	})
}

// TestMarkKeeps writes marks and keeps what others wrote; an unmarked VM is marked.
func TestMarkKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		before := putStranger(cluster, 4711)
		got, err := c.GetMachine(t.Context(), "4711")
		if err != nil {
			t.Fatal(err)
		}
		marks := testSpec().Marks
		marks.Complete = true
		if got, err = c.MarkMachine(t.Context(), got, marks); err != nil || got.Marks != marks {
			t.Fatal(got, err)
		}
		if got, err = c.GetMachine(t.Context(), "4711"); err != nil || got.Marks != marks || got.Offer != "2c-2g" {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, ok := got.Labels["prod"]; !ok || len(got.Labels) != 1 {
			t.Errorf("labels %v", got.Labels)
		}
		v := emulatedVM(t, cluster, "4711")
		if !strings.HasSuffix(v.Config["description"], "hands off") || !slices.Contains(v.Tags, "prod") {
			t.Errorf("%q, %v", v.Config["description"], v.Tags)
		}
		if _, err = c.MarkMachine(t.Context(), got, backends.Marks{}); err != nil {
			t.Fatal(err)
		}
		v = emulatedVM(t, cluster, "4711")
		if v.Config["description"] != before["description"] || v.Config["tags"] != before["tags"] {
			t.Errorf("%q %q", v.Config["description"], v.Config["tags"])
		}
	})
}

func TestDelete(t *testing.T) {
	for name, arrange := range map[string]func(*emulated.Service, int) []emulator.Rule{
		"running": func(*emulated.Service, int) []emulator.Rule { return nil },
		"stopped": func(s *emulated.Service, vmid int) []emulator.Rule { s.SetPower(vmid, false); return nil },
		"ha":      func(s *emulated.Service, vmid int) []emulator.Rule { s.SetHA(vmid, "started"); return nil },
		"lost answer": func(*emulated.Service, int) []emulator.Rule {
			return []emulator.Rule{{Method: "DELETE", Path: "*", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer}}
		},
		"lock": func(*emulated.Service, int) []emulator.Rule {
			return []emulator.Rule{{Method: "DELETE", Path: "*", Nth: 1, Times: 2, Kind: emulator.KindLockTimeout}}
		},
		"half made": func(s *emulated.Service, vmid int) []emulator.Rule { s.SetOption(vmid, "tags", ""); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, slow())
				m := mustCreate(t, c, testSpec())
				volumes := len(cluster.Volumes())
				for _, rule := range arrange(cluster, atoi(t, m.ID)) {
					if err := cluster.AddFault(rule); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.DeleteMachine(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if n := len(cluster.Machines()); n != 0 {
					t.Errorf("%d VMs are left", n)
				}
				if now := len(cluster.Volumes()); now >= volumes {
					t.Errorf("%d volumes, before %d", now, volumes)
				}
				_, err := c.GetMachine(t.Context(), m.ID)
				wantCode(t, err, backends.NotFound)
			})
		})
	}
}

// TestDeleteKeepsWhatIsNotNamed: a disk that has the VMID in its name, but that the VM
// doesn't name, may be another cluster's.
func TestDeleteKeepsWhatIsNotNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		before := cluster.Volumes()
		send(t, cluster, "PUT", "/nodes/pve1/qemu/"+m.ID+"/config", "scsi1=shared:8")
		after := cluster.Volumes()
		i := slices.IndexFunc(after, func(id string) bool { return !slices.Contains(before, id) })
		if i < 0 {
			t.Fatal(after)
		}
		cluster.SetOption(atoi(t, m.ID), "scsi1", "")
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if left := cluster.Volumes(); !slices.Contains(left, after[i]) {
			t.Errorf("%s is gone: %v", after[i], left)
		}
	})
}

// TestDeleteAfterLostAnswer lets a stranger take the VMID before the deletion, whose
// answer was lost, is asked for again.
func TestDeleteAfterLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		if err := cluster.AddFault(emulator.Rule{Method: "DELETE", Path: "*", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.DeleteMachine(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
		for len(cluster.Machines()) > 0 {
			if err := backends.Sleep(t.Context(), 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		putStranger(cluster, atoi(t, m.ID))
		wg.Wait()
		if v := emulatedVM(t, cluster, m.ID); v.Name != "theirs" {
			t.Errorf("%+v", v)
		}
	})
}

func TestProtection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		shown := func() bool {
			t.Helper()
			got, err := c.GetMachine(t.Context(), m.ID)
			listed, listErr := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{})
			if err != nil || listErr != nil || len(listed) != 1 || listed[0].Protected != got.Protected {
				t.Fatal(got, listed, err, listErr)
			}
			return got.Protected
		}
		if err := c.Protect(t.Context(), m, true); err != nil || !shown() {
			t.Fatal(err, shown())
		}
		if e := wantCode(t, c.DeleteMachine(t.Context(), m), backends.InvalidState); e.Reason != backends.ReasonProtected {
			t.Error(e)
		}
		if v := emulatedVM(t, cluster, m.ID); !v.Running || v.Config["protection"] != "1" {
			t.Errorf("%+v", v)
		}
		if err := c.Protect(t.Context(), m, false); err != nil || shown() {
			t.Fatal(err, shown())
		}
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	})
}
