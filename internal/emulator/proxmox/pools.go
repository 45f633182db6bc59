// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// poolParams are the parameters of a change of a pool, which has two paths: the pool's
// own, which is the older, and the one of all pools.
var poolParams = []param{
	{name: "allow-move", kind: boolean, optional: true},
	{name: "comment", optional: true},
	{name: "delete", kind: boolean, optional: true},
	{name: "storage", optional: true, format: "pve-storage-id-list"},
	{name: "vms", optional: true, format: "pve-vmid-list"},
}

// poolOf is the pool that a call names, in its path or among its parameters.
func (c *call) poolOf() string {
	if name, inPath := c.ids["poolid"]; inPath {
		return name
	}
	return c.params["poolid"]
}

// mayChangePool wants the right to a pool before anything else is looked at: also
// before it is known whether there is one.
func mayChangePool(c *call) error { return c.need("/pool/"+c.poolOf(), "Pool.Allocate") }

// changePool puts VMs into a pool, or takes them out of it. What else a pool has, a
// comment and storages, is taken and not kept: nothing here shows it.
func changePool(c *call) (any, error) {
	if _, ok := c.fault(emulator.KindLockTimeout); ok {
		return nil, poolsUnchanged("cfs-lock 'file-user_cfg' error: got lock request timeout")
	}
	name := c.poolOf()
	if !slices.Contains(c.p.Pools, name) {
		return nil, poolsUnchanged("pool '%s' does not exist", name)
	}
	var moved []*guest
	for _, text := range splitList(c.params["vms"]) {
		if err := c.needAny("/vms/"+text, "Permissions.Modify", "VM.Allocate"); err != nil {
			return nil, err
		}
		g := c.p.VMs[atoi(text)]
		was := ""
		if g != nil {
			was = g.Pool
			moved = append(moved, g)
		}
		if err := c.checkMember(name, text, was); err != nil {
			return nil, err
		}
	}
	if c.flag("delete") {
		name = ""
	}
	for _, g := range moved {
		g.Pool = name
	}
	return nil, nil
}

// checkMember checks the move of one VM that is in the pool was ("": in none).
func (c *call) checkMember(name, vmid, was string) error {
	switch {
	case c.flag("delete") && was != name:
		return poolsUnchanged("VM %s is not a pool member", vmid)
	case c.flag("delete"):
	case was == name:
		return poolsUnchanged("VM %s is already a pool member", vmid)
	case was != "" && !c.flag("allow-move"):
		return poolsUnchanged("VM %s belongs already to pool '%s' and 'allow-move' is not set", vmid, was)
	case was != "":
		return c.need("/pool/"+was, "Pool.Allocate")
	}
	return nil
}

// poolsUnchanged is the refusal of a change of pools, in the words of the real one.
func poolsUnchanged(format string, args ...any) error {
	return died("update pools failed: "+format, args...)
}
