// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"maps"
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

// TestReinstall keeps what it says it keeps.
func TestReinstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow(), backends.Values{"pool": "tofu"})
		spec := testSpec()
		spec.Offer = "2c-4g-20d"
		spec.SSHKeys = []string{"ssh-ed25519 AAAA me"}
		spec.Labels = map[string]string{"role": "web"}
		spec.Options = static(7)
		spec.Options["cpu_type"] = "host"
		m := mustCreate(t, c, spec)
		if err := c.Protect(t.Context(), m, true); err != nil {
			t.Fatal(err)
		}
		before := emulatedVM(t, cluster, m.ID)
		spec.Image = "pve1/9001"
		if err := c.Reinstall(t.Context(), m, spec); err != nil {
			t.Fatal(err)
		}
		after := emulatedVM(t, cluster, m.ID)
		for _, name := range []string{"name", "cores", "cpu", "memory", "net0", "ipconfig0", "sshkeys", "protection"} {
			if before.Config[name] == "" || after.Config[name] != before.Config[name] {
				t.Errorf("%s is %q, was %q", name, after.Config[name], before.Config[name])
			}
		}
		if size, _ := (vmConfig{"scsi0": scalar(after.Config["scsi0"])}).diskSize("scsi0"); size != 20*gib {
			t.Errorf("the disk is %q", after.Config["scsi0"])
		}
		if !after.Running || after.Pool != "tofu" || after.Config["smbios1"] == before.Config["smbios1"] {
			t.Errorf("%+v", after)
		}
		got, err := c.GetMachine(t.Context(), m.ID)
		marks := spec.Marks
		marks.Complete = true
		if err != nil || got.Marks != marks || got.ImageID != "9001" || !got.Protected {
			t.Errorf("%+v, %v", got, err)
		}
		if got.Labels["role"] != "web" {
			t.Errorf("%v", got.Labels)
		}
	})
}

// TestReinstallThatCantBe is refused before anything is destroyed.
func TestReinstallThatCantBe(t *testing.T) {
	for name, test := range map[string]struct {
		image string
		deny  emulated.Denials
		want  string
	}{
		"a template on another node's storage": {image: "9001", want: "uses local storage"},
		"no right to clone":                    {image: "9000", deny: emulated.Denials{{Path: "/vms/9000", Privilege: "VM.Clone"}}, want: "VM.Clone"},
		"no right to the bridge":               {image: "9000", deny: emulated.Denials{{Path: "/sdn", Privilege: "SDN.Use"}}, want: "SDN.Use"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, slow(), backends.Values{"node": "pve2"})
				m := mustCreate(t, c, testSpec())
				before := emulatedVM(t, cluster, m.ID)
				cluster.SetDenials(test.deny)
				spec := testSpec()
				spec.Image = test.image
				if e := wantCode(t, c.Reinstall(t.Context(), m, spec), backends.ProviderError); !strings.Contains(e.Message, test.want) {
					t.Error(e)
				}
				if after := emulatedVM(t, cluster, m.ID); !after.Running || !maps.Equal(after.Config, before.Config) {
					t.Errorf("%+v", after)
				}
			})
		})
	}
}

// TestReinstallOfHA reinstalls what the HA manager has, and says what it forgets; of
// other VMs nothing is forgotten.
func TestReinstallOfHA(t *testing.T) {
	for _, ha := range []string{"", "started"} {
		synctest.Test(t, func(t *testing.T) {
			options := slow()
			options.PlainHTTP = true
			cluster, err := emulated.New(options)
			if err != nil {
				t.Fatal(err)
			}
			network := &queries{RoundTripper: emulator.Transport(cluster)}
			c := clientOf(t, network)
			m := mustCreate(t, c, testSpec())
			cluster.SetHA(atoi(t, m.ID), ha)
			var said []string
			ctx := backends.WithWarnings(t.Context(), func(text string) { said = append(said, text) })
			if err := c.Reinstall(ctx, m, testSpec()); err != nil {
				t.Fatal(err)
			}
			if v := emulatedVM(t, cluster, m.ID); !v.Running || (len(said) == 1) != (ha != "") {
				t.Errorf("%q: %+v, %q", ha, v, said)
			}
			if purged := slices.ContainsFunc(network.deletes, func(q string) bool { return strings.Contains(q, "purge=1") }); purged != (ha != "") {
				t.Errorf("%q: %q", ha, network.deletes)
			}
		})
	}
}

