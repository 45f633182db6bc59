// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"maps"
	"slices"
)

// writeDrive writes the drive for cloud-init from the options in force, as each start
// does, and PUT …/cloudinit.
func (g *guest) writeDrive() {
	g.Drive = map[string]string{"name": g.Config["name"]}
	for name, value := range g.Config {
		if isCloudInitOption(name) {
			g.Drive[name] = value
		}
	}
}

// boot lets the guest read the drive: what is written on it later the guest learns at
// its next boot.
func (g *guest) boot() { g.Booted = maps.Clone(g.Drive) }

// pendingCloudInit shows what the drive was written from, and what has changed since.
func pendingCloudInit(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for name := range g.Config {
		names[name] = isCloudInitOption(name)
	}
	for name := range g.Drive {
		names[name] = isCloudInitOption(name)
	}
	rows := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		written, wasThere := g.Drive[name]
		now, isThere := g.Config[name]
		if name == "cipassword" {
			written, now = masked, masked
		}
		row := map[string]any{"key": name}
		switch {
		case wasThere && !isThere:
			row["value"], row["delete"] = written, 1
		case wasThere && g.Drive[name] != g.Config[name]:
			row["value"], row["pending"] = written, now
		case wasThere:
			row["value"] = written
		default:
			row["pending"] = now
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// masked is what answers have in the place of the password.
const masked = "**********"
