// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
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
		for _, name := range []string{"name", "cores", "memory", "net0", "ipconfig0", "sshkeys", "protection"} {
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
