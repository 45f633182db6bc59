// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// change are options that a VM gets in one call.
type change struct {
	set url.Values
	// drop are those that it loses.
	drop []string
	// off: a part of it is for a VM that is off, since a running one would keep it for its
	// next start, or its guest would not see it before that.
	off bool
	// network: what cloud-init tells the guest of its network is another.
	network bool
}

func (ch *change) put(name, value string) { ch.set.Set(name, value) }

// lose takes away options that the VM has.
func (ch *change) lose(config vmConfig, names ...string) (any bool) {
	for _, name := range names {
		if config.get(name) != "" {
			ch.drop = append(ch.drop, name)
			any = true
		}
	}
	return any
}

// values are the parameters of the call; none where nothing changes.
func (ch *change) values() url.Values {
	out := maps.Clone(ch.set)
	if len(ch.drop) > 0 {
		slices.Sort(ch.drop)
		out.Set("delete", strings.Join(slices.Compact(ch.drop), ","))
	}
	return out
}

// edited is what a VM lacks to be what an edit's wish says. n is what is to be written
// on it. What the wish leaves out stays, and of what the earlier wish named and this one
// doesn't, only what it says something about goes.
func edited(config vmConfig, vmid int, from, to backends.MachineSpec, n note) *change {
	ch := &change{set: url.Values{}}
	if to.Name != "" && to.Name != config.get("name") {
		ch.put("name", to.Name)
	}
	if text := describe(n, vmid, config.get("description")); text != config.get("description") {
		ch.put("description", text)
	}
	if tags := joinTags(editedTags(config.tags(), from, to), n.tags(vmid)); tags != joinTags(config.tags()) {
		ch.put("tags", tags)
	}
	if to.Options.Has("on_boot") && config["onboot"].isTrue() != to.Options.Bool("on_boot") {
		ch.put("onboot", flag(to.Options.Bool("on_boot")))
	}
	if to.Options.Has("cpu_type") {
		if text := cpuOf(config.get("cpu"), to.Options.String("cpu_type")); text != config.get("cpu") {
			ch.put("cpu", text)
			ch.off = true
		}
	}
	ch.cards(config, from, to)
	ch.cloudInit(config, from, to)
	return ch
}

// editedTags are the tags of a VM, ours aside, after an edit. A label is a tag that
// begins with its key, so that one whose value was changed by hand, or by an edit that
// was cut off, is found too.
func editedTags(has []string, from, to backends.MachineSpec) []string {
	want := specTags(to)
	stay := slices.Clone(want)
	if to.Labels == nil {
		stay = append(stay, tagsOf(from.Labels)...)
	}
	if !to.Options.Has("tags") {
		stay = append(stay, from.Options.Strings("tags")...)
	}
	goes := func(tag string) bool {
		return to.Options.Has("tags") && slices.Contains(from.Options.Strings("tags"), tag)
	}
	if to.Labels != nil {
		goes = either(goes, staleLabels(has, from.Labels, to.Labels))
	}
	out := slices.DeleteFunc(foreignTags(has), func(tag string) bool { return goes(tag) && !slices.Contains(stay, tag) })
	return splitTags(joinTags(out, want))
}

func either(a, b func(string) bool) func(string) bool {
	return func(s string) bool { return a(s) || b(s) }
}

// staleLabels tells which tags are labels that an edit takes away. The tag of a key whose
// tag is as it was last written, or as it is wanted, is known by all of its text; of any
// other key all tags are.
func staleLabels(has []string, from, to map[string]string) func(tag string) bool {
	var exact, keys []string
	note := func(key, value string) {
		if tag := labelTag(key, value); slices.Contains(has, tag) {
			exact = append(exact, tag)
		} else {
			keys = append(keys, key)
		}
	}
	for key, value := range from {
		if wanted, stays := to[key]; !stays || !slices.Contains(has, labelTag(key, wanted)) {
			note(key, value)
		} else {
			exact = append(exact, labelTag(key, value))
		}
	}
	for key, value := range to {
		if _, had := from[key]; !had && !slices.Contains(has, labelTag(key, value)) {
			keys = append(keys, key)
		}
	}
	return func(tag string) bool {
		return slices.Contains(exact, tag) || slices.ContainsFunc(keys, func(key string) bool {
			return tag == key || strings.HasPrefix(tag, key+".")
		})
	}
}

// cards changes the network cards that a wish says something about. Where only the
// cable is to end elsewhere the guest runs on.
func (ch *change) cards(config vmConfig, from, to backends.MachineSpec) {
	earlier := from.Options.List("network_devices")
	devices := devicesOf(to)
	for i, device := range devices {
		name := "net" + strconv.Itoa(i)
		var before backends.Values
		if i < len(earlier) {
			before, _ = earlier[i].(backends.Values)
		}
		has := config.get(name)
		text := cardOf(has, device, before)
		if sameProperties(has, text, "model") {
			continue
		}
		ch.put(name, text)
		ch.off = ch.off || !sameCard(has, text)
	}
	if !to.Options.Has("network_devices") {
		return
	}
	for i := len(devices); i < min(len(earlier), maxCards); i++ {
		if ch.lose(config, "net"+strconv.Itoa(i)) {
			ch.off = true
		}
	}
}

// sameCard tells whether two options are the same card, whose cable ends elsewhere.
func sameCard(a, b string) bool {
	itself := func(text string) propertyList {
		l := properties(text, "model")
		for _, part := range []string{"bridge", "tag", "firewall", "trunks", "rate", "link_down"} {
			l = l.set(part, "")
		}
		return l
	}
	return a != "" && itself(a).same(itself(b))
}

// cloudInit changes what cloud-init tells the guest of its network.
func (ch *change) cloudInit(config vmConfig, from, to backends.MachineSpec) {
	set := func(name, value string) {
		if !sameProperties(config.get(name), value, "") {
			ch.put(name, value)
			ch.network = true
		}
	}
	lose := func(name string) { ch.network = ch.lose(config, name) || ch.network }
	if to.Options.Has("ip_config") {
		wanted := ipConfigs(to)
		for i := range max(len(wanted), len(ipConfigs(from))) {
			name := "ipconfig" + strconv.Itoa(i)
			if i < len(wanted) && wanted[i] != "" {
				set(name, wanted[i])
				continue
			}
			lose(name)
		}
	}
	if dns, earlier := to.Options.Object("dns"), from.Options.Object("dns"); dns != nil {
		switch servers := strings.Join(dns.Strings("servers"), " "); {
		case servers != "" && !slices.Equal(splitList(config.get("nameserver")), dns.Strings("servers")):
			ch.put("nameserver", servers)
			ch.network = true
		case servers == "" && (dns.Has("servers") || earlier.Has("servers")):
			lose("nameserver")
		}
		switch {
		case dns.Has("domain"):
			set("searchdomain", dns.String("domain"))
		case earlier.Has("domain"):
			lose("searchdomain")
		}
	}
	ch.off = ch.off || ch.network
}

// ipConfigs are the options ipconfig0, … of a wish, "" for a card of which it says
// nothing. Without any the first card asks by DHCP, as it does when a VM is made.
func ipConfigs(spec backends.MachineSpec) []string {
	list := spec.Options.List("ip_config")
	out := make([]string, len(list))
	for i, e := range list {
		if config, ok := e.(backends.Values); ok {
			out[i] = ipConfig(config)
		}
	}
	if len(out) == 0 {
		return []string{"ip=dhcp"}
	}
	return out
}

// splitList splits a list as Proxmox VE writes some: at blanks, commas or semicolons.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\n\x00", r) })
}
