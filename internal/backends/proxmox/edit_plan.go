// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"maps"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// What a plan says besides of inputs that only a starting guest reads. Proxmox VE makes
// cloud-init's instance-id from what it writes on the drive (nocloud_gen_metadata in
// qemu-server), so that other data is another instance to the guest; with user data the
// instance-id is ours.
const (
	noteHostname = "The guest gets the hostname at its next start."
	noteNewHost  = "The guest gets the hostname at its next start, at which cloud-init takes it for a new machine: it makes new SSH host keys."
	noteNetwork  = "The guest reads it when it starts, and cloud-init then takes it for a new machine: it makes new SSH host keys, and runs user data again."
	noteNode     = "The VM stays on the node that it is on: the node counts when a VM is made."
	noteVMID     = "The VM keeps the VMID that it has."
)

// PlanEdit implements [backends.Editor].
func (c *Client) PlanEdit(from, to backends.MachineSpec) []backends.Effect {
	var out []backends.Effect
	for _, path := range backends.Differing(from, to, attribute, machineFields()) {
		out = append(out, effectOf(path, from, to))
	}
	return out
}

// effectOf is what one changed input takes.
func effectOf(path backends.Path, from, to backends.MachineSpec) backends.Effect {
	e := backends.Effect{Path: path}
	name, _ := path[len(path)-1].(string)
	switch name {
	case "name":
		e.Note = noteNewHost
		if hasUserData(from) || hasUserData(to) {
			e.Note = noteHostname
		}
	case "network_id":
		e.Addresses = true
	case "network_devices":
		e.Addresses = true
		if !onlySwitched(from.Options["network_devices"], to.Options["network_devices"]) {
			e.Takes = backends.Restart
		}
	case "ip_config":
		e.Takes, e.Addresses, e.Note = backends.Restart, true, noteNetwork
	case "dns":
		e.Takes, e.Note = backends.Restart, noteNetwork
	case "cpu_type":
		e.Takes = backends.Restart
	case "node":
		e.Takes, e.Note = backends.NextCreation, noteNode
	case "vm_id":
		e.Takes = backends.Replace
		if _, had := from.Options["vm_id"]; !had {
			e.Takes, e.Note = backends.NextCreation, noteVMID
		}
	}
	return e
}

// switchedFields are the fields of a network card that its node changes while the guest
// runs: where the cable ends.
var switchedFields = []string{"bridge", "vlan_id", "firewall"}

// onlySwitched tells whether two lists have the same cards, and only their cables end
// elsewhere.
func onlySwitched(from, to any) bool {
	a, inFrom := from.([]any)
	b, inTo := to.([]any)
	if !inFrom || !inTo || len(a) != len(b) {
		return false
	}
	itself := func(e any) (backends.MachineSpec, bool) {
		device, ok := e.(backends.Values)
		device = maps.Clone(device)
		for _, name := range switchedFields {
			delete(device, name)
		}
		return backends.MachineSpec{Options: backends.Values{"network_devices": []any{device}}}, ok
	}
	for i := range a {
		x, xOK := itself(a[i])
		y, yOK := itself(b[i])
		if !xOK || !yOK || len(backends.Differing(x, y, attribute, machineFields())) > 0 {
			return false
		}
	}
	return true
}
