// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// fastOptions are those that need no plugging: the hypervisor doesn't know them, or
// takes them by the limits of its process.
var fastOptions = words("cpulimit cpuunits description hookscript hotplug lock name onboot protection shares startup tags vmstatestorage")

// features are what may be plugged into a running VM; without the option three kinds.
func (g *guest) features() []string {
	features := g.option("hotplug")
	if features == "" || features == "1" {
		features = "network,disk,usb"
	}
	return splitList(features)
}

// plugged is what became of the change of an option of a running VM.
type plugged struct {
	// later: it is pending until the next start.
	later bool
	// problem is why it is, where it could have been plugged and wasn't; the call then
	// fails, and the change stays pending all the same.
	problem string
}

// plug changes an option of a running VM, if it can be changed at once. value is the
// new one, as it will stand in the file; remove takes the option away.
func (c *call) plug(g *guest, name, value string, remove bool) plugged {
	has := func(feature string) bool { return slices.Contains(g.features(), feature) }
	switch {
	case slices.Contains(fastOptions, name), unusedName.MatchString(name), isCloudInitOption(name):
		return plugged{}
	case netName.MatchString(name):
		return c.plugCard(g, name, value, remove)
	case strings.HasPrefix(name, "scsi") || strings.HasPrefix(name, "virtio"):
		return plugged{later: !driveName.MatchString(name) || !has("disk")}
	case strings.HasPrefix(name, "usb"):
		return plugged{later: !has("usb")}
	case name == "vcpus":
		return plugged{later: !has("cpu")}
	case name == "memory":
		// Growing plugs modules in, for which the guest must have nodes of memory.
		grows := atoi(value) > g.number("memory", 512)
		return plugged{later: remove || !grows || !has("memory") || g.option("numa") != "1"}
	case name == "balloon":
		// With the device there only its target changes.
		return plugged{later: remove || value == "0" || g.option("balloon") == "0"}
	}
	return plugged{later: true}
}

// switched are the parts of a network card that its node changes without the guest:
// where the cable ends.
var switched = words("bridge firewall link_down rate tag trunks")

// plugCard changes a network card of a running VM. What only the node knows of is
// always changed at once; for the rest the card is pulled and another one plugged in.
func (c *call) plugCard(g *guest, name, value string, remove bool) plugged {
	old, there := g.Config[name]
	sameCard := there && !remove && cardItself(old) == cardItself(value)
	if !sameCard && !slices.Contains(g.features(), "network") {
		return plugged{later: true}
	}
	if _, fails := c.fault(emulator.KindFailAction); fails {
		return unplugged("error on hot-unplugging device '" + name + "' - still busy in guest?")
	}
	bridge := lookup(value, "model", "bridge")
	if !remove && bridge != "" && !slices.Contains(c.s.options.Bridges, bridge) {
		return unplugged("bridge '" + bridge + "' does not exist")
	}
	return plugged{}
}

func unplugged(why string) plugged { return plugged{true, "hotplug problem - " + why + "\n"} }

// cardItself is a network card without the parts that its node switches.
func cardItself(text string) string {
	parts := slices.DeleteFunc(splitProperties(text, "model"), func(p property) bool { return slices.Contains(switched, p.name) })
	slices.SortFunc(parts, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return strings.ToLower(joinProperties(parts, ""))
}
