// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// cost is what it takes to change an input.
type cost struct {
	takes     backends.Takes
	addresses bool
	note      string
}

// editTable is what the API takes to change each input that an edit may change. What it
// has no entry for is changed in place.
func editTable() map[string]cost {
	return map[string]cost{
		"ssh_key_ids": {takes: backends.NextCreation, note: "Hetzner puts keys on a server only when it is made."},
		"network_id":  {addresses: true},
		"networks":    {addresses: true},
		// Addresses and placement groups can be changed of servers that are off only.
		"public_ipv4":        {takes: backends.Restart, addresses: true},
		"public_ipv6":        {takes: backends.Restart, addresses: true},
		"primary_ipv4_id":    {takes: backends.Restart, addresses: true},
		"primary_ipv6_id":    {takes: backends.Restart, addresses: true},
		"placement_group_id": {takes: backends.Restart},
	}
}

// PlanEdit implements [backends.Editor].
func (c *Client) PlanEdit(from, to backends.MachineSpec) []backends.Effect {
	var out []backends.Effect
	for _, path := range backends.Differing(from, to, attribute, machineFields()) {
		name, _ := path[len(path)-1].(string)
		known := editTable()[name]
		effect := backends.Effect{Path: path, Takes: known.takes, Addresses: known.addresses, Note: known.note}
		switch name {
		case "networks":
			// Other aliases are no other addresses: those are the guest's to set up.
			effect.Addresses = !sameNetworks(from, to)
		case "public_ipv4", "public_ipv6":
			effect.Takes, effect.Note = switching(from.Options, to.Options, name)
		case "primary_ipv4_id", "primary_ipv6_id":
			effect.Note = "An address that was made with the server is given up, and can't be had again."
		case "backups":
			if to.Options.Has(name) && !to.Options.Bool(name) {
				effect.Note = "Hetzner deletes the server's backups with that."
			}
		}
		out = append(out, effect)
	}
	return out
}

// switching is what it takes to switch a public address on or off.
func switching(from, to backends.Values, flag string) (takes backends.Takes, note string) {
	switch {
	case !to.Has(flag):
		return backends.Restart, ""
	case !to.Bool(flag):
		return backends.Restart, "An address that was made with the server is given up, and can't be had again."
	case from.Has(flag) && !from.Bool(flag):
		return backends.Restart, ""
	default:
		// What said nothing about it got an address when it was made.
		return backends.InPlace, "A server that has none is switched off for it, and on again."
	}
}

// sameNetworks tells whether two wishes name the same networks with the same own
// addresses, in one order.
func sameNetworks(from, to backends.MachineSpec) bool {
	had, want := from.Options.List("networks"), to.Options.List("networks")
	if len(had) != len(want) || len(want) == 0 {
		return false
	}
	for i := range want {
		a, aOK := had[i].(backends.Values)
		b, bOK := want[i].(backends.Values)
		if !aOK || !bOK || !a.AllKnown() || !b.AllKnown() ||
			a.String("network_id") != b.String("network_id") || a.String("ip") != b.String("ip") {
			return false
		}
	}
	return true
}

// CheckEdit implements [backends.Editor]: it looks for the holder of a new name, and at
// primary IPs that the server is to get.
func (c *Client) CheckEdit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (
	warnings []string, issues []*backends.Error, err error) {
	if to.Name != "" && to.Name != m.Name {
		holder, err := c.byName(ctx, to.Name)
		if err != nil {
			return nil, nil, err
		}
		if holder != nil && holder.ID != m.ID && !holder.Going() {
			taken := &backends.NameTaken{Holder: *holder}
			issue := backends.AsError(taken).At("name")
			issue.Err = taken
			issues = append(issues, issue)
		}
	}
	for _, f := range families() {
		id, ok := parseID(to.Options.String(f.option))
		if !ok || from.Options.String(f.option) == to.Options.String(f.option) {
			continue
		}
		warning, issue, err := c.checkPrimaryIP(ctx, f, id, m.ID, m.Region)
		switch {
		case err != nil:
			return warnings, issues, err
		case issue != nil:
			issues = append(issues, issue)
		case warning != "":
			warnings = append(warnings, warning)
		}
	}
	return warnings, issues, nil
}

// Shown implements [backends.Editor] from one read of the server.
func (c *Client) Shown(ctx context.Context, m backends.Machine, to backends.MachineSpec) (backends.MachineSpec, error) {
	s, err := c.server(ctx, m.ID)
	if err != nil {
		return to, err
	}
	out := to
	out.Name, out.Options = s.Name, to.Options.Clone()
	if to.Labels != nil {
		out.Labels = map[string]string{}
		for key := range to.Labels {
			if value, ok := s.Labels[key]; ok {
				out.Labels[key] = value
			}
		}
	}
	if to.Network != "" {
		out.Network = c.machine(s).Network
		if id, ok := parseID(to.Network); ok && placeIn(s, id) != nil {
			out.Network = to.Network
		}
	}
	set := func(name string, value any) {
		if to.Options.Has(name) {
			out.Options[name] = value
		}
	}
	setID := func(name string, id int64) {
		switch {
		case !to.Options.Has(name):
		case id == 0:
			delete(out.Options, name)
		default:
			out.Options[name] = strconv.FormatInt(id, 10)
		}
	}
	set("networks", shownNetworks(s, to.Options.List("networks")))
	set("firewall_ids", shownFirewalls(s, to.Options.List("firewall_ids")))
	set("backups", s.BackupWindow != "")
	for _, f := range families() {
		set(f.flag, f.of(s) != 0)
		setID(f.option, f.of(s))
	}
	setID("placement_group_id", groupOf(s))
	return out, nil
}
