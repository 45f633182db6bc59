// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// movable are the resources of the two providers in use, bpg/proxmox and
// Telmate/proxmox; the first has its newer resources under a short and a long name.
func movable() backends.Moves {
	var out backends.Moves
	for _, resource := range []string{
		"proxmox_virtual_environment_vm", "proxmox_virtual_environment_vm2", "proxmox_vm",
		"proxmox_virtual_environment_cloned_vm", "proxmox_cloned_vm",
		"proxmox_vm_qemu",
	} {
		out.Machines = append(out.Machines, backends.Move[backends.MovedMachine]{
			Provider: "proxmox", Resource: resource,
			Read: func(s backends.VendorState) (backends.MovedMachine, error) { return movedVM(resource, s) },
		})
	}
	return out
}

// movedVM reads what the resources have in common. What size a VM has they say in
// blocks of their own, and its image not at all: the cluster is asked for the one, and
// the configuration believed about the other.
func movedVM(resource string, s backends.VendorState) (backends.MovedMachine, error) {
	m := backends.MovedMachine{Machine: backends.Machine{ID: s.Text("vm_id", "vmid"), Name: s.Text("name")}}
	if m.ID == "" || m.ID == "0" {
		id := s.Text("id") // the VMID, or node/qemu/VMID
		m.ID = id[strings.LastIndex(id, "/")+1:]
	}
	if template, known := s.Truth("template"); known && template {
		return m, backends.Errorf(backends.Unsupported, "The %s %q (%s) is a template, and no machine.", resource, m.Name, m.ID).
			WithRemedy("Leave it to its own provider, and clone it by naming it as image.")
	}
	if started, known := s.Truth("started"); known {
		m.State = backends.StateStopped
		if started {
			m.State = backends.StateRunning
		}
	}
	switch s.Text("vm_state") {
	case "running", "started":
		m.State = backends.StateRunning
	case "stopped":
		m.State = backends.StateStopped
	}
	for _, name := range []string{"ipv4_addresses", "ipv6_addresses", "default_ipv4_address", "default_ipv6_address"} {
		for _, text := range addressTexts(s, name) {
			if a, ok := addressOf(text); ok {
				m.Addresses = append(m.Addresses, a)
			}
		}
	}
	return m, s.Required(resource, map[string]string{"id": m.ID, "name": m.Name})
}

// addressTexts are the addresses of an attribute. Of those by network device, the
// devices inside the guest are left out, as when the guest is asked (see
// [Client.ReadAddresses]).
func addressTexts(s backends.VendorState, name string) []string {
	devices, addresses := s.Texts("network_interface_names"), s.Lists(name)
	if len(addresses) == 0 {
		return s.Texts(name)
	}
	var out []string
	for i, texts := range addresses {
		if i < len(devices) && isInner(devices[i]) {
			continue
		}
		out = append(out, texts...)
	}
	return out
}
