// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// hetznerThings are what the options of a server name: two of each, by their ids in the
// order in which [prepareHetzner] makes them.
type hetznerThings struct{ networks, firewalls, groups, ipv4s []string }

// firstHetznerID is the id of the first thing that is made in an emulated project.
const firstHetznerID = 1_000_000

// prepareHetzner makes the things; ids are numbered, so that each run has the same. One
// takes an action's number too where making it is an action.
func prepareHetzner(service emulator.Service) string {
	create := func(path, body string) {
		r, err := http.NewRequest(http.MethodPost, "http://hetzner.test/v1/"+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Authorization", "Bearer token")
		answer, err := emulator.Transport(service).RoundTrip(r)
		if err != nil || answer.StatusCode != http.StatusCreated {
			panic(fmt.Sprint(path, answer, err))
		}
		_ = answer.Body.Close()
	}
	for i := range 2 {
		create("networks", fmt.Sprintf(`{"name":"n%d","ip_range":"10.%d.0.0/16","subnets":[{"type":"cloud","ip_range":"10.%d.1.0/24","network_zone":"eu-central"}]}`, i, i, i))
		create("placement_groups", fmt.Sprintf(`{"name":"g%d","type":"spread"}`, i))
		create("primary_ips", fmt.Sprintf(`{"name":"p%d","type":"ipv4","location":"fsn1"}`, i))
		create("firewalls", fmt.Sprintf(`{"name":"f%d"}`, i))
	}
	return ""
}

// namedInHetzner are the ids of what [prepareHetzner] makes.
func namedInHetzner() hetznerThings {
	var out hetznerThings
	next := firstHetznerID
	id := func(also int) string {
		n := next
		next += 1 + also
		return strconv.Itoa(n)
	}
	for range 2 {
		out.networks = append(out.networks, id(0))
		out.groups = append(out.groups, id(0))
		out.ipv4s = append(out.ipv4s, id(0))
		out.firewalls = append(out.firewalls, id(1))
	}
	return out
}

// hetznerEdits change what only Hetzner's servers have, one thing at a time and all
// together with the name, the labels and the offer.
func hetznerEdits(base given) []operation {
	things := namedInHetzner()
	web := func(options, more given) blocks {
		return blocks{anInstance("web", base, with(given{"hetzner_cloud": options}, more))}
	}
	network := func(i int, more given) []given { return []given{with(given{"network_id": things.networks[i]}, more)} }
	return []operation{
		{name: "edit-firewalls", from: web(given{"firewall_ids": things.firewalls[:1]}, nil), to: web(given{"firewall_ids": things.firewalls[1:]}, nil)},
		{name: "edit-networks", from: web(given{"networks": network(0, nil)}, nil), to: web(given{"networks": network(1, given{"ip": "10.1.1.9"})}, nil)},
		{name: "edit-address-in-network", from: web(given{"networks": network(0, given{"ip": "10.0.1.5"})}, nil), to: web(given{"networks": network(0, given{"ip": "10.0.1.6", "alias_ips": []string{"10.0.1.7"}})}, nil)},
		{name: "edit-backups", from: web(given{"backups": true}, nil), to: web(given{"backups": false}, nil)},
		{name: "edit-placement-group", from: web(given{"placement_group_id": things.groups[0]}, nil), to: web(given{"placement_group_id": things.groups[1]}, nil)},
		{name: "edit-address-off", from: web(given{}, nil), to: web(given{"public_ipv6": false}, nil)},
		{name: "edit-address-on", from: web(given{"public_ipv6": false}, nil), to: web(given{"public_ipv6": true}, nil)},
		{name: "edit-primary-ip", from: web(given{}, nil), to: web(given{"primary_ipv4_id": things.ipv4s[0]}, nil)},
		{name: "edit-other-primary-ip", from: web(given{"primary_ipv4_id": things.ipv4s[0]}, nil), to: web(given{"primary_ipv4_id": things.ipv4s[1]}, nil)},
		{
			name: "edit-everything",
			from: web(given{"networks": network(0, nil), "firewall_ids": things.firewalls[:1]}, given{"labels": map[string]string{"app": "web", "env": "a"}}),
			to: web(given{
				"networks": network(1, nil), "firewall_ids": things.firewalls[1:], "placement_group_id": things.groups[0],
				"primary_ipv4_id": things.ipv4s[0], "public_ipv6": false, "backups": true,
			}, given{"name": "renamed", "offer": "cx33", "labels": map[string]string{"app": "api"}}),
		},
	}
}

// hetznerLeftovers are the addresses that nothing has and that no server goes with.
func hetznerLeftovers(service emulator.Service) (out []string) {
	things := namedInHetzner()
	for _, ip := range service.(*hetzneremulator.Service).PrimaryIPs() {
		if ip.Server == 0 && !slices.Contains(things.ipv4s, strconv.FormatInt(ip.ID, 10)) {
			out = append(out, "an address of "+ip.Type+" that nothing has")
		}
	}
	return out
}

// hetznerOptions are what options have made of a server.
func hetznerOptions(v hetzneremulator.Server) string {
	things := namedInHetzner()
	address := func(id int64) string {
		switch {
		case id == 0:
			return "none"
		case slices.Contains(things.ipv4s, strconv.FormatInt(id, 10)):
			return strconv.FormatInt(id, 10)
		}
		return "its own"
	}
	return fmt.Sprint(" firewalls ", v.Firewalls, " networks ", v.Networks, " group ", v.PlacementGroup,
		" IPv4 ", address(v.IPv4), " IPv6 ", address(v.IPv6), " disk ", v.Disk)
}
