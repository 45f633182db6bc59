// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import "net/http"

// primaryIPEffect is what an action does to a primary IP when it succeeds.
type primaryIPEffect struct {
	ID int64 `json:"id"`
	// Assignee is the server that it is assigned to then; 0: none.
	Assignee int64 `json:"assignee,omitempty"`
}

// carryOut assigns or unassigns.
func (p *project) carryOut(e *primaryIPEffect) {
	ip := p.PrimaryIPs[e.ID]
	if ip == nil {
		return
	}
	id, server := int64(0), p.Servers[ip.Assignee]
	if e.Assignee != 0 {
		id, server = ip.ID, p.Servers[e.Assignee]
	}
	if server == nil {
		return
	}
	ip.Assignee = e.Assignee
	if ip.Type == "ipv6" {
		server.IPv6 = id
	} else {
		server.IPv4 = id
	}
}

// assignable finds a server that can get a primary IP of a family: one that is off,
// not locked, and has none.
func (c *call) assignable(id int64, family string) (*server, error) {
	v := c.p.Servers[id]
	switch {
	case v == nil:
		return nil, notFound("server", id)
	case c.p.locked(id):
		return nil, locked("server")
	case v.Status != statusOff:
		return nil, notStopped()
	case family == "ipv4" && v.IPv4 != 0:
		return nil, refused(http.StatusUnprocessableEntity, "server_has_ipv4", "server already has an ipv4 address")
	case family == "ipv6" && v.IPv6 != 0:
		return nil, refused(http.StatusUnprocessableEntity, "server_has_ipv6", "server already has an ipv6 address")
	}
	return v, nil
}

func notStopped() error {
	return refused(http.StatusUnprocessableEntity, "server_not_stopped", "server must be powered off")
}

// assign begins the action that assigns a primary IP.
func (c *call) assign(ip *primaryIP, v *server) *action {
	return c.act("assign_primary_ip", v.ID, nil, c.s.options.Boot/8,
		effect{PrimaryIP: &primaryIPEffect{ID: ip.ID, Assignee: v.ID}}, wireResource{ip.ID, "primary_ip"})
}

func assignPrimaryIP(c *call) (any, error) {
	ip, err := get(c, "primary IP", c.p.PrimaryIPs)
	if err != nil {
		return nil, err
	}
	var request struct {
		AssigneeID   int64  `json:"assignee_id"`
		AssigneeType string `json:"assignee_type"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	if request.AssigneeID == 0 {
		problems.add("assignee_id", "must not be empty")
	}
	if request.AssigneeType != "server" {
		problems.add("assignee_type", "must be server")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	// An address that is the server's own already is refused as one of another.
	if ip.Assignee != 0 {
		return nil, refused(http.StatusUnprocessableEntity, "primary_ip_already_assigned", "primary IP is already assigned")
	}
	v, err := c.assignable(request.AssigneeID, ip.Type)
	if err != nil {
		return nil, err
	}
	if v.Location != ip.Location {
		// The code that POST /servers has for it.
		return nil, refused(http.StatusUnprocessableEntity, "primary_ip_datacenter_mismatch", "primary IP is in a different location")
	}
	return c.acted(c.assign(ip, v))
}

// unassignPrimaryIP leaves an address that was made with its server: it goes with
// the server it is assigned to, not with its assignment. What is answered about one
// that isn't assigned is not known.
func unassignPrimaryIP(c *call) (any, error) {
	ip, err := get(c, "primary IP", c.p.PrimaryIPs)
	if err != nil {
		return nil, err
	}
	v := c.p.Servers[ip.Assignee]
	switch {
	case v == nil:
		return nil, invalid("primary IP is not assigned")
	case c.p.locked(v.ID):
		return nil, locked("server")
	case v.Status != statusOff:
		return nil, notStopped()
	}
	return c.acted(c.act("unassign_primary_ip", v.ID, nil, c.s.options.Boot/8,
		effect{PrimaryIP: &primaryIPEffect{ID: ip.ID}}, wireResource{ip.ID, "primary_ip"}))
}
