// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Shown implements [backends.Editor] by the VM's options. Node and VMID say where a VM
// was made, not what it is: they are as the wish says.
func (c *Client) Shown(ctx context.Context, m backends.Machine, to backends.MachineSpec) (backends.MachineSpec, error) {
	what := "Reading " + called(m)
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return to, err
	}
	hint := c.lastAt(vmid)
	if to.Options.Has("pool_id") {
		hint = "" // only the cluster's list has the pool
	}
	v, err := c.find(ctx, what, vmid, hint)
	if err != nil {
		return to, err
	}
	if v.row.Type != "qemu" {
		return to, noMachine(what, vmid, "container")
	}
	out := to
	out.Name = v.config.get("name")
	if to.Labels != nil {
		out.Labels = shownLabels(v.config.tags(), to.Labels)
	}
	out.Options = shownOptions(v, to)
	if to.Network != "" {
		_, _, rest := card(v.config.get("net0"))
		out.Network = rest.get("bridge")
	}
	return out, nil
}

// shownLabels are those of a wish that a VM has, with the values that it has.
func shownLabels(tags []string, to map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range to {
		if slices.Contains(tags, labelTag(key, value)) {
			out[key] = value
			continue
		}
		for _, tag := range tags {
			if rest, other := strings.CutPrefix(tag, key+"."); other {
				out[key] = rest
			} else if tag == key {
				out[key] = ""
			}
		}
	}
	return out
}

// shownOptions are the options of a wish as a VM has them.
func shownOptions(v *vm, to backends.MachineSpec) backends.Values {
	out := to.Options.Clone()
	config := v.config
	show := func(name string, value any, there bool) {
		switch {
		case !to.Options.Has(name):
		case there:
			out[name] = value
		default:
			delete(out, name)
		}
	}
	show("pool_id", v.row.Pool, v.row.Pool != "")
	show("on_boot", config["onboot"].isTrue(), true)
	cpu := properties(config.get("cpu"), "cputype").get("cputype")
	show("cpu_type", cpu, cpu != "")
	has := config.tags()
	show("tags", listOf(slices.DeleteFunc(to.Options.Strings("tags"), func(tag string) bool { return !slices.Contains(has, tag) })), true)
	show("ip_config", shownIPs(config, to), true)
	show("dns", shownDNS(config, to.Options.Object("dns")), true)
	show("network_devices", shownCards(config, to), true)
	return out
}

func listOf(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// shownIPs are the addresses of the cards that a wish names.
func shownIPs(config vmConfig, to backends.MachineSpec) []any {
	out := []any{}
	for i, e := range to.Options.List("ip_config") {
		wanted, _ := e.(backends.Values)
		has := config.get("ipconfig" + strconv.Itoa(i))
		if sameProperties(has, ipConfig(wanted), "") {
			out = append(out, wanted.Clone())
			continue
		}
		shown := backends.Values{}
		for _, pair := range ipFields {
			if value := properties(has, "").get(pair.property); value != "" {
				shown[pair.field] = value
			}
		}
		out = append(out, shown)
	}
	return out
}

// shownDNS are the servers and the domain that a wish names.
func shownDNS(config vmConfig, to backends.Values) backends.Values {
	out := backends.Values{}
	if to.Has("servers") {
		out["servers"] = listOf(splitList(config.get("nameserver")))
	}
	if domain := config.get("searchdomain"); to.Has("domain") && domain != "" {
		out["domain"] = domain
	}
	return out
}

// shownCards are the network cards that a wish names. What a wish leaves out of a card
// isn't shown of it.
func shownCards(config vmConfig, to backends.MachineSpec) []any {
	out := []any{}
	devices := devicesOf(to)
	for i, e := range to.Options.List("network_devices") {
		wanted, _ := e.(backends.Values)
		has := config.get("net" + strconv.Itoa(i))
		if i >= len(devices) || sameProperties(cardOf(has, devices[i], nil), has, "model") {
			out = append(out, wanted.Clone())
			continue
		}
		out = append(out, shownCard(has, wanted))
	}
	return out
}

func shownCard(has string, wanted backends.Values) backends.Values {
	model, mac, rest := card(has)
	out := backends.Values{}
	show := func(name, value string) {
		if wanted.Has(name) && value != "" {
			out[name] = value
		}
	}
	show("model", model)
	show("bridge", rest.get("bridge"))
	if want := wanted.String("mac_address"); strings.EqualFold(want, mac) {
		mac = want
	}
	show("mac_address", mac)
	for _, part := range cardParts {
		value := rest.get(part.property)
		switch wanted[part.field].(type) {
		case int64:
			if value != "" {
				out[part.field] = scalar(value).number()
			}
		case bool:
			out[part.field] = scalar(value).isTrue()
		}
	}
	return out
}
