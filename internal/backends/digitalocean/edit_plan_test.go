// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestPlanEdit(t *testing.T) {
	c := scripted(t, always(answer{}))
	takes := map[backends.Takes]string{backends.InPlace: "in place", backends.Restart: "restart", backends.NextCreation: "next", backends.Replace: "replace"}
	type change = func(from, to *backends.MachineSpec)
	option := func(name string, was, is any) change {
		return func(from, to *backends.MachineSpec) {
			from.Options, to.Options = backends.Values{}, backends.Values{}
			if was != nil {
				from.Options[name] = was
			}
			if is != nil {
				to.Options[name] = is
			}
		}
	}
	for name, tt := range map[string]struct {
		change change
		want   string
		says   string // a part of the note; "": there is none
	}{
		"nothing":              {func(_, _ *backends.MachineSpec) {}, "", ""},
		"name":                 {func(_, to *backends.MachineSpec) { to.Name = "x" }, "name in place", ""},
		"labels":               {func(_, to *backends.MachineSpec) { to.Labels = map[string]string{"a": "b"} }, "labels in place", ""},
		"labels left out":      {func(from, _ *backends.MachineSpec) { from.Labels = map[string]string{"a": "b"} }, "", ""},
		"network":              {func(from, to *backends.MachineSpec) { from.Network, to.Network = "a", "b" }, "network_id replace", "VPC"},
		"tags":                 {option("tags", []any{"a"}, []any{"b"}), "digitalocean.tags in place", ""},
		"the same tags":        {option("tags", []any{"a", "b"}, []any{"b", "a"}), "", ""},
		"tags left out":        {option("tags", []any{"a"}, nil), "", ""},
		"backups":              {option("backups", nil, true), "digitalocean.backups in place", ""},
		"no backups":           {option("backups", true, false), "digitalocean.backups in place", ""},
		"backup policy":        {option("backup_policy", nil, backends.Values{"plan": "daily"}), "digitalocean.backup_policy in place", ""},
		"ipv6":                 {option("ipv6", nil, true), "digitalocean.ipv6 in place, addresses", "by hand"},
		"ipv6 not known":       {option("ipv6", true, backends.Unknown), "digitalocean.ipv6 in place, addresses", "by hand"},
		"ipv6 off":             {option("ipv6", true, false), "digitalocean.ipv6 next", "keeps its address"},
		"ipv6 said to be off":  {option("ipv6", nil, false), "digitalocean.ipv6 in place", ""},
		"ipv6 not spoken of":   {option("ipv6", true, nil), "", ""},
		"monitoring":           {option("monitoring", false, true), "digitalocean.monitoring next", "only in new Droplets"},
		"agent":                {option("droplet_agent", nil, false), "digitalocean.droplet_agent next", "only in new Droplets"},
		"keys":                 {option("ssh_key_ids", nil, []any{"1"}), "digitalocean.ssh_key_ids next", "only on new Droplets"},
		"an offer is not its":  {func(_, to *backends.MachineSpec) { to.Offer, to.Image, to.Region = "x", "y", "z" }, "", ""},
		"several in one order": {func(_, to *backends.MachineSpec) { to.Name, to.Options = "x", backends.Values{"backups": true} }, "name in place; digitalocean.backups in place", ""},
	} {
		from, to := testSpec(), testSpec()
		tt.change(&from, &to)
		var got, notes []string
		for _, e := range c.PlanEdit(from, to) {
			text := fmt.Sprintf("%s %s", e.Path, takes[e.Takes])
			if e.Addresses {
				text += ", addresses"
			}
			got, notes = append(got, text), append(notes, e.Note)
		}
		note := strings.Join(notes, "")
		if strings.Join(got, "; ") != tt.want || (note != "") != (tt.says != "") || !strings.Contains(note, tt.says) {
			t.Errorf("%s: %v %q", name, got, notes)
		}
	}
}

// What is shown of a Droplet that is as wanted is the wish itself, so that taking it over
// changes nothing; and what isn't there shows as missing.
func TestShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		to := editTo()
		to.Options["ssh_key_ids"], to.Options["droplet_agent"], to.Options["monitoring"] = []any{"1"}, true, false
		to.Network = m.Network
		effects := func(to backends.MachineSpec) string {
			t.Helper()
			wish := fmt.Sprint(to)
			shown, err := c.Shown(t.Context(), m, to)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(to) != wish {
				t.Error("the wish was changed")
			}
			var out []string
			for _, e := range c.PlanEdit(shown, to) {
				out = append(out, e.Path.String())
			}
			return strings.Join(out, " ")
		}
		if got := effects(to); got != "name labels digitalocean.tags digitalocean.backups digitalocean.backup_policy digitalocean.ipv6" {
			t.Errorf("before: %s", got)
		}
		if _, err := c.Edit(t.Context(), m, editFrom(), to, noOff(t)); err != nil {
			t.Fatal(err)
		}
		if got := effects(to); got != "" {
			t.Errorf("after: %s", got)
		}
		loose := to
		loose.Labels, loose.Options = map[string]string{}, backends.Values{"backups": true, "backup_policy": backends.Values{"plan": "weekly"}, "tags": []any{}}
		if got := effects(loose); got != "" {
			t.Errorf("less: %s", got)
		}
		for name, wish := range map[string]backends.Values{
			"digitalocean.backup_policy": {"backups": true, "backup_policy": backends.Values{"plan": "weekly", "hour": int64(12)}},
			"digitalocean.backups":       {"backups": false},
			"digitalocean.ipv6":          {"ipv6": false},
			"digitalocean.monitoring":    {"monitoring": true},
			"digitalocean.droplet_agent": {"droplet_agent": false},
			"digitalocean.tags":          {"tags": []any{"new", "newer"}},
		} {
			other := to
			other.Options = wish
			if got := effects(other); got != name {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}
