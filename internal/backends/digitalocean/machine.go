// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// machine is a Droplet in our words. Any part of the answer may be missing: the
// networks are empty while it is new, an image that was deleted is null.
func (c *Client) machine(d *godo.Droplet) backends.Machine {
	state, message := stateOf(d.Status)
	m := backends.Machine{
		ID: strconv.Itoa(d.ID), Name: d.Name, State: state, Message: message,
		Offer: d.SizeSlug, Network: d.VPCUUID, URN: "do:droplet:" + strconv.Itoa(d.ID),
		Created: created(d.Created), Addresses: addresses(d.Networks),
		Protected: c.tags.isProtected(d.Tags),
		Marks:     c.tags.read(d.Tags), Labels: c.tags.labels(d.Tags),
	}
	if d.Region != nil {
		m.Region = d.Region.Slug
	}
	if m.Offer == "" && d.Size != nil {
		m.Offer = d.Size.Slug
	}
	if d.Image != nil && d.Image.ID > 0 {
		m.ImageID = strconv.Itoa(d.Image.ID)
	}
	return m
}

// created is a time as the API writes it; the zero time when it is something else.
func created(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// stateOf maps the Droplet's status. That a Droplet is locked says that an event
// runs, not which, so it says nothing about the state. archive is DigitalOcean's own
// and not documented.
func stateOf(status string) (state backends.State, message string) {
	switch status {
	case "new":
		return backends.StatePending, ""
	case "active":
		return backends.StateRunning, ""
	case "off":
		return backends.StateStopped, ""
	case "archive":
		return backends.StateUnknown, "DigitalOcean has archived the Droplet: ask its support."
	case "":
		return backends.StateUnknown, "DigitalOcean doesn't say the Droplet's status."
	default:
		return backends.StateUnknown, fmt.Sprintf("DigitalOcean reports a status this version doesn't know: %q.", backends.Printable(status))
	}
}

// addresses are the Droplet's own, the public ones first. The API lists them in no
// order, and says of each whether it is public.
func addresses(networks *godo.Networks) []backends.Address {
	if networks == nil {
		return nil
	}
	var out []backends.Address
	add := func(want backends.Scope, text, scope string) {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsUnspecified() || backends.Scope(scope) != want {
			return
		}
		family := backends.IPv4
		if a.Is6() {
			family = backends.IPv6
		}
		out = append(out, backends.Address{Address: a.String(), Family: family, Scope: want})
	}
	for _, scope := range []backends.Scope{backends.Public, backends.Private} {
		for _, n := range networks.V4 {
			add(scope, n.IPAddress, n.Type)
		}
		for _, n := range networks.V6 {
			add(scope, n.IPAddress, n.Type)
		}
	}
	return out
}

// called is a machine as messages name it.
func called(m backends.Machine) string {
	if m.Name == "" {
		return "Droplet " + m.ID
	}
	return fmt.Sprintf("Droplet %s (%s)", m.Name, m.ID)
}
