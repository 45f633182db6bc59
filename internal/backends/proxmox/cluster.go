// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// vmRow is a VM or container in a list. In the cluster's list node, tags and lock
// are current; name, status and template lag behind, and of a new VM are missing. In
// a node's list all are current, and there is no node.
type vmRow struct {
	Type     string `json:"type"`
	VMID     scalar `json:"vmid"`
	Node     string `json:"node"`
	Name     string `json:"name"`
	Status   string `json:"status"`
	Template scalar `json:"template"`
	Pool     string `json:"pool"`
	Tags     string `json:"tags"`
	Lock     string `json:"lock"`
	CPUs     scalar `json:"cpus"`    // in a node's list
	MaxMem   scalar `json:"maxmem"`  // in bytes
	MaxDisk  scalar `json:"maxdisk"` // the boot disk's size, in bytes
}

func (r vmRow) vmid() int { return int(r.VMID.number()) }

func (r vmRow) where() where { return where{r.Node, r.vmid()} }

// guests are all VMs and containers that the token sees, by VMID.
type guests map[int]vmRow

// nodeRow is a node in the cluster's list. What it has is shown with Sys.Audit only.
type nodeRow struct {
	Node   string `json:"node"`
	Status string `json:"status"`
	MaxCPU scalar `json:"maxcpu"`
	MaxMem scalar `json:"maxmem"`
	Mem    scalar `json:"mem"`
}

// storageRow is a storage as one node has it.
type storageRow struct {
	Storage string `json:"storage"`
	Node    string `json:"node"`
	Shared  scalar `json:"shared"`
	Content string `json:"content"` // with commas
	MaxDisk scalar `json:"maxdisk"` // in bytes; 0 while the node doesn't say
}

func (r storageRow) holds(content string) bool {
	return slices.Contains(strings.Split(r.Content, ","), content)
}

func (c *Client) fetchStorages(ctx context.Context) ([]storageRow, error) {
	return call(ctx, c, backends.Idempotent, "Listing the cluster's storages",
		request{http.MethodGet, at("cluster", "resources"), url.Values{"type": {"storage"}}}, func(rows []storageRow) bool { return rows != nil })
}

func (c *Client) fetchGuests(ctx context.Context) (guests, error) {
	rows, err := call(ctx, c, backends.Idempotent, "Listing the cluster's VMs",
		request{http.MethodGet, at("cluster", "resources"), url.Values{"type": {"vm"}}}, func(rows []vmRow) bool {
			for _, r := range rows {
				if r.vmid() <= 0 || r.Node == "" {
					return false
				}
			}
			return rows != nil
		})
	if err != nil {
		return nil, err
	}
	out := make(guests, len(rows))
	for _, r := range rows {
		out[r.vmid()] = r
	}
	return out, nil
}

func (c *Client) fetchNodes(ctx context.Context) ([]nodeRow, error) {
	return call(ctx, c, backends.Idempotent, "Listing the cluster's nodes", request{http.MethodGet, at("nodes"), nil},
		func(rows []nodeRow) bool { return len(rows) > 0 })
}

// recent is how old the cluster's list may be where a wrong guess is found out by
// what is done next.
const recent = 5 * time.Second

// locate is where a VMID is now. A VMID that the list doesn't show is asked for by
// itself, since a token doesn't see everything: free is NOT_FOUND, one that is taken
// ACCESS_DENIED.
func (c *Client) locate(ctx context.Context, what string, vmid int) (vmRow, error) {
	all, err := c.guests.get(ctx, 0)
	if err != nil {
		return vmRow{}, err
	}
	if row, ok := all[vmid]; ok {
		return row, nil
	}
	free, err := c.isFree(ctx, what, vmid)
	switch {
	case err != nil:
		return vmRow{}, err
	case free:
		return vmRow{}, gone(what, vmid)
	}
	e := backends.Errorf(backends.AccessDenied, "%s: the VMID %d is taken by something that the account's token doesn't see.", what, vmid).
		WithRemedy("See what has the VMID %d. If it is this machine, give the token VM.Audit on /vms/%d. If the machine was removed and another has got its VMID, let the state forget it (tofu state rm ADDRESS, terraform state rm ADDRESS): the next apply makes it anew, with another VMID.",
			vmid, vmid)
	return vmRow{}, e
}

func gone(what string, vmid int) error {
	return backends.Errorf(backends.NotFound, "%s: there is no VM %d in the cluster.", what, vmid)
}

// isFree asks the cluster whether anything has a VMID, seen by the token or not.
func (c *Client) isFree(ctx context.Context, what string, vmid int) (bool, error) {
	_, err := call[scalar](ctx, c, backends.Idempotent, what,
		request{http.MethodGet, at("cluster", "nextid"), url.Values{"vmid": {strconv.Itoa(vmid)}}}, nil)
	if statusOf(err) == http.StatusBadRequest && says(err, textsTaken) {
		return false, nil
	}
	return err == nil, err
}

// vm is a VM and its options.
type vm struct {
	where
	row    vmRow // as the cluster's list has it; only its VMID and node where it wasn't asked
	config vmConfig
}

func (v *vm) digest() string { return v.config.get("digest") }

// config reads a VM's options.
func (c *Client) config(ctx context.Context, what string, w where) (vmConfig, error) {
	return call(ctx, c, backends.Idempotent, what, request{http.MethodGet, w.at("config"), nil},
		func(v vmConfig) bool { return v.get("digest") != "" })
}

// moves is how often a VM is looked for anew that isn't where it was said to be: it
// is on its way to another node, or goes.
const moves = 5

// find reads a VM's options, wherever it is. hint says where it was last; without
// one, or where it is wrong, the cluster's list does.
func (c *Client) find(ctx context.Context, what string, vmid int, hint string) (*vm, error) {
	row := vmRow{Type: "qemu", VMID: scalar(strconv.Itoa(vmid)), Node: hint}
	for n := 0; ; n++ {
		if n > 0 || hint == "" {
			var err error
			if row, err = c.locate(ctx, what, vmid); err != nil {
				return nil, err
			}
		}
		if row.Type != "qemu" {
			return &vm{where: row.where(), row: row}, nil
		}
		config, err := c.config(ctx, what, row.where())
		guessed := n == 0 && hint != ""
		switch {
		case err == nil:
			c.seenAt(vmid, row.Node)
			return &vm{where: row.where(), row: row, config: config}, nil
		case isNodeDown(err) && !guessed, n >= moves:
			return nil, err
		case !isNodeDown(err) && !says(err, textsMissing) && statusOf(err) != http.StatusForbidden:
			return nil, err
		case n > 0:
			if err := backends.Sleep(backends.Caller(ctx), backends.Scale(time.Duration(n)*500*time.Millisecond)); err != nil {
				return nil, err
			}
		}
	}
}

// seenAt remembers where a VM was.
func (c *Client) seenAt(vmid int, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places[vmid] = node
}

func (c *Client) lastAt(vmid int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[vmid]
}

// vmidOf reads a machine's id.
func vmidOf(what, id string) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n < lowestVMID || n > highestVMID || strconv.Itoa(n) != id {
		return 0, backends.Errorf(backends.InvalidInput, "%s: %q is not a VMID, a number from %d to %d.", what, id, lowestVMID, highestVMID)
	}
	return n, nil
}

// called is a machine as messages name it.
func called(m backends.Machine) string {
	if m.Name == "" {
		return "VM " + m.ID
	}
	return fmt.Sprintf("VM %s (%s)", m.Name, m.ID)
}
