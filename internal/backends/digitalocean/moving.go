// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// movable are the resources of the vendor's own provider, digitalocean/digitalocean.
func movable() backends.Moves {
	return backends.Moves{
		Machines:  []backends.Move[backends.MovedMachine]{{Provider: "digitalocean", Resource: "digitalocean_droplet", Read: movedDroplet}},
		Volumes:   []backends.Move[backends.MovedVolume]{{Provider: "digitalocean", Resource: "digitalocean_volume", Read: movedVolume}},
		Snapshots: []backends.Move[backends.Snapshot]{{Provider: "digitalocean", Resource: "digitalocean_volume_snapshot", Read: movedSnapshot}},
	}
}

func movedDroplet(s backends.VendorState) (backends.MovedMachine, error) {
	m := backends.MovedMachine{Image: s.Text("image"), Machine: backends.Machine{
		ID: s.Text("id"), Name: s.Text("name"), Offer: s.Text("size"), Region: s.Text("region"), URN: s.Text("urn"),
	}}
	switch s.Text("status") {
	case "active":
		m.State = backends.StateRunning
	case "off":
		m.State = backends.StateStopped
	}
	for _, name := range []string{"ipv4_address", "ipv6_address"} {
		m.Addresses = append(m.Addresses, backends.AddressOf(s.Text(name), backends.Public)...)
	}
	m.Addresses = append(m.Addresses, backends.AddressOf(s.Text("ipv4_address_private"), backends.Private)...)
	return m, s.Required("digitalocean_droplet", map[string]string{"id": m.ID, "name": m.Name})
}

func movedVolume(s backends.VendorState) (backends.MovedVolume, error) {
	v := backends.MovedVolume{Filesystem: s.Text("initial_filesystem_type", "filesystem_type"), Volume: backends.Volume{
		ID: s.Text("id"), Name: s.Text("name"), Kind: backends.BlockVolume,
		SizeGiB: s.Whole("size"), Region: s.Text("region"), URN: s.Text("urn"),
	}}
	return v, s.Required("digitalocean_volume", map[string]string{"id": v.ID, "name": v.Name})
}

func movedSnapshot(s backends.VendorState) (backends.Snapshot, error) {
	out := backends.Snapshot{
		ID: s.Text("id"), Name: s.Text("name"), Kind: backends.BlockVolume,
		Volume: s.Text("volume_id"), SizeGiB: s.Whole("min_disk_size"),
	}
	if created, err := time.Parse(time.RFC3339, s.Text("created_at")); err == nil {
		out.Created = created
	}
	return out, s.Required("digitalocean_volume_snapshot", map[string]string{"id": out.ID, "name": out.Name})
}
