// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// mayAskAgent wants the privilege that the version has for it.
func mayAskAgent(c *call) error {
	if c.s.options.Version < 9 {
		return c.need("/vms/"+c.ids["vmid"], "VM.Monitor")
	}
	return c.needAny("/vms/"+c.ids["vmid"], "VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted")
}

// agentEnabled tells whether a VM's options say that there is an agent.
func agentEnabled(g *guest) bool {
	return lookup(g.option("agent"), "enabled", "enabled") == "1"
}

// agent finds a VM whose agent answers. The real one waits up to 3 s before it says
// that an agent isn't running.
func (c *call) agent() (*guest, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	switch {
	case !agentEnabled(g):
		return nil, died("No QEMU guest agent configured")
	case !g.Running:
		return nil, died("VM %d is not running", g.ID)
	case !g.Agent || c.now.Before(g.Started.Add(c.s.options.AgentDelay)):
		return nil, died("QEMU guest agent is not running")
	}
	return g, nil
}

// agentSystem asks the guest what it is.
func agentSystem(c *call) (any, error) {
	if _, err := c.agent(); err != nil {
		return nil, err
	}
	return map[string]any{"result": map[string]any{
		"id": "linux", "name": "Emulated Linux", "kernel-release": "6.12.0", "machine": "x86_64",
	}}, nil
}

// agentInterfaces asks the guest for its network interfaces.
func agentInterfaces(c *call) (any, error) {
	g, err := c.agent()
	if err != nil {
		return nil, err
	}
	interfaces := []any{map[string]any{
		"name": "lo", "hardware-address": "00:00:00:00:00:00",
		"ip-addresses": []any{ipRow("127.0.0.1", 8), ipRow("::1", 128)},
		"statistics":   statistics(),
	}}
	for i, key := range netKeys(g.Config) {
		mac := strings.ToLower(cardMAC(g.Config[key]))
		row := map[string]any{"name": "eth" + strconv.Itoa(i), "hardware-address": mac, "statistics": statistics()}
		// A card without an address has no list of addresses at all.
		if lookup(g.Config[key], "model", "link_down") != "1" {
			row["ip-addresses"] = g.addresses(key, mac)
		}
		interfaces = append(interfaces, row)
	}
	return map[string]any{"result": interfaces}, nil
}

func netKeys(config map[string]string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if netName.MatchString(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// cardMAC is the address of a network card.
func cardMAC(text string) string {
	for _, p := range splitProperties(text, "model") {
		if slices.Contains(cardModels, p.name) || p.name == "macaddr" {
			return p.value
		}
	}
	return ""
}

// addresses are those that a guest has on a card: as its drive for cloud-init told it
// when it last booted, or by DHCP.
func (g *guest) addresses(key, mac string) []any {
	config := ""
	if hasCloudInit(g.Config) {
		config = g.Booted["ipconfig"+strings.TrimPrefix(key, "net")]
	}
	var rows []any
	ip := lookup(config, "ip", "ip")
	ip6 := lookup(config, "ip", "ip6")
	switch {
	case ip == "dhcp", ip == "" && ip6 == "":
		// One network of 65,000 leases for all bridges is enough here.
		rows = append(rows, ipRow(fmt.Sprintf("10.40.%d.%d", g.Lease/250, 2+g.Lease%250), 16))
	case ip != "":
		rows = append(rows, prefixRow(ip))
	}
	switch ip6 {
	case "":
	case "auto", "dhcp":
		rows = append(rows, ipRow(fmt.Sprintf("2001:db8:40::%x", 2+g.Lease), 64))
	default:
		rows = append(rows, prefixRow(ip6))
	}
	return append(rows, ipRow(linkLocal(mac), 64))
}

func prefixRow(text string) map[string]any {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return ipRow(text, 32)
	}
	return ipRow(prefix.Addr().String(), prefix.Bits())
}

func ipRow(address string, bits int) map[string]any {
	kind := "ipv4"
	if strings.Contains(address, ":") {
		kind = "ipv6"
	}
	return map[string]any{"ip-address": address, "ip-address-type": kind, "prefix": bits}
}

// linkLocal is the address that a card gives itself (RFC 4291, appendix A).
func linkLocal(mac string) string {
	parts := strings.Split(mac, ":")
	if len(parts) != 6 {
		return "fe80::1"
	}
	var b [6]byte
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 16, 8)
		if err != nil {
			return "fe80::1"
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: b[0] ^ 2, b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]}).String()
}

func statistics() map[string]any {
	return map[string]any{
		"rx-bytes": 1000, "rx-dropped": 0, "rx-errs": 0, "rx-packets": 10,
		"tx-bytes": 1000, "tx-dropped": 0, "tx-errs": 0, "tx-packets": 10,
	}
}
