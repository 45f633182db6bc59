// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// What is said here is known in a plan, and would else be found after the clone: the
// storages, bridges and pools that a wish uses. What the token may not read isn't an
// error, nor is a cluster that answers otherwise than it does today.

// networkRow is what network cards can be on, as a node has it.
type networkRow struct {
	Name string `json:"iface"`
}

// fetchBridges are the bridges and VNets of a node that the token may use.
func (c *Client) fetchBridges(ctx context.Context, node string) ([]string, error) {
	rows, err := call[[]networkRow](ctx, c, backends.Idempotent, "Listing the bridges of the node "+node,
		request{http.MethodGet, at("nodes", node, "network"), url.Values{"type": {"any_bridge"}}}, nil)
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row.Name
	}
	return out, err
}

// fetchPools are the resource pools that the token sees.
func (c *Client) fetchPools(ctx context.Context) ([]string, error) {
	type pool struct {
		ID string `json:"poolid"`
	}
	rows, err := call[[]pool](ctx, c, backends.Idempotent, "Listing the cluster's resource pools",
		request{http.MethodGet, at("pools"), nil}, nil)
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row.ID
	}
	return out, err
}

// silent tells whether a failure says nothing about a wish: the token may not read
// what was asked for, a node can't be reached, or an older version has no such call.
// Everything else is a failure of the check, such as a token that is refused.
func silent(err error) bool {
	e := backends.AsError(err)
	return e != nil && e.Reason != backends.ReasonCredentials && e.Reason != backends.ReasonSecret && statusOf(err) != 0
}

// bridge is where a wish names one.
type bridge struct {
	name string
	path backends.Path
}

// bridgesOf are the bridges that a wish names.
func bridgesOf(spec backends.MachineSpec) []bridge {
	var out []bridge
	if spec.Network != "" {
		out = append(out, bridge{spec.Network, backends.Path{"network_id"}})
	}
	for i, e := range spec.Options.List("network_devices") {
		device, ok := e.(backends.Values)
		name := device.String("bridge")
		if ok && name != "" && (i > 0 || name != spec.Network) {
			out = append(out, bridge{name, backends.Path{attribute, "network_devices", i, "bridge"}})
		}
	}
	return out
}

// checkBridges looks for the bridges of a wish on the node that its VM is made on.
func (c *Client) checkBridges(ctx context.Context, spec backends.MachineSpec, node string) ([]*backends.Error, error) {
	wanted := bridgesOf(spec)
	if len(wanted) == 0 {
		return nil, nil
	}
	there, err := c.bridges.Get(ctx, node)
	if silent(err) || err == nil && len(there) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var issues []*backends.Error
	for _, b := range wanted {
		if !slices.Contains(there, b.name) {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "There is no bridge or VNet %q on the node %s, as far as the account's token sees.", b.name, node).
				At(b.path...).WithRemedy("Use %s. The token needs SDN.Use on a bridge.", backends.Choice(backends.Near(b.name, there, backends.Nearest))))
		}
	}
	return issues, nil
}

