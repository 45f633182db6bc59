// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// machine is a server in our words. Every part of the answer may be missing: the
// image of a server is null once it is deleted, addresses are null when off.
func (c *Client) machine(s *hcloud.Server) backends.Machine {
	state, message := stateOf(s.Status)
	m := backends.Machine{
		ID: strconv.FormatInt(s.ID, 10), Name: s.Name, State: state, Message: message,
		Protected: s.Protection.Delete, Created: s.Created,
		Marks: c.marks.read(s.Labels), Labels: c.marks.foreign(s.Labels),
		Addresses: addresses(s),
	}
	if s.ServerType != nil {
		m.Offer = s.ServerType.Name
	}
	if s.Location != nil {
		m.Region = s.Location.Name
	}
	if s.Image != nil && s.Image.ID > 0 {
		m.ImageID = strconv.FormatInt(s.Image.ID, 10)
	}
	for _, n := range s.PrivateNet {
		if n.Network != nil && n.Network.ID > 0 {
			m.Network = strconv.FormatInt(n.Network.ID, 10)
			break
		}
	}
	return m
}

// stateOf maps the server's status. A server that is stopping is pending: it is on
// its way, and power is compared in the states running and stopped only. A server
// booted into the rescue system shows as running: rescue_enabled tells what the
// next boot does, not what this one did.
func stateOf(status hcloud.ServerStatus) (state backends.State, message string) {
	switch status {
	case hcloud.ServerStatusRunning:
		return backends.StateRunning, ""
	case hcloud.ServerStatusInitializing, hcloud.ServerStatusStarting, hcloud.ServerStatusStopping,
		hcloud.ServerStatusRebuilding, hcloud.ServerStatusMigrating:
		return backends.StatePending, ""
	case hcloud.ServerStatusOff:
		return backends.StateStopped, ""
	case hcloud.ServerStatusDeleting:
		return backends.StateDeleting, ""
	case hcloud.ServerStatusUnknown, "":
		return backends.StateUnknown, "Hetzner Cloud doesn't know the server's status."
	default:
		return backends.StateUnknown, fmt.Sprintf("Hetzner Cloud reports a status this version doesn't know: %q.", backends.Printable(string(status)))
	}
}

// addresses are the server's own, the public ones first. The API gives a public
// IPv6 network; its first address is the one Hetzner's images set up. Alias
// addresses are left out: the guest decides whether they answer.
func addresses(s *hcloud.Server) []backends.Address {
	var out []backends.Address
	add := func(ip []byte, scope backends.Scope) {
		a, ok := netip.AddrFromSlice(ip)
		if a = a.Unmap(); !ok || a.IsUnspecified() {
			return
		}
		family := backends.IPv4
		if a.Is6() {
			family = backends.IPv6
		}
		out = append(out, backends.Address{Address: a.String(), Family: family, Scope: scope})
	}
	add(s.PublicNet.IPv4.IP, backends.Public)
	if n := s.PublicNet.IPv6.Network; n != nil && len(n.IP) == 16 {
		first := append([]byte(nil), n.IP...)
		first[15] |= 1
		add(first, backends.Public)
	}
	for _, n := range s.PrivateNet {
		add(n.IP, backends.Private)
	}
	return out
}
