// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

type network struct {
	object
	IPRange string   `json:"ip_range"`
	Subnets []subnet `json:"subnets"`
	Expose  bool     `json:"expose"`
}

type subnet struct {
	Type        string `json:"type"`
	IPRange     string `json:"ip_range"`
	NetworkZone string `json:"network_zone"`
	Gateway     string `json:"gateway"`
	VSwitchID   *int64 `json:"vswitch_id"`
}

type subnetRequest struct {
	Type        string `json:"type"`
	IPRange     string `json:"ip_range"`
	NetworkZone string `json:"network_zone"`
}

func (c *call) wireNetwork(n *network) any {
	servers := []int64{}
	for _, v := range byID(c.p.Servers) {
		if slices.ContainsFunc(v.Private, func(net wirePrivateNet) bool { return net.Network == n.ID }) {
			servers = append(servers, v.ID)
		}
	}
	return map[string]any{
		"id": n.ID, "name": n.Name, "ip_range": n.IPRange, "subnets": append([]subnet{}, n.Subnets...),
		"routes": []any{}, "servers": servers, "load_balancers": []int64{},
		"protection": wireProtection{}, "labels": n.Labels, "created": stamp(n.Created),
		"expose_routes_to_vswitch": n.Expose,
	}
}

// prefix reads a range of private addresses, in its canonical form.
func prefix(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	return p, err == nil && p.Addr().Is4() && p.Addr().IsPrivate() && p == p.Masked()
}

// addSubnetTo puts a subnet into a network; without a range of its own it gets
// the first /24 that is free, as the API does.
func (c *call) addSubnetTo(n *network, request subnetRequest) error {
	var problems fields
	if request.Type != "cloud" && request.Type != "server" {
		problems.add("type", "must be cloud or server; vswitch is not emulated")
	}
	if !slices.ContainsFunc(c.s.catalog.locations, func(l wireLocation) bool { return l.NetworkZone == request.NetworkZone }) {
		problems.add("network_zone", "'%s' is not a network zone", request.NetworkZone)
	}
	whole, _ := prefix(n.IPRange)
	free := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(n.Subnets, func(s subnet) bool {
			other, _ := prefix(s.IPRange)
			return other.Overlaps(p)
		})
	}
	var chosen netip.Prefix
	if request.IPRange == "" {
		for p := netip.PrefixFrom(whole.Addr(), max(24, whole.Bits())); whole.Contains(p.Addr()); p = after(p) {
			if free(p) {
				chosen = p
				break
			}
		}
	} else if p, ok := prefix(request.IPRange); ok && whole.Contains(p.Addr()) && p.Bits() >= whole.Bits() {
		chosen = p
	}
	if !chosen.IsValid() {
		problems.add("ip_range", "must be a range within that of the network")
	}
	if err := problems.err(); err != nil {
		return err
	}
	if !free(chosen) {
		return refused(http.StatusUnprocessableEntity, "networks_overlap", "subnet overlaps with another one")
	}
	n.Subnets = append(n.Subnets, subnet{
		Type: request.Type, IPRange: chosen.String(), NetworkZone: request.NetworkZone,
		Gateway: whole.Addr().Next().String(),
	})
	return nil
}

// after is the range of the same size that follows.
func after(p netip.Prefix) netip.Prefix {
	a := p.Addr().As4()
	step := uint32(1) << (32 - p.Bits())
	n := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	n += step
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), p.Bits())
}

