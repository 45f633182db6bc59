// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// vmConfig are a VM's options, by their names. What no longer is or not yet is in
// force counts too: pending changes are shown as if they were applied.
type vmConfig map[string]scalar

func (c vmConfig) get(name string) string { return string(c[name]) }

// isTemplate tells whether it is a template's.
func (c vmConfig) isTemplate() bool { return c["template"].isTrue() }

// temporary is the description of a clone before its first disk is copied: whose it
// will be is not in its file yet.
const temporary = "qmclone temporary file"

// isAnonymous tells whether the VM is being made, and doesn't say yet for whom, or
// is being destroyed and doesn't say any more.
func (c vmConfig) isAnonymous() bool {
	switch c.get("lock") {
	case "clone", "create", "destroyed":
		description := strings.TrimSpace(c.get("description"))
		return c.get("name") == "" && (description == "" || description == temporary)
	default:
		return false
	}
}

// tags are its tags.
func (c vmConfig) tags() []string { return splitTags(c.get("tags")) }

// note is what we wrote on the VM: the tags decide once they are there and complete,
// and before that its description. ok is false where it isn't ours.
func (c vmConfig) note(vmid int) (n note, ok bool) {
	tagged, inTags := readTags(vmid, c.tags())
	if inTags && tagged.marks.Complete {
		return tagged, true
	}
	described, inDescription := readDescription(vmid, c.get("description"))
	switch {
	case inDescription:
		described.protected = c["protection"].isTrue()
		return described, true
	default:
		// Of a half-made VM the description decides: its tags alone are too little.
		return note{}, false
	}
}

// isProtected tells whether the VM is protected by us: with the flag that its template
// had, the tag is missing.
func (c vmConfig) isProtected(vmid int) bool {
	n, _ := readTags(vmid, c.tags())
	return n.protected && c["protection"].isTrue()
}

// cpus are the virtual CPUs.
func (c vmConfig) cpus() int64 {
	return max(1, c["sockets"].number()) * max(1, c["cores"].number())
}

// memoryMiB is the memory in MiB: a number, or since version 8 a property list.
func (c vmConfig) memoryMiB() int64 {
	return scalar(properties(c.get("memory"), "current").get("current")).number()
}

// hasAgent tells whether the options say that there is a guest agent.
func (c vmConfig) hasAgent() bool {
	return scalar(properties(c.get("agent"), "enabled").get("enabled")).isTrue()
}

var cloudInitForm = regexp.MustCompile(`^(?:[^:,]+:(?:[^,]*/)?(?:vm-\d+-cloudinit)(?:\.[a-z0-9]+)?|[^:,]+:cloudinit)(?:,|$)`)

// cloudInit is the drive that carries cloud-init's data, and its storage; "" without
// one: then all of its options are without effect.
func (c vmConfig) cloudInit() (drive, storage string) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if diskForm.MatchString(name) && cloudInitForm.MatchString(strings.TrimPrefix(c.get(name), "file=")) {
			storage, _, _ := strings.Cut(strings.TrimPrefix(c.get(name), "file="), ":")
			return name, storage
		}
	}
	return "", ""
}

// diskSize is a disk's size in bytes; ok is false where there is no such disk, 0
// where it doesn't say.
func (c vmConfig) diskSize(disk string) (bytes int64, ok bool) {
	text := c.get(disk)
	if text == "" {
		return 0, false
	}
	return parseSize(properties(text, "file").get("size")), true
}

var sizeForm = regexp.MustCompile(`^(\d{1,15})(?:\.\d+)?([KMGT]?)$`)

// parseSize reads a size as Proxmox VE writes it, in bytes or with a unit; 0 where it
// is none.
func parseSize(s string) int64 {
	found := sizeForm.FindStringSubmatch(s)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2]]
	if err != nil || n > (1<<62)>>shift {
		return 0
	}
	return n << shift
}

// property is a part of an option: name=value.
type property struct{ name, value string }

type propertyList []property

// properties splits an option; a part without a name has the default one.
func properties(text, byDefault string) propertyList {
	var out propertyList
	for part := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case named:
			out = append(out, property{name, value})
		case name != "":
			out = append(out, property{byDefault, name})
		}
	}
	return out
}

func (l propertyList) get(name string) string {
	for _, p := range l {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// set is the list with another value of a property, "" for none.
func (l propertyList) set(name, value string) propertyList {
	out := slices.DeleteFunc(slices.Clone(l), func(p property) bool { return p.name == name })
	if value != "" {
		out = append(out, property{name, value})
	}
	return out
}

func (l propertyList) String() string {
	parts := make([]string, len(l))
	for i, p := range l {
		parts[i] = p.name + "=" + p.value
	}
	return strings.Join(parts, ",")
}

// same tells whether two lists hold the same, in whatever order and case of hex
// digits.
func (l propertyList) same(other propertyList) bool {
	canonical := func(l propertyList) []string {
		var out []string
		for _, p := range l {
			out = append(out, strings.ToLower(p.name+"="+p.value))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(canonical(l), canonical(other))
}

// cardModels are the network cards that QEMU emulates, as names of properties: the
// MAC address is the value.
var cardModels = []string{
	"virtio", "e1000", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "e1000e", "i82551", "i82557b", "i82559er",
	"ne2k_isa", "ne2k_pci", "pcnet", "rtl8139", "vmxnet3",
}

// card is a network card: its model, its MAC address and the rest of its option.
func card(text string) (model, mac string, rest propertyList) {
	for _, p := range properties(text, "model") {
		switch {
		case p.name == "model":
			model = p.value
		case p.name == "macaddr":
			mac = p.value
		case slices.Contains(cardModels, p.name):
			model, mac = p.name, p.value
		default:
			rest = append(rest, p)
		}
	}
	return model, mac, rest
}

func cardText(model, mac string, rest propertyList) string {
	first := property{"model", model}
	if mac != "" {
		first = property{model, mac}
	}
	return append(propertyList{first}, rest...).String()
}
