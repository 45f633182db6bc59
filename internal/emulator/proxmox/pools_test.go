// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestPools puts a VM into pools and takes it out, by both paths.
func TestPools(t *testing.T) {
	s, a := stopped(t, proxmox.Options{Pools: []string{"one", "two"}})
	in := func(want string) {
		t.Helper()
		if got := machine(t, s, 101).Pool; got != want {
			t.Errorf("in the pool %q, want %q", got, want)
		}
	}
	a.ok("PUT", "/pools", "poolid=one", "vms=101")
	in("one")
	a.refused(500, "update pools failed: VM 101 is already a pool member", "PUT", "/pools", "poolid=one", "vms=101")
	a.refused(500, "update pools failed: VM 101 belongs already to pool 'one' and 'allow-move' is not set", "PUT", "/pools/two", "vms=101")
	a.refused(500, "update pools failed: pool 'nope' does not exist", "PUT", "/pools", "poolid=nope", "vms=101")
	in("one")
	a.ok("PUT", "/pools/two", "vms=101", "allow-move=1")
	in("two")
	a.refused(500, "update pools failed: VM 101 is not a pool member", "PUT", "/pools", "poolid=one", "vms=101", "delete=1")
	a.refused(400, "Parameter verification failed.", "PUT", "/pools", "poolid=one", "vms=web")
	a.refused(400, "Parameter verification failed.", "PUT", "/pools", "vms=101")
	addFault(t, s, emulator.Rule{Method: "PUT", Path: "/pools", Kind: emulator.KindLockTimeout})
	a.refused(500, "update pools failed: cfs-lock 'file-user_cfg' error: got lock request timeout", "PUT", "/pools", "poolid=two", "vms=101", "delete=1")
	in("two")
	a.ok("PUT", "/pools", "poolid=two", "vms=101", "delete=1")
	in("")
}

// TestPoolRights: a change needs the right to both pools, and to the VM.
func TestPoolRights(t *testing.T) {
	s, a := stopped(t, proxmox.Options{Pools: []string{"one", "two"}})
	a.ok("PUT", "/pools", "poolid=one", "vms=101")
	for _, test := range []struct {
		denied proxmox.Denials
		reason string
	}{
		{proxmox.Denials{{Path: "/pool/two", Privilege: "Pool.Allocate"}}, "Permission check failed (/pool/two, Pool.Allocate)"},
		{proxmox.Denials{{Path: "/pool/one", Privilege: "Pool.Allocate"}}, "Permission check failed (/pool/one, Pool.Allocate)"},
		{proxmox.Denials{{Path: "/vms/101", Privilege: "*"}}, "Permission check failed (/vms/101, Permissions.Modify|VM.Allocate)"},
	} {
		s.SetDenials(test.denied)
		a.refused(403, test.reason, "PUT", "/pools", "poolid=two", "vms=101", "allow-move=1")
		if got := machine(t, s, 101).Pool; got != "one" {
			t.Errorf("%v: in the pool %q", test.denied, got)
		}
	}
	s.SetDenials(nil)
	a.ok("PUT", "/pools", "poolid=two", "vms=101", "allow-move=1")
}
