// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"maps"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// RemakeMachine implements [backends.Remaker]: the template is cloned into the VMID that
// the destroyed VM had, whichever slot of its key that is.
func (c *Client) RemakeMachine(ctx context.Context, id string, spec backends.MachineSpec) (backends.Machine, error) {
	what := "Reinstalling VM " + spec.Name
	vmid, err := vmidOf(what, id)
	if err != nil {
		return backends.Machine{}, err
	}
	options := maps.Clone(spec.Options)
	if options == nil {
		options = backends.Values{}
	}
	options["vm_id"] = int64(vmid)
	spec.Options = options
	m, err := c.MakeMachine(ctx, spec)
	if _, taken := errors.AsType[*backends.NameTaken](err); !taken && backends.HasCode(err, backends.Conflict) {
		return m, vmidLost(what, vmid)
	}
	return m, err
}

// vmidLost is the end of a reinstallation whose VMID another VM took meanwhile.
func vmidLost(what string, vmid int) error {
	return backends.Errorf(backends.Conflict, "%s: another VM took the VMID %d after the old one was destroyed.", what, vmid).
		WithRemedy("The machine is gone: plan again, which makes it anew.")
}
