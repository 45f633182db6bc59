// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// CheckEdit implements [backends.Editor]: another VM with the new key, a drive for
// cloud-init that isn't there, bridges that the VM's node doesn't have, and the rights
// of the token.
func (c *Client) CheckEdit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (
	warnings []string, issues []*backends.Error, err error) {
	what := "Checking the change of " + called(m)
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return nil, nil, err
	}
	if m.Partial {
		return nil, nil, nil // its node is down: what can't be read can't be checked
	}
	if key := to.Marks.Key; key != "" && m.Marks.Key != "" && key != m.Marks.Key {
		issue, err := c.keyTaken(ctx, vmid, to)
		if err != nil {
			return nil, nil, err
		}
		if issue != nil {
			issues = append(issues, issue)
		}
	}
	v, err := c.find(ctx, what, vmid, c.lastAt(vmid))
	if err != nil || v.row.Type != "qemu" {
		return nil, issues, err
	}
	n, _ := v.config.note(vmid)
	n.marks = to.Marks
	ch := edited(v.config, vmid, from, to, n)
	if issue := backends.AsError(noCloudInit(v, to)); ch.network && issue != nil {
		issues = append(issues, issue)
	}
	bridges, err := c.checkBridges(ctx, changedBridges(from, to), v.node)
	if err != nil {
		return nil, nil, err
	}
	issues = append(issues, bridges...)
	rights, err := c.lacking(ctx, c.editNeeds(v, from, to, ch))
	return nil, append(issues, rights...), err
}

// keyTaken is checkKey's refusal as an issue of a plan.
func (c *Client) keyTaken(ctx context.Context, vmid int, to backends.MachineSpec) (*backends.Error, error) {
	err := c.checkKey(ctx, vmid, to)
	taken, is := errors.AsType[*backends.NameTaken](err)
	if !is {
		return nil, err
	}
	issue := *backends.AsError(taken.Unwrap())
	issue.Err = taken
	return issue.At("name"), nil
}

// changedBridges is a wish's network where it differs from an earlier one's.
func changedBridges(from, to backends.MachineSpec) backends.MachineSpec {
	if slices.Equal(bridgeNames(from), bridgeNames(to)) {
		return backends.MachineSpec{}
	}
	return to
}

func bridgeNames(spec backends.MachineSpec) []string {
	var out []string
	for _, b := range bridgesOf(spec) {
		out = append(out, b.name)
	}
	return out
}

// editNeeds are the privileges for an edit. Those that every account with the token has
// anyway, for tags and descriptions, are asked for too: an edit without them would end
// in the middle.
func (c *Client) editNeeds(v *vm, from, to backends.MachineSpec, ch *change) []need {
	options := slices.Concat(slices.Collect(maps.Keys(ch.set)), ch.drop)
	if len(options) == 0 && !to.Options.Has("pool_id") {
		return nil
	}
	out := optionPrivileges(v.aclPath(), options)
	if ch.off {
		out = append(out, need{[]string{v.aclPath()}, []string{"VM.PowerMgmt"}})
	}
	if pool := to.Options.String("pool_id"); pool != "" && pool != from.Options.String("pool_id") {
		out = append(out,
			need{[]string{"/pool/" + pool}, []string{"Pool.Allocate"}},
			need{[]string{v.aclPath()}, []string{"VM.Allocate", "Permissions.Modify"}})
	}
	return out
}