// queries keeps what deletions ask for.
type queries struct {
	http.RoundTripper
	deletes []string
}

func (q *queries) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		q.deletes = append(q.deletes, r.URL.RawQuery)
	}
	return q.RoundTripper.RoundTrip(r)
}

// TestReinstallOnAnotherNode keeps a VM where it is, not where the template is.
func TestReinstallOnAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow(), backends.Values{"node": "pve2"})
		m := mustCreate(t, c, testSpec())
		uuid := emulatedVM(t, cluster, m.ID).Config["smbios1"]
		if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
			t.Fatal(err)
		}
		if v := emulatedVM(t, cluster, m.ID); v.Node != "pve2" || v.Config["smbios1"] == uuid || !v.Running {
			t.Errorf("%+v", v)
		}
	})
}

// TestKilledReinstall ends a run while the new clone is made: the next one finishes
// it, and what people wrote into the description is still there.
func TestKilledReinstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		spec := testSpec()
		spec.Labels, spec.Options = map[string]string{"role": "web"}, static(7)
		m := mustCreate(t, c, spec)
		cluster.SetOption(atoi(t, m.ID), "description", emulatedVM(t, cluster, m.ID).Config["description"]+"\n\nask Ann")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Reinstall(ctx, m, spec); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for destroyed := false; !destroyed || len(cluster.Machines()) == 0; {
			destroyed = destroyed || len(cluster.Machines()) == 0
			if err := backends.Sleep(t.Context(), 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		wg.Wait()
		if err := backends.Sleep(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		next := clientOf(t, emulator.Transport(cluster))
		half, err := next.GetMachine(t.Context(), m.ID)
		if err != nil || half.Marks.Complete || half.Marks.Key != testKey || half.Marks.Claim != testClaim {
			t.Fatalf("%+v, %v", half, err)
		}
		if _, err := complete(t.Context(), next, half, spec); err != nil {
			t.Fatal(err)
		}
		v := emulatedVM(t, cluster, m.ID)
		if !v.Running || v.Config["ipconfig0"] == "" || !slices.Contains(v.Tags, "role.web") || !slices.Contains(v.Tags, ManagedTag) ||
			!strings.Contains(v.Config["description"], "ask Ann") {
			t.Errorf("%+v", v)
		}
	})
}

// TestReinstallRace lets a stranger take the VMID between the two halves.
func TestReinstallRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		m := mustCreate(t, c, testSpec())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { err = c.Reinstall(t.Context(), m, testSpec()) })
		for len(cluster.Machines()) > 0 {
			if err := backends.Sleep(t.Context(), 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		putStranger(cluster, atoi(t, m.ID))
		wg.Wait()
		wantCode(t, err, backends.Conflict)
		if v := emulatedVM(t, cluster, m.ID); v.Name != "theirs" || v.Config["description"] != "hands off" {
			t.Errorf("%+v", v)
		}
	})
}

// TestReinstallOfOneThatIsOff starts no guest that is to be off.
func TestReinstallOfOneThatIsOff(t *testing.T) {
	for _, running := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, slow())
			m := mustCreate(t, c, testSpec())
			cluster.SetPower(atoi(t, m.ID), running)
			cluster.ClearCalls()
			spec := testSpec()
			spec.Start = false
			if err := c.Reinstall(t.Context(), m, spec); err != nil {
				t.Fatal(err)
			}
			if v := emulatedVM(t, cluster, m.ID); v.Running || !slices.Contains(v.Tags, ManagedTag) {
				t.Errorf("%+v", v)
			}
			for _, call := range calls(cluster) {
				if strings.HasSuffix(call, "/status/start") {
					t.Error("it was started")
				}
			}
		})
	}
}

// TestReinstallThatIsStopped: who is told to stop while the template is locked, so that
// it isn't known whether it can be cloned, destroys nothing.
func TestReinstallThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		m := mustCreate(t, c, testSpec())
		cluster.SetOption(9000, "lock", "backup")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		call, done := backends.Grace(ctx)
		defer done()
		if err := c.Reinstall(call, m, testSpec()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := backends.Sleep(t.Context(), time.Minute); err != nil { // for tasks that were begun
			t.Error(err)
		}
		if v := emulatedVM(t, cluster, m.ID); !v.Running {
			t.Errorf("%+v", v)
		}
	})
}
