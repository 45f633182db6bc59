// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// incomparable are the options that a wish's own don't decide, or that are compared by
// the digest.
var incomparable = []string{
	"name", "description", "tags", "protection", "cores", "sockets", "vcpus", "memory", "balloon", "sshkeys", "cicustom",
}

// HasOptions implements [backends.Comparer] by reading the VM's options: nothing that
// a creation would set differs from what is there. Node, VMID and pool say where a VM
// was made, not what it is, and a tag that is there besides is nobody's business.
func (c *Client) HasOptions(ctx context.Context, id string, spec backends.MachineSpec) (bool, error) {
	what := "Reading VM " + id
	vmid, err := vmidOf(what, id)
	if err != nil {
		return false, err
	}
	v, err := c.find(ctx, what, vmid, c.lastAt(vmid))
	if err != nil || v.row.Type != "qemu" {
		return false, err
	}
	spec.Offer = ""
	options := c.desired(v.config, vmid, spec, note{}, nil)
	for _, name := range incomparable {
		options.Del(name)
	}
	if !spec.Options.Has("ip_config") {
		options.Del("ipconfig0")
	}
	has := v.config.tags()
	missing := slices.ContainsFunc(spec.Options.Strings("tags"), func(tag string) bool { return !slices.Contains(has, tag) })
	return len(options) == 0 && !missing, nil
}
