// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// formats verify values of the formats that matter here; "" is fine.
var formats = map[string]func(string) string{
	"dns-name":          pattern(`([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`, "value does not look like a valid DNS name"),
	"pve-node":          pattern(`[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`, "value does not look like a valid node name"),
	"pve-storage-id":    pattern(`(?i)[a-z][a-z0-9\-_.]*[a-z0-9]`, "storage ID contains illegal characters"),
	"pve-poolid":        pattern(`[A-Za-z0-9.\-_]+(/[A-Za-z0-9.\-_]+){0,2}`, "value does not look like a valid pool ID"),
	"pve-configid":      pattern(`(?i)[a-z][a-z0-9_-]+`, "invalid configuration ID"),
	"pve-configid-list": list(pattern(`(?i)[a-z][a-z0-9_-]+`, "invalid configuration ID")),
	"urlencoded":        pattern(`[-%a-zA-Z0-9_.!~*'()]*`, "invalid urlencoded string"),
	"pve-tag-list":      list(pattern(`(?i)[a-z0-9_][a-z0-9_\-+.]*`, "invalid characters in tag")),
	"address-list":      list(address),
	"pve-vmid-list":     list(pattern(`[1-9]\d{2,8}`, "value does not look like a valid VM ID")),
	"pve-qm-ipconfig":   ipConfig,
	"pve-qm-cicustom":   properties("user", "network", "meta", "vendor"),
}

// propertyFormats are the formats of options that are lists of name=value and
// that the schema doesn't name; by the options.
var propertyFormats = map[string]func(string) string{
	"net[n]": netDevice,
	"agent":  properties("enabled", "freeze-fs-on-backup", "freeze-fs", "guest-fsfreeze", "fstrim_cloned_disks", "type"),
}

func init() {
	for i, p := range configParams {
		if p.format == "properties" && propertyFormats[p.name] != nil {
			configParams[i].format = p.name
			formats[p.name] = propertyFormats[p.name]
		}
	}
}

// invalid is how the API words that a value isn't of its format.
func invalid(what string) string { return "invalid format - " + what + "\n" }

func pattern(expression, complaint string) func(string) string {
	compiled := regexp.MustCompile("^(?:" + expression + ")$")
	return func(value string) string {
		if compiled.MatchString(value) {
			return ""
		}
		return invalid(complaint)
	}
}

// list verifies each word of a list.
func list(verify func(string) string) func(string) string {
	return func(value string) string {
		for _, word := range splitList(value) {
			if problem := verify(word); problem != "" {
				return problem
			}
		}
		return ""
	}
}

// splitList splits a list as Proxmox VE does: at commas, semicolons, blanks and
// NULs.
func splitList(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(",; \t\n\x00", r) })
}

func address(value string) string {
	if _, err := netip.ParseAddr(value); err != nil {
		return invalid("value does not look like a valid IP address")
	}
	return ""
}

// property is a part of an option: name=value, or a value alone.
type property struct{ name, value string }

// splitProperties splits an option's value; a part without a name gets the
// default one.
func splitProperties(text, byDefault string) []property {
	var all []property
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, value, named := strings.Cut(part, "=")
		if !named {
			name, value = byDefault, part
		}
		all = append(all, property{name, value})
	}
	return all
}

func joinProperties(all []property, byDefault string) string {
	parts := make([]string, len(all))
	for i, p := range all {
		parts[i] = p.name + "=" + p.value
		if p.name == byDefault {
			parts[i] = p.value
		}
	}
	return strings.Join(parts, ",")
}

// lookup is the value of a property of an option; empty when it has none.
func lookup(text, byDefault, name string) string {
	for _, p := range splitProperties(text, byDefault) {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// properties verifies that an option has known parts only; the first is the
// default one.
func properties(known ...string) func(string) string {
	return func(value string) string {
		for _, p := range splitProperties(value, known[0]) {
			if !slices.Contains(known, p.name) {
				return formatError(p.name, "property is not defined in schema and the schema does not allow additional properties")
			}
		}
		return ""
	}
}

func formatError(name, problem string) string {
	return invalid("format error\n" + name + ": " + problem)
}

// ipConfig verifies ip=ADDRESS/BITS|dhcp, gw=ADDRESS, ip6=…|auto|dhcp, gw6=….
func ipConfig(value string) string {
	seen := map[string]string{}
	for _, p := range splitProperties(value, "ip") {
		seen[p.name] = p.value
		switch p.name {
		case "ip", "ip6":
			if p.value == "dhcp" || (p.name == "ip6" && p.value == "auto") {
				continue
			}
			if prefix, err := netip.ParsePrefix(p.value); err != nil || prefix.Addr().Is4() != (p.name == "ip") {
				return formatError(p.name, "invalid format - value does not look like a valid "+family(p.name)+" network configuration")
			}
		case "gw", "gw6":
			if a, err := netip.ParseAddr(p.value); err != nil || a.Is4() != (p.name == "gw") {
				return formatError(p.name, "invalid format - value does not look like a valid "+family(p.name)+" address")
			}
		default:
			return formatError(p.name, "property is not defined in schema and the schema does not allow additional properties")
		}
	}
	for gateway, ip := range map[string]string{"gw": "ip", "gw6": "ip6"} {
		if seen[gateway] != "" && seen[ip] == "" {
			return formatError(gateway, "missing property - '"+gateway+"' requires this property: "+ip)
		}
	}
	return ""
}

func family(name string) string {
	if strings.HasSuffix(name, "6") {
		return "ipv6"
	}
	return "ipv4"
}

// cardModels are the network cards that QEMU emulates here.
var cardModels = words(`e1000 e1000-82540em e1000-82544gc e1000-82545em e1000e i82551 i82557b i82559er
	ne2k_isa ne2k_pci pcnet rtl8139 virtio vmxnet3`)

var cardProperties = words(`model bridge firewall link_down macaddr mtu queues rate tag trunks`)

// netDevice verifies virtio[=MAC],bridge=vmbr0,….
func netDevice(value string) string {
	model := ""
	for _, p := range splitProperties(value, "model") {
		switch {
		case slices.Contains(cardModels, p.name):
			model = p.name
			if !validMAC(p.value) {
				return formatError("macaddr", "invalid format - value does not look like a valid unicast MAC address")
			}
		case p.name == "model":
			model = p.value
		case p.name == "macaddr" && !validMAC(p.value):
			return formatError("macaddr", "invalid format - value does not look like a valid unicast MAC address")
		case !slices.Contains(cardProperties, p.name):
			return formatError(p.name, "property is not defined in schema and the schema does not allow additional properties")
		}
	}
	if !slices.Contains(cardModels, model) {
		if model == "" {
			return formatError("model", "property is missing and it is not optional")
		}
		return formatError("model", "value '"+model+"' does not have a value in the enumeration '"+strings.Join(cardModels, ", ")+"'")
	}
	return ""
}

var unicastMAC = regexp.MustCompile(`^[a-fA-F0-9][02468aceACE](:[a-fA-F0-9]{2}){5}$`)

func validMAC(text string) bool { return unicastMAC.MatchString(text) }
