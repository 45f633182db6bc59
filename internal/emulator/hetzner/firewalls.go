// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"net/netip"
	"slices"
)

type firewall struct {
	object
	Rules []firewallRule `json:"rules"`
	// Selectors are the label selectors that it is applied to.
	Selectors []string `json:"selectors"`
}

type firewallRule struct {
	Description    *string  `json:"description"`
	Direction      string   `json:"direction"`
	SourceIPs      []string `json:"source_ips"`
	DestinationIPs []string `json:"destination_ips"`
	Protocol       string   `json:"protocol"`
	Port           *string  `json:"port"`
}

func (c *call) wireFirewall(f *firewall) any {
	applied := []map[string]any{}
	for _, v := range byID(c.p.Servers) {
		if slices.Contains(v.Firewalls, f.ID) {
			applied = append(applied, appliedTo(v))
		}
	}
	for _, selector := range f.Selectors {
		one := firewall{Selectors: []string{selector}}
		resources := []map[string]any{}
		for _, v := range byID(c.p.Servers) {
			if one.selects(v) {
				resources = append(resources, appliedTo(v))
			}
		}
		applied = append(applied, map[string]any{
			"type": "label_selector", "label_selector": map[string]any{"selector": selector}, "applied_to_resources": resources,
		})
	}
	return map[string]any{
		"id": f.ID, "name": f.Name, "labels": f.Labels, "created": stamp(f.Created),
		"rules": append([]firewallRule{}, f.Rules...), "applied_to": applied,
	}
}

func appliedTo(v *server) map[string]any {
	return map[string]any{"type": "server", "server": map[string]any{"id": v.ID}}
}

func (r *firewallRule) check(problems *fields) {
	if !slices.Contains([]string{"in", "out"}, r.Direction) {
		problems.add("rules", "direction must be in or out")
	}
	if !slices.Contains([]string{"tcp", "udp", "icmp", "esp", "gre"}, r.Protocol) {
		problems.add("rules", "protocol must be tcp, udp, icmp, esp or gre")
	}
	if ported := r.Protocol == "tcp" || r.Protocol == "udp"; ported != (r.Port != nil) {
		problems.add("rules", "port is needed for tcp and udp, and for them only")
	}
	for _, text := range slices.Concat(r.SourceIPs, r.DestinationIPs) {
		if _, err := netip.ParsePrefix(text); err != nil {
			problems.add("rules", "'%s' is not an IP range", text)
		}
	}
	if r.SourceIPs == nil {
		r.SourceIPs = []string{}
	}
	if r.DestinationIPs == nil {
		r.DestinationIPs = []string{}
	}
}

func listFirewalls(c *call) (any, error) {
	return c.list("firewalls", rows(c.p.Firewalls, c.wireFirewall), "id", "name", "created")
}

func createFirewall(c *call) (any, error) {
	var request struct {
		Name    string             `json:"name"`
		Labels  map[string]string  `json:"labels"`
		Rules   []firewallRule     `json:"rules"`
		ApplyTo []firewallResource `json:"apply_to"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	anyName(&problems, request.Name)
	checkLabels(&problems, request.Labels)
	for i := range request.Rules {
		request.Rules[i].check(&problems)
	}
	for _, resource := range request.ApplyTo {
		resource.check(&problems, "apply_to")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if nameTaken(c.p.Firewalls)(request.Name) {
		return nil, notUnique("firewall", "name")
	}
	f := &firewall{Rules: request.Rules}
	servers, err := c.applying(f, request.ApplyTo, http.StatusUnprocessableEntity)
	if err != nil {
		return nil, err
	}
	f.object = c.newObject(request.Name, request.Labels)
	c.p.Firewalls[f.ID] = f
	actions := []wireAction{c.act("set_firewall_rules", 0, nil, 0, effect{}, wireResource{f.ID, "firewall"}).wire(c.now)}
	actions = append(actions, c.apply(f, request.ApplyTo, servers)...)
	return map[string]any{"firewall": c.wireFirewall(f), "actions": actions}, nil
}

func getFirewall(c *call) (any, error) {
	f, err := get(c, "firewall", c.p.Firewalls)
	if err != nil {
		return nil, err
	}
	return map[string]any{"firewall": c.wireFirewall(f)}, nil
}

func updateFirewall(c *call) (any, error) {
	f, err := get(c, "firewall", c.p.Firewalls)
	if err != nil {
		return nil, err
	}
	if err := c.update("firewall", &f.object, nameTaken(c.p.Firewalls), anyName); err != nil {
		return nil, err
	}
	return map[string]any{"firewall": c.wireFirewall(f)}, nil
}

func deleteFirewall(c *call) (any, error) {
	f, err := get(c, "firewall", c.p.Firewalls)
	if err != nil {
		return nil, err
	}
	inUse := len(f.Selectors) > 0
	for _, v := range c.p.Servers {
		inUse = inUse || slices.Contains(v.Firewalls, f.ID)
	}
	if inUse {
		return nil, refused(http.StatusUnprocessableEntity, "resource_in_use", "firewall is still in use")
	}
	delete(c.p.Firewalls, f.ID)
	return noContent(nil)
}
