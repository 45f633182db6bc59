// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// desired are the options that a VM lacks to be what a wish says: what it has
// already is left out, and so is what the wish says nothing about. files are those of
// its user data.
func (c *Client) desired(config vmConfig, vmid int, spec backends.MachineSpec, n note, files []snippet) url.Values {
	out := url.Values{}
	set := func(name, value string) {
		if value != "" && config.get(name) != value {
			out.Set(name, value)
		}
	}
	set("name", spec.Name)
	maps.Copy(out, valuesOf(sizeOptions(config, spec.Offer)))
	if config["protection"].isTrue() && !n.protected {
		out.Set("protection", "0")
	}
	set("description", describe(n, vmid, config.get("description")))
	tags := joinTags(foreignTags(config.tags()), specTags(spec), n.tags(vmid))
	if joinTags(config.tags()) != tags {
		out.Set("tags", tags)
	}
	if spec.Options.Has("cpu_type") {
		set("cpu", cpuOf(config.get("cpu"), spec.Options.String("cpu_type")))
	}
	if spec.Options.Has("on_boot") && config["onboot"].isTrue() != spec.Options.Bool("on_boot") {
		out.Set("onboot", flag(spec.Options.Bool("on_boot")))
	}
	for name, value := range cards(config, spec) {
		out.Set(name, value)
	}
	if drive, _ := config.cloudInit(); drive != "" {
		for name, value := range cloudInitOptions(spec) {
			if !sameProperties(config.get(name), value, "") {
				out.Set(name, value)
			}
		}
		if len(files) > 0 {
			set("cicustom", c.custom(config.get("cicustom"), files))
		}
	}
	return out
}

