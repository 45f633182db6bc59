// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"slices"
)

// firewallsPerServer is how many firewalls a server takes, those of label
// selectors included (description of apply_to_resources).
const firewallsPerServer = 5

// firewallEffect is what an action does to a firewall's place on a server.
type firewallEffect struct {
	ID int64 `json:"id"`
	// Remove takes it off; else it was put on, and an action that fails takes it
	// off again.
	Remove bool `json:"remove,omitempty"`
}

// carryOut does it to a server.
func (e *firewallEffect) carryOut(v *server, failed bool) {
	if e.Remove != failed {
		v.Firewalls = slices.DeleteFunc(slices.Clone(v.Firewalls), func(id int64) bool { return id == e.ID })
	}
}

// firewallResource is what a firewall can be applied to, in requests.
type firewallResource struct {
	Type   string `json:"type"`
	Server *struct {
		ID int64 `json:"id"`
	} `json:"server"`
	LabelSelector *struct {
		Selector string `json:"selector"`
	} `json:"label_selector"`
}

// check reports a resource that isn't one.
func (r firewallResource) check(problems *fields, field string) {
	switch {
	case r.Type == "server" && r.Server != nil:
	case r.Type == "label_selector" && r.LabelSelector != nil:
		if _, err := parseSelector(r.LabelSelector.Selector); err != nil {
			problems.add(field, "label_selector: %s", err)
		}
	default:
		problems.add(field, "type must be server or label_selector, with the field of that name")
	}
}