// checkStorages holds what a wish needs of storages against those of the cluster: of
// the account's for disks, or the template's, and of that of the snippets.
func (c *Client) checkStorages(ctx context.Context, spec backends.MachineSpec, template *vm, node string, wanted size) (
	[]*backends.Error, []storageRow, error) {
	data := hasUserData(spec) && c.snippets != nil
	if c.account.storage == "" && wanted.diskGiB == 0 && !data {
		return nil, nil, nil
	}
	rows, err := c.storages.Get(ctx)
	if silent(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var issues []*backends.Error
	add := func(e *backends.Error) {
		if e != nil {
			issues = append(issues, e)
		}
	}
	disks := c.account.storage
	if disks == "" {
		disks = storageOf(properties(template.config.get(c.account.disk), "file").get("file"))
	} else {
		// Without these the token couldn't make a disk there either.
		add(checkStorageOf(rows, disks, node, "images", "storage", "Datastore.AllocateSpace"))
	}
	if data {
		// It may write files there and not see the storage.
		if name := c.account.snippets.String("storage"); c.sees(ctx, "/storage/"+name, "Datastore.Audit", "Datastore.AllocateSpace") {
			add(checkStorageOf(rows, name, node, "snippets", "snippets.storage", "Datastore.Audit"))
		}
	}
	for _, row := range rows {
		if row.Storage == disks && row.Node == node {
			add(tooSmall(row, wanted.diskGiB, spec.Offer))
		}
	}
	return issues, rows, nil
}

// tooSmall refuses a boot disk that is larger than all of a storage.
func tooSmall(row storageRow, diskGiB int64, offer string) *backends.Error {
	total := row.MaxDisk.number()
	if total == 0 || diskGiB <= total/gib {
		return nil
	}
	return capacity(backends.Errorf(backends.CapacityUnavailable, "The storage %s of the node %s has %s in all, less than the %d GiB of boot disk of the offer %s.",
		row.Storage, row.Node, sizeText(total), diskGiB, offer).At("offer").WithRemedy("Choose a smaller offer, or another storage."))
}

// storageOf is the storage of a volume.
func storageOf(volume string) string {
	name, _, _ := strings.Cut(volume, ":")
	return name
}

func capacity(e *backends.Error) *backends.Error {
	e.Reason = backends.ReasonCapacity
	return e
}

// checkStorageOf looks for a storage of the account that holds a kind of content and
// that a node has.
func checkStorageOf(rows []storageRow, name, node, content, field, privilege string) *backends.Error {
	var names []string
	var found *storageRow
	onNode := false
	for i, row := range rows {
		if row.holds(content) && !slices.Contains(names, row.Storage) {
			names = append(names, row.Storage)
		}
		if row.Storage == name {
			found = cmp.Or(found, &rows[i])
			onNode = onNode || row.Node == node
		}
	}
	field = attribute + "." + field
	others := backends.Choice(backends.Near(name, names, backends.Nearest))
	switch {
	case found == nil:
		return backends.Errorf(backends.InvalidConfig, "%s: there is no storage %q in the cluster, as far as the account's token sees.", field, name).
			WithRemedy("Set it in the account to %s. The token needs %s on it.", others, privilege)
	case !found.holds(content):
		return backends.Errorf(backends.InvalidConfig, "%s: the storage %q doesn't have the content type %s.", field, name, content).
			WithRemedy("Add it in the cluster (Datacenter, Storage, Content), or set it in the account to %s.", others)
	case !onNode:
		return backends.Errorf(backends.InvalidConfig, "%s: the node %s doesn't have the storage %q.", field, node, name).
			WithRemedy("Set it in the account to another storage, or make the VM on another node.")
	}
	return nil
}

// checkPoolOf looks for the resource pool of a wish. One that the token doesn't see may
// be there all the same.
func (c *Client) checkPoolOf(ctx context.Context, spec backends.MachineSpec) (*backends.Error, error) {
	name, path := spec.Options.String("pool_id"), backends.Path{attribute, "pool_id"}
	if name == "" {
		name, path = c.account.pool, nil
	}
	if name == "" {
		return nil, nil
	}
	there, err := c.pools.Get(ctx)
	switch {
	case silent(err), err == nil && slices.Contains(there, name), err == nil && !c.sees(ctx, "/pool/"+name, "Pool.Audit"):
		return nil, nil
	case err != nil:
		return nil, err
	}
	remedy := poolRemedy
	if len(there) > 0 {
		remedy = fmt.Sprintf("%s There are: %s.", remedy, strings.Join(backends.Near(name, there, backends.Nearest), ", "))
	}
	said := fmt.Sprintf("There is no resource pool %q in the cluster.", name)
	if path == nil {
		said = fmt.Sprintf("The account's pool: there is no resource pool %q in the cluster.", name)
	}
	return backends.Errorf(backends.InvalidInput, "%s", said).At(path...).WithRemedy("%s", remedy), nil
}

// checkFree refuses a VMID that is asked for and that something else has for sure. One
// that may be ours, half made, is left to the creation, which looks at it.
func (c *Client) checkFree(ctx context.Context, spec backends.MachineSpec) (*backends.Error, error) {
	vmid := int(spec.Options.Int("vm_id"))
	if vmid == 0 {
		return nil, nil
	}
	all, err := c.guests.get(ctx, recent)
	if err != nil {
		return nil, err
	}
	row, there := all[vmid]
	// One that is another resource's may go in the same apply.
	_, tagged := readTags(vmid, splitTags(row.Tags))
	ours := tagged || row.Type == "qemu" && !row.Template.isTrue() && (row.Name == "" || row.Name == spec.Name)
	if !there || ours || spec.Marks.Key == "" {
		return nil, nil
	}
	return vmidTaken(vmid, row), nil
}

func vmidTaken(vmid int, row vmRow) *backends.Error {
	kind := "VM"
	switch {
	case row.Type == "lxc":
		kind = "container"
	case row.Template.isTrue():
		kind = "template"
	}
	e := backends.Errorf(backends.Conflict, "The VMID %d is taken by the %s %q on the node %s.", vmid, kind, row.Name, row.Node).
		At(attribute, "vm_id").WithRemedy("Choose another vm_id, or leave it out.")
	e.Details = map[string]any{"machine_id": fmt.Sprint(vmid)}
	return e
}