// sizeOptions are those that a VM lacks to have the CPUs and the memory of an offer.
func sizeOptions(config vmConfig, offer string) map[string]string {
	out := map[string]string{}
	s, ok := parseOffer(offer)
	if !ok {
		return out
	}
	if config.cpus() != s.cpus {
		out["cores"] = strconv.FormatInt(s.cpus, 10)
		if config["sockets"].number() > 1 {
			out["sockets"] = "1"
		}
	}
	if vcpus := config["vcpus"].number(); vcpus > 0 && vcpus != s.cpus {
		out["vcpus"] = strconv.FormatInt(s.cpus, 10) // else the guest has these of them
	}
	if config.memoryMiB() != s.memoryGiB<<10 {
		out["memory"] = strconv.FormatInt(s.memoryGiB<<10, 10)
	}
	if config["balloon"].number() > s.memoryGiB<<10 {
		out["balloon"] = strconv.FormatInt(s.memoryGiB<<10, 10) // more than the memory is refused
	}
	return out
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// cloudInitOptions are those that tell the guest of its network and keys. With user
// data the keys are in that: it replaces what Proxmox VE would write.
func cloudInitOptions(spec backends.MachineSpec) map[string]string {
	out := map[string]string{}
	configs := spec.Options.List("ip_config")
	for i, e := range configs {
		if config, ok := e.(backends.Values); ok {
			if text := ipConfig(config); text != "" {
				out["ipconfig"+strconv.Itoa(i)] = text
			}
		}
	}
	if len(configs) == 0 {
		out["ipconfig0"] = "ip=dhcp"
	}
	if dns := spec.Options.Object("dns"); dns != nil {
		if servers := dns.Strings("servers"); len(servers) > 0 {
			out["nameserver"] = strings.Join(servers, " ")
		}
		if dns.Has("domain") {
			out["searchdomain"] = dns.String("domain")
		}
	}
	if len(spec.SSHKeys) > 0 && !hasUserData(spec) {
		out["sshkeys"] = encodeKeys(spec.SSHKeys)
	}
	return out
}

// encodeKeys writes keys as the option sshkeys has them: percent-encoded as a whole,
// a blank as %20, which the form then encodes once more.
func encodeKeys(keys []string) string {
	lines := make([]string, len(keys))
	for i, k := range keys {
		lines[i] = strings.TrimSpace(k)
	}
	return strings.ReplaceAll(url.QueryEscape(strings.Join(lines, "\n")), "+", "%20")
}

// ipFields are the fields of ip_config and the parts of the option ipconfig0, ….
var ipFields = []struct{ property, field string }{{"ip", "ipv4"}, {"gw", "gateway"}, {"ip6", "ipv6"}, {"gw6", "gateway6"}}

func ipConfig(config backends.Values) string {
	var l propertyList
	for _, pair := range ipFields {
		if v := config.String(pair.field); v != "" {
			l = append(l, property{pair.property, v})
		}
	}
	return l.String()
}

// cpuOf is the option cpu with another type: its flags and the like stay.
func cpuOf(has, wanted string) string {
	parts := properties(has, "cputype")
	if parts.get("cputype") == wanted {
		return has
	}
	rest := parts.set("cputype", "")
	if len(rest) == 0 {
		return wanted
	}
	return wanted + "," + rest.String()
}

// maxCards is how many network cards a VM may have.
const maxCards = 32

// cards are the network cards that differ from a wish; those behind the wish's are left
// as they are.
func cards(config vmConfig, spec backends.MachineSpec) map[string]string {
	out := map[string]string{}
	for i, device := range devicesOf(spec) {
		name := "net" + strconv.Itoa(i)
		if text := cardOf(config.get(name), device, nil); !sameProperties(text, config.get(name), "model") {
			out[name] = text
		}
	}
	return out
}

// devicesOf are the network cards that a wish says something about. The bridge of
// network_id is the first one's.
func devicesOf(spec backends.MachineSpec) []backends.Values {
	list := spec.Options.List("network_devices")
	if len(list) == 0 && spec.Network != "" {
		list = []any{backends.Values{}}
	}
	out := make([]backends.Values, min(len(list), maxCards))
	for i := range out {
		device, _ := list[i].(backends.Values)
		out[i] = device.Clone()
		if i == 0 && spec.Network != "" && !device.Has("bridge") {
			if out[i] == nil {
				out[i] = backends.Values{}
			}
			out[i]["bridge"] = spec.Network
		}
	}
	return out
}

// cardParts are the parts of a card that a wish may take away again.
var cardParts = []struct{ field, property string }{{"vlan_id", "tag"}, {"firewall", "firewall"}, {"mtu", "mtu"}}

// cardOf is a card, has, as it is wanted. It keeps its MAC address unless the wish names
// one, and what the wish says nothing about, but for what an earlier wish had set.
func cardOf(has string, device, earlier backends.Values) string {
	model, mac, rest := card(has)
	model = cmp.Or(device.String("model"), model, "virtio")
	mac = cmp.Or(device.String("mac_address"), mac)
	rest = rest.set("bridge", cmp.Or(device.String("bridge"), rest.get("bridge"), "vmbr0"))
	for _, part := range cardParts {
		switch value := device[part.field].(type) {
		case int64:
			rest = rest.set(part.property, strconv.FormatInt(value, 10))
		case bool:
			rest = rest.set(part.property, flag(value))
		case nil:
			if earlier.Has(part.field) {
				rest = rest.set(part.property, "")
			}
		}
	}
	return cardText(model, mac, rest)
}

// sameProperties tells whether two options say the same.
func sameProperties(a, b, byDefault string) bool {
	return properties(a, byDefault).same(properties(b, byDefault))
}

// plannedAddresses are the static addresses of a wish, in the order of its cards.
func plannedAddresses(spec backends.MachineSpec) []backends.Address {
	var out []backends.Address
	for _, e := range spec.Options.List("ip_config") {
		config, ok := e.(backends.Values)
		if !ok {
			continue
		}
		for _, name := range []string{"ipv4", "ipv6"} {
			text, _, static := strings.Cut(config.String(name), "/")
			if a, ok := addressOf(text); static && ok && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// grown is the size to which a VM's boot disk must grow for an offer, in bytes; 0
// where it needn't: disks are never shrunk.
func (c *Client) grown(config vmConfig, offer string) (int64, error) {
	s, ok := parseOffer(offer)
	if !ok || s.diskGiB == 0 {
		return 0, nil
	}
	have, there := config.diskSize(c.account.disk)
	if !there {
		return 0, backends.Errorf(backends.InvalidInput, "The VM has no disk %s, so it can't be grown to the offer's size.", c.account.disk).At("image").
			WithRemedy("Set the account's disk to the template's boot disk.")
	}
	if have >= s.diskGiB*gib {
		return 0, nil
	}
	return s.diskGiB * gib, nil
}

// sizeParam is a size as the resize call takes it.
func sizeParam(bytes int64) string {
	if bytes%gib == 0 {
		return fmt.Sprintf("%dG", bytes/gib)
	}
	return strconv.FormatInt(bytes, 10)
}
