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

// joinRequest is the body of attach_to_network.
type joinRequest struct {
	Network  int64    `json:"network"`
	IP       string   `json:"ip"`
	AliasIPs []string `json:"alias_ips"`
	IPRange  string   `json:"ip_range"`
}

// join attaches a server to a network, with the next free address of a subnet
// in its zone (of the subnet ip_range, if given), or a given one.
func (c *call) join(v *server, request joinRequest, zone string) error {
	n := c.p.Networks[request.Network]
	if n == nil {
		return notFound("network", request.Network)
	}
	whole, _ := prefix(n.IPRange)
	for _, net := range v.Private {
		if net.Network == n.ID {
			return refused(http.StatusUnprocessableEntity, "server_already_attached", "server is already attached to the network")
		}
		if attached := c.p.Networks[net.Network]; attached != nil {
			if other, ok := prefix(attached.IPRange); ok && other.Overlaps(whole) {
				return refused(http.StatusUnprocessableEntity, "networks_overlap", "network overlaps with one of the server's networks")
			}
		}
	}
	subnets := slices.DeleteFunc(slices.Clone(n.Subnets), func(s subnet) bool {
		return s.NetworkZone != zone || request.IPRange != "" && s.IPRange != request.IPRange
	})
	used := c.addressesOf(n, nil)
	if err := claim(used, subnets, request.AliasIPs); err != nil {
		return err
	}
	if request.IP != "" {
		if err := claim(used, subnets, []string{request.IP}); err != nil {
			return err
		}
		v.Private = append(v.Private, c.privateNet(n.ID, netip.MustParseAddr(request.IP), request.AliasIPs))
		return nil
	}
	for _, s := range subnets {
		ranged, _ := prefix(s.IPRange)
		// The first address is the network's, and the last is for broadcasts.
		for a := ranged.Addr().Next(); ranged.Contains(a.Next()); a = a.Next() {
			if !used[a.String()] {
				v.Private = append(v.Private, c.privateNet(n.ID, a, request.AliasIPs))
				return nil
			}
		}
	}
	return refused(http.StatusUnprocessableEntity, "no_subnet_available", "no subnet or IP is available for the server within the network")
}

// addressesOf are the addresses of a network that are taken: those of servers,
// aliases included but for a given server's, and the gateways.
func (c *call) addressesOf(n *network, but *server) map[string]bool {
	used := map[string]bool{}
	for _, s := range n.Subnets {
		used[s.Gateway] = true
	}
	for _, other := range c.p.Servers {
		for _, net := range other.Private {
			if net.Network != n.ID {
				continue
			}
			used[net.IP] = true
			for _, alias := range net.AliasIPs {
				used[alias] = used[alias] || other != but
			}
		}
	}
	return used
}

// claim takes addresses, each of which must be free and in one of the subnets.
func claim(used map[string]bool, subnets []subnet, wanted []string) error {
	for _, text := range wanted {
		address, err := netip.ParseAddr(text)
		inside := slices.ContainsFunc(subnets, func(s subnet) bool {
			ranged, _ := prefix(s.IPRange)
			return err == nil && ranged.Contains(address)
		})
		if !inside || used[address.String()] {
			return refused(http.StatusUnprocessableEntity, "ip_not_available", "the provided IP is not available")
		}
		used[address.String()] = true
	}
	return nil
}

// changeAliasIPs replaces all aliases of a server in a network.
func changeAliasIPs(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		Network  int64     `json:"network"`
		AliasIPs *[]string `json:"alias_ips"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.AliasIPs == nil {
		var problems fields
		problems.add("alias_ips", "must not be empty")
		return nil, problems.err()
	}
	at := slices.IndexFunc(v.Private, func(net wirePrivateNet) bool { return net.Network == request.Network })
	n := c.p.Networks[request.Network]
	if at < 0 || n == nil {
		return nil, invalid("server is not attached to the network")
	}
	if err := claim(c.addressesOf(n, v), n.Subnets, *request.AliasIPs); err != nil {
		return nil, err
	}
	a := c.act("change_alias_ips", v.ID, nil, 0, effect{}, wireResource{n.ID, "network"})
	if a.Fails == nil {
		v.Private = slices.Clone(v.Private)
		v.Private[at].AliasIPs = append([]string{}, *request.AliasIPs...)
	}
	return c.acted(a)
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