// firewallsOf are the firewalls on a server: those applied to it, and those whose
// label selectors it matches. Such a match holds at once here; the real API takes
// a few seconds.
func (p *project) firewallsOf(v *server) []int64 {
	ids := slices.Clone(v.Firewalls)
	for _, f := range byID(p.Firewalls) {
		if !slices.Contains(ids, f.ID) && f.selects(v) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// selects tells whether one of the firewall's label selectors matches a server.
func (f *firewall) selects(v *server) bool {
	return slices.ContainsFunc(f.Selectors, func(text string) bool {
		selector, err := parseSelector(text)
		return err == nil && selector.matches(v.Labels)
	})
}

// firewallStatus is pending until the action that applies it is done.
func (p *project) firewallStatus(v *server, firewall int64) string {
	for _, a := range p.Open {
		if a.Server == v.ID && a.Effect.Firewall != nil && a.Effect.Firewall.ID == firewall && !a.Effect.Firewall.Remove {
			return "pending"
		}
	}
	return "applied"
}

// applying finds what a firewall is to be applied to, and refuses what it can't be.
func (c *call) applying(f *firewall, resources []firewallResource, missing int) ([]*server, error) {
	var servers []*server
	for _, r := range resources {
		if r.Server == nil {
			if slices.Contains(f.Selectors, r.LabelSelector.Selector) {
				return nil, alreadyApplied()
			}
			continue
		}
		v := c.p.Servers[r.Server.ID]
		switch {
		case v == nil:
			return nil, noFirewallResource(missing)
		case c.p.locked(v.ID):
			return nil, locked("server")
		case slices.Contains(v.Firewalls, f.ID):
			return nil, alreadyApplied()
		case slices.Contains(servers, v):
			return nil, refused(http.StatusUnprocessableEntity, "server_already_added", "server was applied more than once")
		case v.IPv4 == 0 && v.IPv6 == 0:
			return nil, refused(http.StatusUnprocessableEntity, "private_net_only_server", "server has no public network interface")
		case !slices.Contains(c.p.firewallsOf(v), f.ID) && len(c.p.firewallsOf(v)) >= firewallsPerServer:
			// The general code for limits; the real one isn't known.
			return nil, overLimit("firewalls_per_server_limit", "server has reached its limit of firewalls")
		}
		servers = append(servers, v)
	}
	return servers, nil
}

func alreadyApplied() error {
	return refused(http.StatusUnprocessableEntity, "firewall_already_applied", "firewall is already applied to the resource")
}

// noFirewallResource has the status that the operation is described with.
func noFirewallResource(status int) error {
	return refused(status, "firewall_resource_not_found", "firewall resource not found")
}

// apply begins the actions that apply a firewall.
func (c *call) apply(f *firewall, resources []firewallResource, servers []*server) []wireAction {
	actions := []wireAction{}
	resource := wireResource{f.ID, "firewall"}
	for _, v := range servers {
		v.Firewalls = append(v.Firewalls, f.ID)
		a := c.act("apply_firewall", v.ID, nil, c.s.options.Boot/8, effect{Firewall: &firewallEffect{ID: f.ID}}, resource)
		actions = append(actions, a.wire(c.now))
	}
	for _, r := range resources {
		if r.LabelSelector != nil {
			f.Selectors = append(f.Selectors, r.LabelSelector.Selector)
			actions = append(actions, c.act("apply_firewall", 0, nil, 0, effect{}, resource).wire(c.now))
		}
	}
	return actions
}

func applyToResources(c *call) (any, error) {
	f, err := get(c, "firewall", c.p.Firewalls)
	if err != nil {
		return nil, err
	}
	var request struct {
		ApplyTo []firewallResource `json:"apply_to"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if err := checkResources("apply_to", request.ApplyTo); err != nil {
		return nil, err
	}
	servers, err := c.applying(f, request.ApplyTo, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	return map[string]any{"actions": c.apply(f, request.ApplyTo, servers)}, nil
}

func checkResources(field string, resources []firewallResource) error {
	var problems fields
	if len(resources) == 0 {
		problems.add(field, "must not be empty")
	}
	for _, r := range resources {
		r.check(&problems, field)
	}
	return problems.err()
}

// removeFromResources takes label selectors too, as the request's schema does. A
// firewall that isn't on the server is answered as a resource that isn't there: the
// code firewall_already_removed is no longer in use.
func removeFromResources(c *call) (any, error) {
	f, err := get(c, "firewall", c.p.Firewalls)
	if err != nil {
		return nil, err
	}
	var request struct {
		RemoveFrom []firewallResource `json:"remove_from"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if err := checkResources("remove_from", request.RemoveFrom); err != nil {
		return nil, err
	}
	var servers []*server
	for _, r := range request.RemoveFrom {
		if r.Server == nil {
			if !slices.Contains(f.Selectors, r.LabelSelector.Selector) {
				return nil, noFirewallResource(http.StatusNotFound)
			}
			continue
		}
		v := c.p.Servers[r.Server.ID]
		switch {
		case v == nil:
			return nil, noFirewallResource(http.StatusNotFound)
		case c.p.locked(v.ID):
			return nil, locked("server")
		case slices.Contains(v.Firewalls, f.ID):
			servers = append(servers, v)
		case f.selects(v):
			return nil, refused(http.StatusUnprocessableEntity, "firewall_managed_by_label_selector",
				"firewall is applied via a label selector and cannot be removed manually")
		default:
			return nil, noFirewallResource(http.StatusNotFound)
		}
	}
	actions := []wireAction{}
	for _, v := range servers {
		a := c.act("remove_firewall", v.ID, nil, c.s.options.Boot/8,
			effect{Firewall: &firewallEffect{ID: f.ID, Remove: true}}, wireResource{f.ID, "firewall"})
		actions = append(actions, a.wire(c.now))
	}
	for _, r := range request.RemoveFrom {
		if r.LabelSelector != nil {
			f.Selectors = slices.DeleteFunc(f.Selectors, func(s string) bool { return s == r.LabelSelector.Selector })
			actions = append(actions, c.act("remove_firewall", 0, nil, 0, effect{}, wireResource{f.ID, "firewall"}).wire(c.now))
		}
	}
	return map[string]any{"actions": actions}, nil
}
