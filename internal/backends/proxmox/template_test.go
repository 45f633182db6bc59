// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// templateWith is a cluster whose template debian-13 has options of its own.
func templateWith(t *testing.T, options map[string]string) (*Client, *emulated.Service) {
	t.Helper()
	c, cluster := emulate(t, slow())
	for name, value := range options {
		cluster.SetOption(9000, name, value)
	}
	return c, cluster
}

// TestTemplateStays holds what a clone has of its template: all that no wish is
// about, and what would be in the way of the wish as far as it can stay.
func TestTemplateStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := map[string]string{
			"bios": "ovmf", "vga": "virtio", "machine": "q35", "hookscript": "local:snippets/hook.pl", "onboot": "1", "startup": "order=2",
			"balloon": "8192", "memory": "16384", "sockets": "4", "vcpus": "1", "ciuser": "admin",
		}
		c, cluster := templateWith(t, own)
		v := emulatedVM(t, cluster, mustCreate(t, c, testSpec()).ID)
		for _, name := range []string{"bios", "vga", "machine", "hookscript", "onboot", "startup", "ciuser", "agent", "scsihw", "serial0"} {
			if want := emulatedVM(t, cluster, "9000").Config[name]; want == "" || v.Config[name] != want {
				t.Errorf("%s is %q, the template's is %q", name, v.Config[name], want)
			}
		}
		for name, want := range map[string]string{"cores": "2", "sockets": "1", "vcpus": "2", "memory": "4096", "balloon": "4096"} {
			if v.Config[name] != want {
				t.Errorf("%s is %q, want %s", name, v.Config[name], want)
			}
		}
	})
}

// TestSmallBalloonStays: a balloon that fits is the template's choice.
func TestSmallBalloonStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := templateWith(t, map[string]string{"balloon": "512"})
		if v := emulatedVM(t, cluster, mustCreate(t, c, testSpec()).ID); v.Config["balloon"] != "512" {
			t.Errorf("%v", v.Config)
		}
	})
}

// TestLargeDiskStays: a disk is never shrunk, nor is it asked for.
func TestLargeDiskStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		spec := testSpec()
		spec.Offer = "2c-4g-2d"
		v := emulatedVM(t, cluster, mustCreate(t, c, spec).ID)
		if size, _ := (vmConfig{"scsi0": scalar(v.Config["scsi0"])}).diskSize("scsi0"); size != 3*gib {
			t.Errorf("%q", v.Config["scsi0"])
		}
		if slices.ContainsFunc(calls(cluster), func(call string) bool { return strings.HasSuffix(call, "/resize") }) {
			t.Errorf("%v", calls(cluster))
		}
	})
}

// TestProtectedTemplate clones a template that is protected: that is no wish for the
// clone, which could never be deleted again.
func TestProtectedTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := templateWith(t, map[string]string{"protection": "1"})
		m := mustCreate(t, c, testSpec())
		if v := emulatedVM(t, cluster, m.ID); v.Config["protection"] == "1" || m.Protected {
			t.Errorf("%v, %+v", v.Config, m)
		}
		// One that a wish protects is so by flag and tag, also when it is finished twice.
		second, err := c.MakeMachine(t.Context(), specOf(2))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if second, err = c.FinishMachine(t.Context(), second, specOf(2)); err != nil {
				t.Fatal(err)
			}
			if err := c.Protect(t.Context(), second, true); err != nil {
				t.Fatal(err)
			}
			if v := emulatedVM(t, cluster, second.ID); v.Config["protection"] != "1" || !slices.Contains(v.Tags, "bc-protected-yes") {
				t.Errorf("%v", v.Config)
			}
		}
		cluster.ClearCalls()
		if again, err := c.FinishMachine(t.Context(), second, specOf(2)); err != nil || !again.Protected {
			t.Errorf("%+v, %v", again, err)
		}
		// A clone that nobody configured yet can be deleted.
		half, err := c.MakeMachine(t.Context(), specOf(3))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteMachine(t.Context(), half); err != nil {
			t.Error(err)
		}
		cluster.SetOption(atoi(t, m.ID), "protection", "") // as a clone of another template has it
		spec := testSpec()
		if err := c.Reinstall(t.Context(), m, spec); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Error(err)
		}
		e := wantCode(t, c.DeleteMachine(t.Context(), second), backends.InvalidState)
		if !strings.Contains(e.Remedy, "deletion_protection = false") {
			t.Error(e.Remedy)
		}
	})
}

// TestProtectedByHand is refused as well, with the way out that there is.
func TestProtectedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		cluster.SetOption(atoi(t, m.ID), "protection", "1")
		e := wantCode(t, c.DeleteMachine(t.Context(), m), backends.InvalidState)
		if e.Reason != backends.ReasonProtected || !strings.Contains(e.Remedy, "qm set "+m.ID+" --protection 0") {
			t.Error(e, e.Remedy)
		}
		if v := emulatedVM(t, cluster, m.ID); !v.Running {
			t.Error("it was stopped")
		}
	})
}

