// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// unseen is what is known of a machine whose VMID something has that the token doesn't
// see: hidden is the error that says so, and any other error is returned as it is.
//
//   - A clone that runs may be ours: a token whose rights come from a resource pool sees
//     it when it is in the pool, which is the last thing that a clone does. It is partial.
//   - Where the account's VMs are in a resource pool, and the token may see what is in
//     it, what it doesn't see is another's, and ours is gone: NOT_FOUND, with a warning,
//     since someone may have taken ours out of the pool.
//   - Else it may be ours, and the token has lost the right to see it: that can't be
//     told. It is partial, so that plans go on, and nothing is made or changed.
func (c *Client) unseen(ctx context.Context, what string, vmid int, hidden error) (backends.Machine, error) {
	refusal := backends.AsError(hidden)
	if refusal == nil || refusal.Code != backends.AccessDenied {
		return backends.Machine{}, hidden
	}
	runs, err := c.anyCloneRuns(ctx)
	switch {
	case err != nil:
		return backends.Machine{}, err
	case runs:
		m := c.machine(vmid, "", note{}, nil)
		m.Partial, m.State = true, backends.StatePending
		m.Message = fmt.Sprintf("Something that the account's token doesn't see has the VMID %d, and a clone runs which may be it.", vmid)
		return m, nil
	}
	// The clone may have ended since the list was read.
	if row, err := c.locate(ctx, what, vmid); err == nil {
		return c.read(ctx, what, row)
	} else if !backends.HasCode(err, backends.AccessDenied) {
		return backends.Machine{}, err
	}
	elsewhere, err := c.poolShows(ctx)
	if err != nil {
		return backends.Machine{}, err
	}
	if !elsewhere {
		m := c.machine(vmid, "", note{}, nil)
		m.Partial, m.State, m.Message = true, backends.StateUnknown, refusal.Message+" "+refusal.Remedy
		return m, nil
	}
	backends.Warn(ctx, fmt.Sprintf("The VMID %d is taken by something that is not in the resource pool %s, and that the account's token doesn't see: "+
		"so the VM that had it, which was in that pool, counts as gone. If it is that VM, and was only taken out of the pool, don't apply: put it back, or give the token VM.Audit on /vms/%d.",
		vmid, c.account.pool, vmid))
	return backends.Machine{}, gone(what, vmid)
}

// anyCloneRuns tells whether a clone runs on a node that is up, as far as the token may
// know: its own always are.
func (c *Client) anyCloneRuns(ctx context.Context) (bool, error) {
	nodes, err := c.nodes.get(ctx, recent)
	if err != nil {
		return false, err
	}
	for _, n := range nodes {
		if n.Status == "offline" {
			continue
		}
		runs, err := c.cloneRuns(ctx, n.Node)
		if runs || err != nil && !isNodeDown(err) {
			return runs, err
		}
	}
	return false, nil
}

// poolShows tells whether the account's VMs are in a resource pool whose VMs the token
// may see.
func (c *Client) poolShows(ctx context.Context) (bool, error) {
	if c.account.pool == "" {
		return false, nil
	}
	has, err := c.fetchPrivileges(ctx, "/pool/"+c.account.pool)
	return has.hasAny("VM.Audit"), err
}

// anonymous is a VM that is being made or destroyed, and doesn't say whose it is.
func (c *Client) anonymous(v *vm) backends.Machine {
	m := c.machine(v.vmid, "", note{}, nil)
	m.Partial = true
	m.State, _ = stateOf("", "", v.config.get("lock"))
	m.Message = fmt.Sprintf("A task makes or destroys the VM %d on the node %s, which doesn't say yet whose it is. "+
		"If there is no such task (see the cluster's task list), the node crashed meanwhile: there, \"qm unlock %d\" removes the lock, and \"qm destroy %d\" what is left of the VM.",
		v.vmid, v.node, v.vmid, v.vmid)
	return m
}
