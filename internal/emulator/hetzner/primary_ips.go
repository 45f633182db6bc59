// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
)

type primaryIP struct {
	object
	Type       string `json:"type"`
	IP         string `json:"ip"`
	Location   int64  `json:"location"`
	AutoDelete bool   `json:"auto_delete"`
	// Assignee is a server; 0 for none.
	Assignee int64 `json:"assignee"`
}

// pointer is the reverse DNS name that an IPv4 address has by default.
func (ip *primaryIP) pointer() string {
	parts := strings.Split(ip.IP, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return "static." + strings.Join(parts, ".") + ".clients.your-server.de"
}

func (c *call) wirePrimaryIP(ip *primaryIP) wirePrimaryIP {
	w := wirePrimaryIP{
		ID: ip.ID, Name: ip.Name, Labels: ip.Labels, Created: stamp(ip.Created),
		Location: c.s.catalog.locationByID(ip.Location), IP: ip.IP, DNSPtr: []wireDNSPtr{},
		Type: ip.Type, AutoDelete: ip.AutoDelete, AssigneeType: "unassigned",
	}
	if ip.Type == "ipv4" {
		w.DNSPtr = append(w.DNSPtr, wireDNSPtr{IP: ip.IP, DNSPtr: ip.pointer()})
	}
	if ip.Assignee != 0 {
		w.AssigneeID, w.AssigneeType = new(ip.Assignee), "server"
	}
	return w
}

// newPrimaryIP makes an address: IPv4 from the range for documentation
// (203.0.113.0/24, RFC 5737) and then from that for benchmarks (198.18.0.0/15,
// RFC 2544), IPv6 a /64 of the range for documentation (RFC 3849). Addresses
// are not given twice before all have been.
func (c *call) newPrimaryIP(name, family string, location int64, labels map[string]string) *primaryIP {
	n := c.s.store.NextAddress
	c.s.store.NextAddress++
	ip := &primaryIP{object: c.newObject(name, labels), Type: family, Location: location}
	if family == "ipv6" {
		ip.IP = fmt.Sprintf("2001:db8:%x:%x::/64", n>>16&0xffff, n&0xffff)
	} else {
		ip.IP = address(n).String()
	}
	c.p.PrimaryIPs[ip.ID] = ip
	return ip
}

func address(n int) netip.Addr {
	const small, large = 254, 1<<17 - 2
	n %= small + large
	if n < small {
		return netip.AddrFrom4([4]byte{203, 0, 113, byte(n + 1)})
	}
	n -= small - 1
	return netip.AddrFrom4([4]byte{198, byte(18 + n>>16), byte(n >> 8), byte(n)})
}

func listPrimaryIPs(c *call) (any, error) {
	all := rows(c.p.PrimaryIPs, func(ip *primaryIP) any { return c.wirePrimaryIP(ip) })
	all = c.oneOf("ip", all, func(r row) string { return c.p.PrimaryIPs[r.ID].IP })
	return c.list("primary_ips", all, "id", "name", "created")
}

// createPrimaryIP makes an address, assigned to a server that is off if one is named.
func createPrimaryIP(c *call) (any, error) {
	var request struct {
		Name         string            `json:"name"`
		Labels       map[string]string `json:"labels"`
		Type         string            `json:"type"`
		Location     idOrName          `json:"location"`
		AssigneeID   int64             `json:"assignee_id"`
		AssigneeType string            `json:"assignee_type"`
		AutoDelete   bool              `json:"auto_delete"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	anyName(&problems, request.Name)
	checkLabels(&problems, request.Labels)
	if request.Type != "ipv4" && request.Type != "ipv6" {
		problems.add("type", "must be ipv4 or ipv6")
	}
	if request.AssigneeID != 0 && request.AssigneeType != "server" {
		problems.add("assignee_type", "must be server")
	}
	location, ok := c.s.catalog.findLocation(request.Location)
	switch {
	case request.AssigneeID != 0 && request.Location != "":
		problems.add("location", "location and assignee_id exclude each other")
	case request.AssigneeID == 0 && !ok:
		problems.add("location", "location '%s' not found", request.Location)
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if nameTaken(c.p.PrimaryIPs)(request.Name) {
		return nil, notUnique("primary IP", "name")
	}
	var assignee *server
	if request.AssigneeID != 0 {
		var err error
		if assignee, err = c.assignable(request.AssigneeID, request.Type); err != nil {
			return nil, err
		}
		location.ID = assignee.Location
	}
	ip := c.newPrimaryIP(request.Name, request.Type, location.ID, request.Labels)
	ip.AutoDelete = request.AutoDelete
	answer := map[string]any{"primary_ip": c.wirePrimaryIP(ip)}
	if assignee != nil {
		answer["action"] = c.assign(ip, assignee).wire(c.now)
	}
	return answer, nil
}

func getPrimaryIP(c *call) (any, error) {
	ip, err := get(c, "primary IP", c.p.PrimaryIPs)
	if err != nil {
		return nil, err
	}
	return map[string]any{"primary_ip": c.wirePrimaryIP(ip)}, nil
}

func updatePrimaryIP(c *call) (any, error) {
	ip, err := get(c, "primary IP", c.p.PrimaryIPs)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(c.r.Body)
	if err != nil {
		return nil, err
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	if err := c.update("primary IP", &ip.object, nameTaken(c.p.PrimaryIPs), anyName); err != nil {
		return nil, err
	}
	var request struct {
		AutoDelete *bool `json:"auto_delete"`
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.AutoDelete != nil {
		ip.AutoDelete = *request.AutoDelete
	}
	return map[string]any{"primary_ip": c.wirePrimaryIP(ip)}, nil
}

func deletePrimaryIP(c *call) (any, error) {
	ip, err := get(c, "primary IP", c.p.PrimaryIPs)
	if err != nil {
		return nil, err
	}
	if ip.Assignee != 0 {
		return nil, refused(http.StatusUnprocessableEntity, "must_be_unassigned", "primary IP must be unassigned before it is deleted")
	}
	delete(c.p.PrimaryIPs, ip.ID)
	return noContent(nil)
}
