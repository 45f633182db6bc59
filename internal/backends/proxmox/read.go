// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// nodesAtOnce bounds the nodes of one list that are asked at the same time.
const nodesAtOnce = 8

// GetMachine implements [backends.Backend]. What is a container or a template by now
// is no machine: the machine that had the VMID is gone. One on a node that can't be
// reached is shown as far as the cluster knows it.
func (c *Client) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	what := "Reading VM " + id
	vmid, err := vmidOf(what, id)
	if err != nil {
		return backends.Machine{}, err
	}
	var row vmRow
	for n := 0; ; n++ {
		if row, err = c.locate(ctx, what, vmid); err != nil {
			return backends.Machine{}, err
		}
		m, err := c.read(ctx, what, row)
		switch {
		case err == nil:
			return m, nil
		case isNodeDown(err):
			if n, ok := readTags(vmid, splitTags(row.Tags)); ok {
				return c.partial(row, n), nil
			}
			return backends.Machine{}, err
		case n >= moves || !says(err, textsMissing) && statusOf(err) != http.StatusForbidden:
			return backends.Machine{}, err
		}
		// It moved, or goes: the cluster's list tells.
		if err := c.pause(ctx, n); err != nil {
			return backends.Machine{}, err
		}
	}
}

// read is the VM of a row of the cluster's list.
func (c *Client) read(ctx context.Context, what string, row vmRow) (backends.Machine, error) {
	if row.Type != "qemu" {
		return backends.Machine{}, gone(what, row.vmid())
	}
	config, err := c.config(ctx, what, row.where())
	if err != nil {
		return backends.Machine{}, err
	}
	if config.isTemplate() {
		return backends.Machine{}, gone(what, row.vmid())
	}
	c.seenAt(row.vmid(), row.Node)
	s, err := c.status(ctx, what, row.where())
	if err != nil {
		return backends.Machine{}, err
	}
	return c.fromConfig(&vm{where: row.where(), row: row, config: config}, s), nil
}

func (c *Client) status(ctx context.Context, what string, w where) (status, error) {
	return call(ctx, c, backends.Idempotent, what, request{http.MethodGet, w.at("status", "current"), nil},
		func(s status) bool { return s.Status != "" })
}

// FindMachines implements [backends.Backend]: by the tags of all VMs, and, for those
// that are half made, by the slots of the key.
func (c *Client) FindMachines(ctx context.Context, key string) ([]backends.Machine, error) {
	all, err := c.guests.get(ctx, 0)
	if err != nil {
		return nil, err
	}
	possible := c.slotsOf(key, 0)
	for vmid, row := range all {
		if n, ok := readTags(vmid, splitTags(row.Tags)); ok && n.marks.Key == key {
			possible = append(possible, vmid)
		}
	}
	slices.Sort(possible)
	var out []backends.Machine
	for _, vmid := range slices.Compact(possible) {
		row, ok := all[vmid]
		if !ok || row.Type != "qemu" {
			continue
		}
		if n, tagged := readTags(vmid, splitTags(row.Tags)); tagged && n.marks.Key != key {
			continue
		}
		m, err := c.GetMachine(ctx, strconv.Itoa(vmid))
		switch {
		case backends.HasCode(err, backends.NotFound):
		case err != nil:
			return nil, err
		case m.Marks.Managed && m.Marks.Key == key:
			out = append(out, m)
		}
	}
	return out, nil
}

// ListMachines implements [backends.Lister]: the cluster's list says where the VMs
// are that the filter holds, by their tags, and the list of each such node what they
// are doing. A node
// that can't be reached, or isn't up, costs what it knows of its VMs, not the list.
//
// A VM that was cloned and not configured yet has no tags: it is listed once this
// client has come upon it.
func (c *Client) ListMachines(ctx context.Context, filter backends.Filter) ([]backends.Machine, error) {
	var all guests
	var nodes []nodeRow
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		all, err = c.guests.get(groupCtx, 0)
		return err
	})
	group.Go(func() (err error) {
		nodes, err = c.nodes.get(groupCtx, 0)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	ours := map[string][]vmRow{} // by node
	for vmid, row := range all {
		n, tagged := readTags(vmid, splitTags(row.Tags))
		if row.Type == "qemu" && (tagged && filter.Holds(n.marks) || !tagged && c.isHalfMade(vmid)) {
			ours[row.Node] = append(ours[row.Node], row)
		}
	}
	var mu sync.Mutex
	var out []backends.Machine
	group, groupCtx = errgroup.WithContext(ctx)
	group.SetLimit(nodesAtOnce)
	for node, rows := range ours {
		offline := slices.ContainsFunc(nodes, func(n nodeRow) bool { return n.Node == node && n.Status == "offline" })
		group.Go(func() error {
			found, err := c.onNode(groupCtx, node, rows, offline)
			mu.Lock()
			defer mu.Unlock()
			out = append(out, found...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(m backends.Machine) bool { return !filter.Holds(m.Marks) })
	slices.SortFunc(out, func(a, b backends.Machine) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// onNode are those VMs of a node that are ours; rows are those that may be, as the
// cluster's list has them.
func (c *Client) onNode(ctx context.Context, node string, rows []vmRow, offline bool) ([]backends.Machine, error) {
	var current []vmRow
	if !offline {
		var err error
		current, err = call(ctx, c, backends.Idempotent, "Listing the VMs of the node "+node,
			request{http.MethodGet, at("nodes", node, "qemu"), nil}, func(rows []vmRow) bool { return rows != nil })
		if offline = isNodeDown(err); err != nil && !offline {
			return nil, err
		}
	}
	var out []backends.Machine
	for _, row := range rows {
		vmid := row.vmid()
		if offline {
			if n, ok := readTags(vmid, splitTags(row.Tags)); ok {
				out = append(out, c.partial(row, n))
			}
			continue
		}
		m, err := c.listedOne(ctx, node, vmid, current)
		switch {
		case err != nil:
			return nil, err
		case m != nil:
			out = append(out, *m)
		}
	}
	return out, nil
}

// listedOne is one VM of ours by its node's list; nil where it isn't ours any more.
func (c *Client) listedOne(ctx context.Context, node string, vmid int, current []vmRow) (*backends.Machine, error) {
	i := slices.IndexFunc(current, func(r vmRow) bool { return r.vmid() == vmid })
	if i >= 0 && current[i].Template.isTrue() {
		return nil, nil
	}
	if i >= 0 {
		if n, ok := readTags(vmid, splitTags(current[i].Tags)); ok {
			c.seenAt(vmid, node)
			m := c.fromRow(current[i], n)
			return &m, nil
		}
		if !c.isHalfMade(vmid) {
			return nil, nil
		}
	}
	// It moved meanwhile, or only its description says whose it is.
	m, err := c.GetMachine(ctx, strconv.Itoa(vmid))
	switch {
	case backends.HasCode(err, backends.NotFound):
		c.setHalfMade(vmid, false)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the VMs: %w", err)
	case !m.Marks.Managed:
		return nil, nil
	}
	return &m, nil
}

func (c *Client) isHalfMade(vmid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halfMade[vmid]
}

func (c *Client) setHalfMade(vmid int, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		c.halfMade[vmid] = true
	} else {
		delete(c.halfMade, vmid)
	}
}
