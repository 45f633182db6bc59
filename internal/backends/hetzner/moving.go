// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// movable are the resources of the vendor's own provider, hetznercloud/hcloud.
func movable() backends.Moves {
	return backends.Moves{
		Machines: []backends.Move[backends.MovedMachine]{{Provider: "hcloud", Resource: "hcloud_server", Read: movedServer}},
		Volumes:  []backends.Move[backends.MovedVolume]{{Provider: "hcloud", Resource: "hcloud_volume", Read: movedVolume}},
	}
}

func movedServer(s backends.VendorState) (backends.MovedMachine, error) {
	m := backends.MovedMachine{Image: s.Text("image"), Machine: backends.Machine{
		ID: s.Text("id"), Name: s.Text("name"), Offer: s.Text("server_type"), Region: s.Text("location"),
	}}
	if m.Region == "" { // fsn1-dc14
		m.Region, _, _ = strings.Cut(s.Text("datacenter"), "-")
	}
	switch s.Text("status") {
	case "running":
		m.State = backends.StateRunning
	case "off":
		m.State = backends.StateStopped
	}
	for _, name := range []string{"ipv4_address", "ipv6_address"} {
		m.Addresses = append(m.Addresses, backends.AddressOf(s.Text(name), backends.Public)...)
	}
	// Networks may also be joined by hcloud_server_network, and then aren't shown here.
	if networks := s.Objects("network"); len(networks) == 1 {
		m.Addresses = append(m.Addresses, backends.AddressOf(networks[0].Text("ip"), backends.Private)...)
	}
	return m, s.Required("hcloud_server", map[string]string{"id": m.ID, "name": m.Name})
}

func movedVolume(s backends.VendorState) (backends.MovedVolume, error) {
	v := backends.MovedVolume{Filesystem: s.Text("format"), Volume: backends.Volume{
		ID: s.Text("id"), Name: s.Text("name"), Kind: backends.BlockVolume,
		SizeGiB: s.Whole("size"), Region: s.Text("location"), Device: s.Text("linux_device"),
	}}
	return v, s.Required("hcloud_volume", map[string]string{"id": v.ID, "name": v.Name})
}