// TestCustomKeeps merges our files into what a template names for cloud-init.
func TestCustomKeeps(t *testing.T) {
	c := clientOf(t, &script{}, backends.Values{"snippets": backends.Values{"storage": "nas", "directory": "/mnt"}})
	spec := testSpec()
	spec.UserData = "#cloud-config\na: 1\n"
	files, err := snippetsFor(spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.UserData = "#cloud-config\na: 2\n"
	old, err := snippetsFor(spec)
	if err != nil {
		t.Fatal(err)
	}
	ours := "meta=nas:snippets/" + files[0].name + ",user=nas:snippets/" + files[1].name
	for has, want := range map[string]string{
		"":                                       ours,
		"vendor=local:snippets/agent.yaml":       "vendor=local:snippets/agent.yaml," + ours,
		"user=local:snippets/theirs.yaml":        ours,
		c.custom("vendor=local:snippets/v", old): "vendor=local:snippets/v," + ours,
	} {
		if got := c.custom(has, files); !properties(got, "user").same(properties(want, "user")) {
			t.Errorf("%q: %s", has, got)
		}
	}
	if got := c.custom("vendor=local:snippets/v,"+ours, nil); got != "vendor=local:snippets/v" {
		t.Errorf("%s", got)
	}
}

// TestPlacement holds where a clone goes, and what it shares with its template.
func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		account backends.Values
		options backends.Values
		image   string
		node    string
		pool    string
		disk    string // a part of the boot disk
	}{
		"by default":      {image: "9000", node: "pve1", disk: "shared:vm-"},
		"linked":          {account: backends.Values{"full_clone": false}, image: "9000", node: "pve1", disk: "shared:base-9000-disk-0/vm-"},
		"storage":         {account: backends.Values{"storage": "shared"}, image: "9001", node: "pve1", disk: "shared:vm-"},
		"storage, node":   {account: backends.Values{"storage": "shared", "node": "pve2", "pool": "tofu"}, image: "9000", node: "pve2", pool: "tofu", disk: "shared:vm-"},
		"the machine's":   {account: backends.Values{"node": "pve1"}, options: backends.Values{"node": "pve2", "pool_id": "tofu"}, image: "9000", node: "pve2", pool: "tofu", disk: "shared:vm-"},
		"name and node":   {options: backends.Values{"node": "pve2"}, image: "ubuntu-24.04", node: "pve2", disk: "local-lvm:vm-"},
		"a node's copies": {account: backends.Values{"node": "pve1"}, image: "ubuntu-24.04", node: "pve1", disk: "local-lvm:vm-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{}, test.account)
				spec := testSpec()
				spec.Image, spec.Options = test.image, test.options
				v := emulatedVM(t, cluster, mustCreate(t, c, spec).ID)
				if v.Node != test.node || v.Pool != test.pool || !strings.HasPrefix(v.Config["scsi0"], test.disk) {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

// TestCardsAndNames hands a guest its network, all of it in one call.
func TestCardsAndNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{Bridges: []string{"vmbr0", "lan"}})
		spec := testSpec()
		spec.Options = backends.Values{
			"vm_id": int64(4711),
			"ip_config": []any{
				backends.Values{"ipv4": "10.0.0.5/24", "gateway": "10.0.0.1", "ipv6": "auto"},
				backends.Values{"ipv4": "dhcp"},
			},
			"dns": backends.Values{"servers": []any{"1.1.1.1", "9.9.9.9"}, "domain": "example.com"},
			"network_devices": []any{
				backends.Values{"model": "virtio", "mac_address": "bc:24:11:ab:cd:ef", "vlan_id": int64(5), "mtu": int64(9000)},
				backends.Values{"model": "e1000", "bridge": "lan", "firewall": true},
			},
		}
		m := mustCreate(t, c, spec)
		v := emulatedVM(t, cluster, m.ID)
		for name, want := range map[string]string{
			"ipconfig0": "ip=10.0.0.5/24,gw=10.0.0.1,ip6=auto", "ipconfig1": "ip=dhcp", "nameserver": "1.1.1.1 9.9.9.9", "searchdomain": "example.com",
			"net0": "virtio=BC:24:11:AB:CD:EF,bridge=vmbr0,mtu=9000,tag=5",
		} {
			if v.Config[name] != want {
				t.Errorf("%s is %q, want %q", name, v.Config[name], want)
			}
		}
		if second := v.Config["net1"]; m.ID != "4711" || !strings.HasPrefix(second, "e1000=") || !strings.HasSuffix(second, ",bridge=lan,firewall=1") {
			t.Errorf("%s, %s", m.ID, second)
		}
	})
}