// join attaches a server to a network, with the next free address of a subnet
// in its zone, or a given one.
func (c *call) join(v *server, networkID int64, ip string, aliases []string, zone string) error {
	n := c.p.Networks[networkID]
	if n == nil {
		return notFound("network", networkID)
	}
	if slices.ContainsFunc(v.Private, func(net wirePrivateNet) bool { return net.Network == networkID }) {
		return refused(http.StatusUnprocessableEntity, "server_already_attached", "server is already attached to the network")
	}
	used := map[string]bool{}
	for _, other := range c.p.Servers {
		for _, net := range other.Private {
			if net.Network == networkID {
				used[net.IP] = true
			}
		}
	}
	for _, s := range n.Subnets {
		ranged, _ := prefix(s.IPRange)
		if s.NetworkZone != zone {
			continue
		}
		if ip != "" {
			wanted, err := netip.ParseAddr(ip)
			if err != nil || !ranged.Contains(wanted) {
				continue
			}
			if used[wanted.String()] || wanted.String() == s.Gateway {
				return refused(http.StatusUnprocessableEntity, "ip_not_available", "the provided IP is not available")
			}
			v.Private = append(v.Private, c.privateNet(networkID, wanted, aliases))
			return nil
		}
		// The first address is the network's, and the last is for broadcasts.
		for a := ranged.Addr().Next(); ranged.Contains(a.Next()); a = a.Next() {
			if !used[a.String()] && a.String() != s.Gateway {
				v.Private = append(v.Private, c.privateNet(networkID, a, aliases))
				return nil
			}
		}
	}
	if ip != "" {
		return refused(http.StatusUnprocessableEntity, "ip_not_available", "the provided IP is not available")
	}
	return refused(http.StatusUnprocessableEntity, "no_subnet_available", "no subnet or IP is available for the server within the network")
}

func (c *call) privateNet(networkID int64, ip netip.Addr, aliases []string) wirePrivateNet {
	n := c.s.newID()
	mac := fmt.Sprintf("86:00:00:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))
	return wirePrivateNet{Network: networkID, IP: ip.String(), AliasIPs: append([]string{}, aliases...), MACAddress: mac}
}

func listNetworks(c *call) (any, error) {
	return c.list("networks", rows(c.p.Networks, c.wireNetwork), "id", "name", "created")
}

func createNetwork(c *call) (any, error) {
	var request struct {
		Name    string            `json:"name"`
		IPRange string            `json:"ip_range"`
		Labels  map[string]string `json:"labels"`
		Subnets []subnetRequest   `json:"subnets"`
		Routes  []any             `json:"routes"`
		Expose  bool              `json:"expose_routes_to_vswitch"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	anyName(&problems, request.Name)
	checkLabels(&problems, request.Labels)
	if _, ok := prefix(request.IPRange); !ok {
		problems.add("ip_range", "must be a range of private IPv4 addresses")
	}
	if len(request.Routes) > 0 {
		problems.add("routes", "are not emulated")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if nameTaken(c.p.Networks)(request.Name) {
		return nil, notUnique("network", "name")
	}
	n := &network{IPRange: request.IPRange, Expose: request.Expose}
	for _, subnet := range request.Subnets {
		if err := c.addSubnetTo(n, subnet); err != nil {
			return nil, err
		}
	}
	n.object = c.newObject(request.Name, request.Labels)
	c.p.Networks[n.ID] = n
	return map[string]any{"network": c.wireNetwork(n)}, nil
}

func getNetwork(c *call) (any, error) {
	n, err := get(c, "network", c.p.Networks)
	if err != nil {
		return nil, err
	}
	return map[string]any{"network": c.wireNetwork(n)}, nil
}

func updateNetwork(c *call) (any, error) {
	n, err := get(c, "network", c.p.Networks)
	if err != nil {
		return nil, err
	}
	if err := c.update("network", &n.object, nameTaken(c.p.Networks), anyName); err != nil {
		return nil, err
	}
	return map[string]any{"network": c.wireNetwork(n)}, nil
}

// deleteNetwork detaches what is attached.
func deleteNetwork(c *call) (any, error) {
	n, err := get(c, "network", c.p.Networks)
	if err != nil {
		return nil, err
	}
	for _, v := range c.p.Servers {
		v.Private = slices.DeleteFunc(v.Private, func(net wirePrivateNet) bool { return net.Network == n.ID })
	}
	delete(c.p.Networks, n.ID)
	return noContent(nil)
}

func addSubnet(c *call) (any, error) {
	n, err := get(c, "network", c.p.Networks)
	if err != nil {
		return nil, err
	}
	var request subnetRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if err := c.addSubnetTo(n, request); err != nil {
		return nil, err
	}
	return c.acted(c.act("add_subnet", 0, nil, 0, effect{}, wireResource{n.ID, "network"}))
}
