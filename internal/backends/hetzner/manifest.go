// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/netip"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// attribute is the cloud's attribute in accounts and instances.
const attribute = "hetzner_cloud"

// maxID is the largest id the API hands out (OpenAPI: maximum 2^53 - 1).
const maxID = 1<<53 - 1

func accountFields(endpoint string) []backends.Field {
	return []backends.Field{
		{
			Name: "token", Type: backends.TypeString, Required: true, Secret: true,
			Description: "A reference to an API token of the project, with read and write access. It is resolved for every request.",
		},
		{
			Name: "location", Type: backends.TypeString, Default: "fsn1",
			Options:     []string{"fsn1", "nbg1", "hel1", "ash", "hil", "sin"},
			Description: "Where servers are made that name no region.",
		},
		{
			Name: "endpoint", Type: backends.TypeString, Default: endpoint, Check: stringCheck(checkEndpoint),
			Description: "The API's base url, version included and without a trailing slash. It must be https, unless it is on this machine.",
		},
	}
}

func machineFields() []backends.Field {
	id := stringCheck(checkID)
	return []backends.Field{
		{
			Name: "ssh_key_ids", Type: backends.TypeStringList,
			Description: "Ids or names of the project's SSH keys, put on the server when it is made. Without any, and without `ssh_keys`, Hetzner makes a root password that nobody sees.",
		},
		{
			Name: "firewall_ids", Type: backends.TypeStringSet, Check: id,
			Description: "Ids of firewalls that hold from the first boot on, five at most. Firewalls that something else applies to the server stay.",
		},
		{
			Name: "networks", Type: backends.TypeObjectList,
			Description: "Private networks, in the order of their interfaces. Excludes `network_id`. Networks that something else attaches the server to stay. A network with `ip` or `alias_ips` can only be attached once the server exists: it and those after it are attached before the server's first start.",
			Fields: []backends.Field{
				{Name: "network_id", Type: backends.TypeString, Required: true, Check: id, Description: "The network's id."},
				{
					Name: "ip", Type: backends.TypeString, Check: stringCheck(checkIPv4),
					Description: "The server's IPv4 address in the network; unset: the network chooses.",
				},
				{
					Name: "alias_ips", Type: backends.TypeStringSet, Check: stringCheck(checkIPv4),
					Description: "More IPv4 addresses in the network, which the guest must set up itself.",
				},
			},
		},
		{Name: "public_ipv4", Type: backends.TypeBool, Description: "A public IPv4 address; unset: a new server has one. A change restarts the server."},
		{Name: "public_ipv6", Type: backends.TypeBool, Description: "A public IPv6 network; unset: a new server has one. A change restarts the server."},
		{
			Name: "primary_ipv4_id", Type: backends.TypeString, Check: id,
			Description: "The id of a primary IP of your own for the public IPv4 address, in the server's location and not to be deleted with it (`auto_delete = false`); unset: one is made with the server and goes with it. A change restarts the server.",
		},
		{
			Name: "primary_ipv6_id", Type: backends.TypeString, Check: id,
			Description: "The same for the public IPv6 network.",
		},
		{
			Name: "placement_group_id", Type: backends.TypeString, Check: id,
			Description: "The id of a placement group, which holds ten servers at most. A change restarts the server.",
		},
		{
			Name: "backups", Type: backends.TypeBool,
			Description: "Daily backups by Hetzner, for 20 % of the server's price; switched on once the server exists. Switching them off deletes those there are.",
		},
	}
}

func stringCheck(check func(string) string) func(any) string {
	return func(value any) string {
		s, ok := value.(string)
		if !ok {
			return "" // not this check's to say
		}
		return check(s)
	}
}

// parseID reads an id of the cloud: a positive integer in its one spelling.
func parseID(s string) (int64, bool) {
	id, err := strconv.ParseInt(s, 10, 64)
	return id, err == nil && id > 0 && id <= maxID && strconv.FormatInt(id, 10) == s
}

func checkID(s string) string {
	if _, ok := parseID(s); !ok {
		return strconv.Quote(s) + " is not an id of Hetzner Cloud: a positive integer, such as 4711."
	}
	return ""
}

func checkIPv4(s string) string {
	if a, err := netip.ParseAddr(s); err != nil || !a.Is4() {
		return strconv.Quote(s) + " is not an IPv4 address without a prefix length: Hetzner's networks have no others."
	}
	return ""
}

func checkEndpoint(s string) string { return backends.EndpointProblem(s, DefaultEndpoint) }
