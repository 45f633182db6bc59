// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// instanceObserved is what a machine shows, attribute by attribute: the one mapping
// that create, read and update share. It holds what a refresh may change.
func instanceObserved(r record, m backends.Machine) {
	r.setText("machine_id", m.ID)
	r.setText("urn", m.URN)
	r.setText("image_id", m.ImageID)
	if m.Offer != "" { // else the cloud doesn't say it
		r.setText("offer_actual", m.Offer)
	} else if !r.isKnown("offer_actual") {
		r.setText("offer_actual", r.text("offer"))
	}
	state, message := m.State, m.Message
	if halfMade(m) {
		state = backends.StatePending
		message = "Creation was not completed; the next apply finishes it."
	}
	r.setText("state", string(state))
	r.setText("message", message)

	instanceAddresses(r, m.Addresses)
}

// instanceAddresses sets the addresses and what is derived from them.
func instanceAddresses(r record, addresses []backends.Address) {
	m := backends.Machine{Addresses: addresses}
	rows := make([]map[string]string, len(addresses))
	for i, a := range addresses {
		rows[i] = map[string]string{"address": a.Address, "family": string(a.Family), "scope": string(a.Scope)}
	}
	r.setObjects("addresses", rows)
	v4, v6 := m.First(backends.IPv4, backends.Public), m.First(backends.IPv6, backends.Public)
	private := m.First(backends.IPv4, backends.Private)
	r.setText("ipv4", v4)
	r.setText("ipv6", v6)
	r.setText("private_ipv4", private)
	r.setText("address", firstOf(v4, v6, private, m.First(backends.IPv6, backends.Private)))
}

// instanceObservedWishes refreshes those wishes whose drift is mended. A machine
// between two power states, or half made, drifts nowhere.
func instanceObservedWishes(r record, m backends.Machine) {
	if !halfMade(m) {
		switch m.State {
		case backends.StateRunning:
			r.setText("power", powerOn)
		case backends.StateStopped:
			r.setText("power", powerOff)
		default:
		}
	}
	if !r.isNull("deletion_protection") {
		r.setTruth("deletion_protection", m.Protected)
	}
}

// instanceImported fills what an import could not know. The image, keys and user
// data can't be read back: the digest tells whether they are the same. Labels are
// left to the configuration, since unset means hands off.
func instanceImported(r record, m backends.Machine) {
	r.setText("offer", m.Offer)
	r.setText("region", m.Region)
}

// recordedAddresses are the addresses in a record.
func recordedAddresses(r record) []backends.Address {
	rows, _ := treeOf(r.values["addresses"]).([]any)
	var out []backends.Address
	for _, row := range rows {
		if a, ok := row.(backends.Values); ok {
			out = append(out, backends.Address{
				Address: a.String("address"), Family: backends.Family(a.String("family")), Scope: backends.Scope(a.String("scope")),
			})
		}
	}
	return out
}

// instanceNames sets what follows from the pool and the machine's id.
func instanceNames(r record, pool reference.Reference, name, machineID string) {
	ref := pool.InstanceRef(name, machineID)
	r.setText("id", ref.ID())
	r.setText("uri", ref.String())
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
