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
// reached is shown as far as the cluster knows it, and one that is still being made, or
// destroyed, and so doesn't say whose it is, as partial and without marks.
func (c *Client) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	what := "Reading VM " + id
	vmid, err := vmidOf(what, id)
	if err != nil {
		return backends.Machine{}, err
	}
	for n := 0; ; n++ {
		row, err := c.locate(ctx, what, vmid)
		if err != nil {
			return c.unseen(ctx, what, vmid, err)
		}
		m, err := c.read(ctx, what, row)
		switch {
		case err == nil:
			return m, nil
		case isNodeDown(err):
			n, _ := c.knownNote(row)
			return c.partial(row, n), nil
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
		return backends.Machine{}, noMachine(what, row.vmid(), "container")
	}
	config, err := c.config(ctx, what, row.where())
	if err != nil {
		return backends.Machine{}, err
	}
	if config.isTemplate() {
		return backends.Machine{}, noMachine(what, row.vmid(), "template")
	}
	c.seenAt(row.vmid(), row.Node)
	v := &vm{where: row.where(), row: row, config: config}
	n, marked := config.note(row.vmid())
	if !marked && config.isAnonymous() {
		return c.anonymous(v), nil
	}
	if _, tagged := readTags(row.vmid(), config.tags()); marked && !tagged {
		c.setHalfMade(row.vmid(), n)
	}
	s, err := c.status(ctx, what, row.where())
	if err != nil {
		return backends.Machine{}, err
	}
	return c.fromConfig(v, s), nil
}

// noMachine says that a VMID has something which is no machine: as good as nothing.
func noMachine(what string, vmid int, kind string) error {
	return backends.Errorf(backends.NotFound, "%s: there is no VM %d in the cluster: it is a %s.", what, vmid, kind)
}

// knownNote is what is written on a VM of the cluster's list, by its tags, or, where it
// has none yet, as this client last saw it.
func (c *Client) knownNote(row vmRow) (note, bool) {
	if n, ok := readTags(row.vmid(), splitTags(row.Tags)); ok {
		return n, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.halfMade[row.vmid()]
	return n, ok
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
	possible := slices.Concat(c.slotsOf(key, 0), tagged(all, key))
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
		case m.Partial && !m.Marks.Managed && m.State == backends.StateUnknown:
			// Its node is down, and its slot is one of the key's: it may be ours.
			e := backends.Errorf(backends.ProviderError, "Looking for the VM of a key: %s", m.Message)
			e.Reason = backends.ReasonUnreachable
			return nil, e
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
func (c *Client) ListMachines(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Machine], error) {
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
		return backends.Listing[backends.Machine]{}, err
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
		return backends.Listing[backends.Machine]{}, err
	}
	out = slices.DeleteFunc(out, func(m backends.Machine) bool { return !filter.Holds(m.Marks) })
	slices.SortFunc(out, func(a, b backends.Machine) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return backends.Whole(out), nil
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
			if n, ok := c.knownNote(row); ok {
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
		c.setMade(vmid)
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
	_, is := c.halfMade[vmid]
	return is
}

// setHalfMade remembers a VM of ours that may have no tags yet, so that lists show it.
func (c *Client) setHalfMade(vmid int, n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halfMade[vmid] = n
}

// setMade forgets that a VM is half made: it is complete, or gone.
func (c *Client) setMade(vmid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.halfMade, vmid)
}
