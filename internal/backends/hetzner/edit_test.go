// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// change is an edit of a site's server: from one wish to another.
type change struct {
	from, to func(*site, *backends.MachineSpec)
	// effects are what a plan says, as path and takes.
	effects string
	// writes are the calls that change something, in order.
	writes string
	offs   int
}

func options(values func(*site) backends.Values) func(*site, *backends.MachineSpec) {
	return func(s *site, spec *backends.MachineSpec) { spec.Options = values(s) }
}

func nothing(*site, *backends.MachineSpec) {}

func joined(id string, more ...any) backends.Values {
	out := backends.Values{"network_id": id}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

// changes are edits of each kind, and of some kinds together.
func changes() map[string]change {
	nets := func(of func(*site) []any) func(*site, *backends.MachineSpec) {
		return options(func(s *site) backends.Values { return backends.Values{"networks": of(s)} })
	}
	return map[string]change{
		"nothing": {from: nothing, to: nothing},
		"name": {
			from: nothing, to: func(_ *site, spec *backends.MachineSpec) { spec.Name, spec.Marks.Key = "api-0", "inst_new" },
			effects: "name 0", writes: "PUT server",
		},
		"labels": {
			from: func(_ *site, spec *backends.MachineSpec) {
				spec.Labels = map[string]string{"role": "web", "env": "test"}
			},
			to:      func(_ *site, spec *backends.MachineSpec) { spec.Labels = map[string]string{"role": "db", "tier": "1"} },
			effects: "labels 0", writes: "PUT server",
		},
		"no labels any more": {
			from:    func(_ *site, spec *backends.MachineSpec) { spec.Labels = map[string]string{"role": "web"} },
			to:      func(_ *site, spec *backends.MachineSpec) { spec.Labels = map[string]string{} },
			effects: "labels 0", writes: "PUT server",
		},
		"labels left out": {
			from: func(_ *site, spec *backends.MachineSpec) { spec.Labels = map[string]string{"role": "web"} },
			to:   nothing,
		},
		"firewalls": {
			from: options(func(s *site) backends.Values {
				return backends.Values{"firewall_ids": []any{s.firewalls[0], s.firewalls[1]}}
			}),
			to: options(func(s *site) backends.Values {
				return backends.Values{"firewall_ids": []any{s.firewalls[2], s.firewalls[1]}}
			}),
			effects: "hetzner_cloud.firewall_ids 0", writes: "apply_to_resources remove_from_resources",
		},
		"five firewalls for another four": {
			from: options(func(s *site) backends.Values {
				return backends.Values{"firewall_ids": []any{s.firewalls[0], s.firewalls[1], s.firewalls[2], s.firewalls[3]}}
			}),
			to: options(func(s *site) backends.Values {
				return backends.Values{"firewall_ids": []any{s.firewalls[4], s.firewalls[3]}}
			}),
			effects: "hetzner_cloud.firewall_ids 0",
			writes:  "remove_from_resources remove_from_resources remove_from_resources apply_to_resources",
		},
		"no firewalls": {
			from:    options(func(s *site) backends.Values { return backends.Values{"firewall_ids": []any{s.firewalls[0]}} }),
			to:      options(func(*site) backends.Values { return backends.Values{"firewall_ids": []any{}} }),
			effects: "hetzner_cloud.firewall_ids 0", writes: "remove_from_resources",
		},
		"network_id": {
			from:    func(s *site, spec *backends.MachineSpec) { spec.Network = s.networks[0] },
			to:      func(s *site, spec *backends.MachineSpec) { spec.Network = s.networks[1] },
			effects: "network_id 0 addresses", writes: "attach_to_network detach_from_network",
		},
		"network_id that overlaps": {
			from:    func(s *site, spec *backends.MachineSpec) { spec.Network = s.networks[0] },
			to:      func(s *site, spec *backends.MachineSpec) { spec.Network = s.networks[2] },
			effects: "network_id 0 addresses", writes: "attach_to_network detach_from_network attach_to_network",
		},
		"networks in the place of network_id": {
			from:    func(s *site, spec *backends.MachineSpec) { spec.Network = s.networks[0] },
			to:      nets(func(s *site) []any { return []any{joined(s.networks[0]), joined(s.networks[1], "ip", "10.1.1.9")} }),
			effects: "hetzner_cloud.networks 0 addresses", writes: "attach_to_network",
		},
		"address in a network": {
			from: nets(func(s *site) []any {
				return []any{joined(s.networks[0], "ip", "10.0.1.5", "alias_ips", []any{"10.0.1.6"})}
			}),
			to: nets(func(s *site) []any {
				return []any{joined(s.networks[0], "ip", "10.0.1.7", "alias_ips", []any{"10.0.1.6"})}
			}),
			effects: "hetzner_cloud.networks 0 addresses", writes: "detach_from_network attach_to_network",
		},
		"aliases": {
			from:    nets(func(s *site) []any { return []any{joined(s.networks[0], "alias_ips", []any{"10.0.1.6", "10.0.1.8"})} }),
			to:      nets(func(s *site) []any { return []any{joined(s.networks[0], "alias_ips", []any{"10.0.1.9", "10.0.1.6"})} }),
			effects: "hetzner_cloud.networks 0", writes: "change_alias_ips",
		},
		"no networks": {
			from:    nets(func(s *site) []any { return []any{joined(s.networks[0]), joined(s.networks[1])} }),
			to:      nets(func(*site) []any { return []any{} }),
			effects: "hetzner_cloud.networks 0 addresses", writes: "detach_from_network detach_from_network",
		},
		"ipv4 off": {
			from: nothing, to: options(func(*site) backends.Values { return backends.Values{"public_ipv4": false} }),
			effects: "hetzner_cloud.public_ipv4 1 addresses", writes: "PUT primary_ip unassign DELETE primary_ip", offs: 1,
		},
		"ipv6 on": {
			from:    options(func(*site) backends.Values { return backends.Values{"public_ipv6": false} }),
			to:      options(func(*site) backends.Values { return backends.Values{"public_ipv6": true} }),
			effects: "hetzner_cloud.public_ipv6 1 addresses", writes: "POST primary_ips", offs: 1,
		},
		"both on": {
			from: options(func(s *site) backends.Values {
				return backends.Values{"public_ipv6": false, "public_ipv4": false, "networks": []any{joined(s.networks[0])}}
			}),
			to: options(func(s *site) backends.Values {
				return backends.Values{"public_ipv6": true, "public_ipv4": true, "firewall_ids": []any{s.firewalls[0]}}
			}),
			effects: "hetzner_cloud.firewall_ids 0, hetzner_cloud.public_ipv4 1 addresses, hetzner_cloud.public_ipv6 1 addresses",
			writes:  "POST primary_ips POST primary_ips apply_to_resources", offs: 1,
		},
		"on as it is": {
			from: nothing, to: options(func(*site) backends.Values { return backends.Values{"public_ipv4": true} }),
			effects: "hetzner_cloud.public_ipv4 0 addresses",
		},
		"a primary IP for the server's own": {
			from: nothing, to: options(func(s *site) backends.Values { return backends.Values{"primary_ipv4_id": s.ipv4s[0]} }),
			effects: "hetzner_cloud.primary_ipv4_id 1 addresses", writes: "PUT primary_ip unassign assign DELETE primary_ip", offs: 1,
		},
		"a primary IP for another, and of IPv6": {
			from: options(func(s *site) backends.Values {
				return backends.Values{"primary_ipv4_id": s.ipv4s[0], "public_ipv6": false}
			}),
			to: options(func(s *site) backends.Values {
				return backends.Values{"primary_ipv4_id": s.ipv4s[1], "primary_ipv6_id": s.ipv6}
			}),
			effects: "hetzner_cloud.primary_ipv4_id 1 addresses, hetzner_cloud.primary_ipv6_id 1 addresses",
			writes:  "unassign assign assign", offs: 1,
		},
		"a primary IP given up": {
			from:    options(func(s *site) backends.Values { return backends.Values{"primary_ipv4_id": s.ipv4s[0]} }),
			to:      options(func(*site) backends.Values { return backends.Values{"public_ipv4": false} }),
			effects: "hetzner_cloud.public_ipv4 1 addresses", writes: "unassign", offs: 1,
		},
		"placement group": {
			from:    options(func(s *site) backends.Values { return backends.Values{"placement_group_id": s.groups[0]} }),
			to:      options(func(s *site) backends.Values { return backends.Values{"placement_group_id": s.groups[1]} }),
			effects: "hetzner_cloud.placement_group_id 1", writes: "remove_from_placement_group add_to_placement_group", offs: 1,
		},
		"first placement group": {
			from: nothing, to: options(func(s *site) backends.Values { return backends.Values{"placement_group_id": s.groups[0]} }),
			effects: "hetzner_cloud.placement_group_id 1", writes: "add_to_placement_group", offs: 1,
		},
		"backups": {
			from: nothing, to: options(func(*site) backends.Values { return backends.Values{"backups": true} }),
			effects: "hetzner_cloud.backups 0", writes: "enable_backup",
		},
		"no backups": {
			from:    options(func(*site) backends.Values { return backends.Values{"backups": true} }),
			to:      options(func(*site) backends.Values { return backends.Values{"backups": false} }),
			effects: "hetzner_cloud.backups 0", writes: "disable_backup",
		},
		"everything left out": {
			from: options(func(s *site) backends.Values {
				return backends.Values{"backups": true, "firewall_ids": []any{s.firewalls[0]}, "placement_group_id": s.groups[0],
					"public_ipv6": false, "primary_ipv4_id": s.ipv4s[0], "networks": []any{joined(s.networks[0])}}
			}),
			to: nothing,
		},
		"keys": {
			from: nothing, to: options(func(*site) backends.Values { return backends.Values{"ssh_key_ids": []any{"laptop"}} }),
			effects: "hetzner_cloud.ssh_key_ids 2",
		},
		"everything": {
			from: options(func(s *site) backends.Values {
				return backends.Values{"backups": true, "firewall_ids": []any{s.firewalls[0]}, "networks": []any{joined(s.networks[0])}}
			}),
			to: func(s *site, spec *backends.MachineSpec) {
				spec.Name, spec.Labels = "api-0", map[string]string{"role": "db"}
				spec.Marks.Key, spec.Marks.Claim, spec.Marks.Complete = "inst_new", "another", true
				spec.Options = backends.Values{"backups": false, "firewall_ids": []any{s.firewalls[1]}, "networks": []any{joined(s.networks[1])},
					"placement_group_id": s.groups[0], "public_ipv6": false, "primary_ipv4_id": s.ipv4s[1]}
			},
			effects: "name 0, labels 0, hetzner_cloud.firewall_ids 0, hetzner_cloud.networks 0 addresses, hetzner_cloud.public_ipv6 1 addresses, " +
				"hetzner_cloud.primary_ipv4_id 1 addresses, hetzner_cloud.placement_group_id 1, hetzner_cloud.backups 0",
			writes: "PUT server attach_to_network detach_from_network PUT primary_ip unassign assign DELETE primary_ip PUT primary_ip unassign " +
				"DELETE primary_ip add_to_placement_group apply_to_resources remove_from_resources disable_backup",
			offs: 1,
		},
	}
}

// start makes a site with the server of a change, and the two wishes.
func (c change) start(t *testing.T, cloud emulated.Options, wrap ...func(http.Handler) http.Handler) (s *site, from, to backends.MachineSpec) {
	t.Helper()
	s = newSite(t, cloud, func(s *site) backends.MachineSpec {
		from = testSpec()
		c.from(s, &from)
		return from
	}, wrap...)
	to = testSpec()
	c.to(s, &to)
	s.cloud.ClearCalls()
	return s, from, to
}

// written names the calls that change something.
func (s *site) written() string {
	var out []string
	for _, call := range s.writes() {
		parts := strings.Split(strings.TrimPrefix(call.Path, "/v1/"), "/")
		word := parts[len(parts)-1]
		switch len(parts) {
		case 1:
			word = call.Method + " " + parts[0]
		case 2:
			word = call.Method + " " + strings.TrimSuffix(parts[0], "s")
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// TestEdits looks at each kind of edit: what a plan says of it, the calls that it takes,
// what is there afterwards, and that a second edit changes nothing. The calls are held
// against the vendor's API description where that is at hand.
func TestEdits(t *testing.T) {
	described := func(h http.Handler) http.Handler { return h }
	if os.Getenv(openapitest.Variable) != "" {
		document := openapitest.Load(t, "hetzner.json")
		described = func(h http.Handler) http.Handler {
			var allowed []openapitest.Deviation
			for _, d := range emulated.Deviations() {
				allowed = append(allowed, openapitest.Deviation(d))
			}
			return openapitest.Wrap(t, document, h, openapitest.Allow(allowed...))
		}
	}
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { c.run(t, described) }) })
	}
}

func (c change) run(t *testing.T, described func(http.Handler) http.Handler) {
	s, from, to := c.start(t, emulated.Options{}, described)
	var effects []string
	for _, e := range s.client.PlanEdit(from, to) {
		text := fmt.Sprintf("%s %d", e.Path, e.Takes)
		if e.Addresses {
			text += " addresses"
		}
		effects = append(effects, text)
	}
	if got := strings.Join(effects, ", "); got != c.effects {
		t.Errorf("effects %s, want %s", got, c.effects)
	}
	if len(s.cloud.Calls()) != 0 {
		t.Error("a plan has made a call")
	}
	if err := s.edit(from, to); err != nil {
		t.Fatal(err)
	}
	if got := s.written(); got != c.writes || s.offs != c.offs {
		t.Errorf("writes %s, want %s; off %d times, want %d", got, c.writes, s.offs, c.offs)
	}
	if s.machine.Name != to.Name || s.machine.Marks != to.Marks || s.machine.Labels["csi/other"] != "kept" {
		t.Errorf("returned %+v", s.machine)
	}
	s.holds(from, to)
	for _, from := range []backends.MachineSpec{to, from} {
		s.cloud.ClearCalls()
		if err := s.edit(from, to); err != nil {
			t.Fatal(err)
		}
		if reads := len(s.requests()); s.written() != "" || s.offs != c.offs || reads > 3 {
			t.Errorf("a second edit: %d calls, %s", reads, s.written())
		}
	}
	got, err := s.client.GetMachine(t.Context(), s.machine.ID)
	if err != nil || got.State != s.machine.State || got.Name != s.machine.Name {
		t.Errorf("returned %+v, is %+v, %v", s.machine, got, err)
	}
}

// lostAnswer is an interruption that a run mends by itself.
const lostAnswer = "lost answer"

// interruptions are the ways in which a call goes wrong: once; again and again, until the
// run gives up; or the process is killed, before the call or after it. Without TORTURE in
// the environment it is one for each call.
func interruptions(nth int) map[string][]emulator.Rule {
	const gone = 8
	all := map[string][]emulator.Rule{
		"killed after":  {{Kind: emulator.KindLoseAnswer}, {Kind: emulator.KindReset, Nth: nth + 1, Times: emulator.Forever}},
		lostAnswer:      {{Kind: emulator.KindLoseAnswer}},
		"failed action": {{Kind: emulator.KindFailAction}},
		"refused":       {{Kind: emulator.KindStatus, Status: http.StatusUnprocessableEntity, Times: gone}},
		"lost answers":  {{Kind: emulator.KindLoseAnswer, Times: gone}},
		"killed before": {{Kind: emulator.KindReset, Times: emulator.Forever}},
		"bad gateway":   {{Kind: emulator.KindStatus, Status: http.StatusBadGateway}},
		"locked":        {{Kind: emulator.KindLocked}},
	}
	out := all
	if os.Getenv("TORTURE") == "" {
		how := []string{"killed after", lostAnswer, "failed action", "refused"}[nth%4]
		out = map[string][]emulator.Rule{how: all[how]}
	}
	for _, rules := range out {
		for i := range rules {
			rules[i].Service, rules[i].Path, rules[i].Nth = "hetzner", "*", max(nth, rules[i].Nth)
		}
	}
	return out
}

// TestInterruptedEdits lets each call of each edit go wrong (with TORTURE in the
// environment in more ways). The next run ends it.
func TestInterruptedEdits(t *testing.T) {
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) {
			for nth, more := 1, true; more && !t.Failed(); nth++ {
				for how, rules := range interruptions(nth) {
					synctest.Test(t, func(t *testing.T) { more = c.interrupt(t, nth, how, rules) })
				}
			}
		})
	}
}

// interrupt edits under faults, and then without. more: there were as many calls as the
// faults wait for.
func (c change) interrupt(t *testing.T, nth int, how string, rules []emulator.Rule) (more bool) {
	s, from, to := c.start(t, emulated.Options{Boot: 4 * time.Second})
	for _, rule := range rules {
		if err := s.cloud.AddFault(rule); err != nil {
			t.Fatal(err)
		}
	}
	first := s.edit(from, to)
	calls := s.cloud.Calls()
	s.cloud.ClearFaults()
	if backends.HasCode(first, backends.NotFound) {
		t.Errorf("%v, of a server that is there", first)
	}
	if how == lostAnswer && first != nil {
		t.Errorf("the first run: %v", first)
	}
	if err := s.edit(from, to); err != nil {
		t.Errorf("the second run: %v", err)
	}
	s.holds(from, to)
	if t.Failed() {
		t.Logf("%s, call %d of %v; the first run: %v", how, nth, calls, first)
	}
	return nth <= len(calls)
}

// TestEditAfterAnother begins while the server still shows what an action is changing.
func TestEditAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := changes()["firewalls"].start(t, emulated.Options{Boot: 8 * time.Second})
		going := s.firewalls[1] // which both wishes name
		post(t, s.cloud, "/firewalls/"+going+"/actions/remove_from_resources", map[string]any{
			"remove_from": []map[string]any{{"type": "server", "server": map[string]any{"id": s.server().ID}}},
		})
		if err := s.edit(from, to); err != nil {
			t.Fatal(err)
		}
		s.holds(from, to)
	})
}

func TestEditOfWhatIsGone(t *testing.T) {
	s, from, to := changes()["everything"].start(t, emulated.Options{})
	s.cloud.Delete(mustNumber(s.machine.ID))
	if e := wantError(t, s.edit(from, to)); e.Code != backends.NotFound {
		t.Errorf("got %v", e)
	}
	// What the wish names is gone; the server isn't.
	for name, wish := range map[string]backends.Values{
		"network":         {"networks": []any{joined("4711")}},
		"firewall":        {"firewall_ids": []any{"4711"}},
		"primary IP":      {"primary_ipv4_id": "4711"},
		"placement group": {"placement_group_id": "4711"},
	} {
		s, from, to := changes()["nothing"].start(t, emulated.Options{})
		to.Options = wish
		e := wantError(t, s.edit(from, to))
		if e.Code == backends.NotFound || !strings.Contains(e.Message+e.Remedy, "4711") || s.offs != 0 {
			t.Errorf("%s: %v (%s), off %d times", name, e, e.Remedy, s.offs)
		}
	}
}

// TestRenames: a name that another server has changes nothing.
func TestRenames(t *testing.T) {
	s, from, to := changes()["everything"].start(t, emulated.Options{})
	holder := made(t, s.client, func(spec *backends.MachineSpec) { spec.Name, spec.Marks.Key = to.Name, "inst_other" })
	s.cloud.ClearCalls()
	_, issues, err := s.client.CheckEdit(t.Context(), s.machine, from, to)
	if err != nil || len(issues) != 1 || issues[0].Path.String() != "name" || issues[0].Code != backends.Conflict {
		t.Fatalf("issues %v, %v", issues, err)
	}
	taken, ok := errors.AsType[*backends.NameTaken](issues[0])
	if !ok || taken.Holder.ID != holder.ID || taken.Holder.Marks.Key != "inst_other" {
		t.Errorf("holder %+v", taken)
	}
	if s.written() != "" {
		t.Errorf("a check has written: %s", s.written())
	}
	before := s.server()
	err = s.edit(from, to)
	if taken, ok := errors.AsType[*backends.NameTaken](err); !ok || taken.Holder.ID != holder.ID {
		t.Errorf("got %v", err)
	}
	if after := s.server(); !maps.Equal(after.Labels, before.Labels) || after.Name != before.Name || s.offs != 0 {
		t.Errorf("changed %+v", after)
	}
	// Its own name is no other's.
	if _, issues, err := s.client.CheckEdit(t.Context(), s.machine, from, from); err != nil || len(issues) != 0 {
		t.Errorf("issues %v, %v", issues, err)
	}
}

// TestRenameWaitsForTheName: the holder is being deleted.
func TestRenameWaitsForTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := changes()["name"].start(t, emulated.Options{DeleteTime: 20 * time.Second})
		holder := made(t, s.client, func(spec *backends.MachineSpec) { spec.Name, spec.Marks.Key = to.Name, "inst_other" })
		if err := s.client.DeleteMachine(t.Context(), holder); err != nil {
			t.Fatal(err)
		}
		if _, issues, err := s.client.CheckEdit(t.Context(), s.machine, from, to); err != nil || len(issues) != 0 {
			t.Errorf("issues %v, %v", issues, err)
		}
		if err := s.edit(from, to); err != nil {
			t.Fatal(err)
		}
		s.holds(from, to)
	})
}

// TestFirewallOfASelector: it can't be taken off a server, and is not ours to.
func TestFirewallOfASelector(t *testing.T) {
	s, from, to := changes()["no firewalls"].start(t, emulated.Options{})
	post(t, s.cloud, "/firewalls/"+s.firewalls[1]+"/actions/apply_to_resources", map[string]any{
		"apply_to": []map[string]any{{"type": "label_selector", "label_selector": map[string]any{"selector": "csi/other"}}},
	})
	from.Options["firewall_ids"] = []any{s.firewalls[0], s.firewalls[1]}
	if err := s.edit(from, to); err != nil {
		t.Fatal(err)
	}
	if got := len(s.server().Firewalls); got != 2 { // the selector's and another tool's
		t.Errorf("firewalls %v", s.server().Firewalls)
	}
	s, from, to = changes()["both on"].start(t, emulated.Options{})
	delete(to.Options, "public_ipv4")
	delete(to.Options, "public_ipv6")
	if e := wantError(t, s.edit(from, to)); e.Path.String() != "hetzner_cloud.firewall_ids" || !strings.Contains(e.Remedy, "public_ipv4") {
		t.Errorf("got %v", e)
	}
}

// TestBackWhereItWas: what can't be had is no reason to lose what there is.
func TestBackWhereItWas(t *testing.T) {
	s, from, to := changes()["placement group"].start(t, emulated.Options{})
	for i := range 10 {
		made(t, s.client, func(spec *backends.MachineSpec) {
			spec.Name, spec.Options = fmt.Sprint("m", i), backends.Values{"placement_group_id": s.groups[1]}
		})
	}
	if e := wantError(t, s.edit(from, to)); e.Reason != backends.ReasonCapacity {
		t.Errorf("a full group: %v", e)
	}
	if got := s.server().PlacementGroup; got != mustNumber(s.groups[0]) {
		t.Errorf("in group %d", got)
	}

	s, from, to = changes()["address in a network"].start(t, emulated.Options{})
	made(t, s.client, func(spec *backends.MachineSpec) {
		spec.Name, spec.Options = "other", backends.Values{"networks": []any{joined(s.networks[0])}}
	})
	taken := backends.Values{"networks": []any{joined(s.networks[0], "ip", "10.0.1.1")}}
	to.Options = taken
	if e := wantError(t, s.edit(from, to)); !hasAPICode(e, codeIPNotAvailable) {
		t.Errorf("an address that is taken: %v", e)
	}
	if got := s.server().Networks[mustNumber(s.networks[0])]; len(got) != 2 || got[0] != "10.0.1.5" {
		t.Errorf("addresses %v", got)
	}
}

// TestPrimaryIPs: which ones a server can't get, and that it keeps its own then.
func TestPrimaryIPs(t *testing.T) {
	s, from, to := changes()["a primary IP for the server's own"].start(t, emulated.Options{})
	far := s.primaryIP("far", "ipv4", "ash")
	other := made(t, s.client, func(spec *backends.MachineSpec) {
		spec.Name, spec.Options = "other", backends.Values{"primary_ipv4_id": s.ipv4s[1]}
	})
	own := s.server().IPv4
	for name, tt := range map[string]struct{ id, want string }{
		"nowhere":          {"4711", "There is no primary IP 4711"},
		"another location": {far, "is in ash, the server in fsn1"},
		"another family":   {s.ipv6, "of ipv6, not ipv4"},
		"another server's": {s.ipv4s[1], "is assigned to server " + other.ID},
	} {
		to.Options["primary_ipv4_id"] = tt.id
		warnings, issues, err := s.client.CheckEdit(t.Context(), s.machine, from, to)
		if err != nil || len(warnings)+len(issues) != 1 || (len(warnings) == 1) != (name == "another server's") {
			t.Fatalf("%s: %v, %v, %v", name, warnings, issues, err)
		}
		for _, issue := range issues {
			if !strings.Contains(issue.Message, tt.want) || issue.Path.String() != "hetzner_cloud.primary_ipv4_id" {
				t.Errorf("%s: %v", name, issue)
			}
		}
		if e := wantError(t, s.edit(from, to)); !strings.Contains(e.Message, tt.want) {
			t.Errorf("%s: %v", name, e)
		}
		if s.server().IPv4 != own || s.offs != 0 {
			t.Errorf("%s: the server has changed: %+v", name, s.server())
		}
	}
}

// TestShown: an import sees what the server has, and of lists what the wish names.
func TestShown(t *testing.T) {
	s, _, to := changes()["everything"].start(t, emulated.Options{})
	to.Network = s.networks[1]
	to.Options["networks"] = []any{joined(s.networks[3], "ip", "10.9.1.77", "alias_ips", []any{"10.9.1.5"}), joined(s.networks[1])}
	to.Options["firewall_ids"] = []any{s.firewalls[6], s.firewalls[0], s.firewalls[5]}
	to.Options["ssh_key_ids"] = []any{"laptop"}
	to.Labels = map[string]string{"csi/other": "mine", "new": "1"}
	wished := to.Options.Clone()
	got, err := s.client.Shown(t.Context(), s.machine, to)
	if err != nil {
		t.Fatal(err)
	}
	v := s.server()
	want := fmt.Sprint(backends.Values{
		"backups": true, "public_ipv6": true, "primary_ipv4_id": fmt.Sprint(v.IPv4), "ssh_key_ids": []any{"laptop"},
		"firewall_ids": []any{s.firewalls[6], s.firewalls[0]},
		"networks":     []any{joined(s.networks[3], "ip", v.Networks[mustNumber(s.networks[3])][0], "alias_ips", []any{})},
	})
	if fmt.Sprint(got.Options) != want {
		t.Errorf("got  %v\nwant %v", got.Options, want)
	}
	if got.Name != "web-0" || got.Network != s.networks[0] || !maps.Equal(got.Labels, map[string]string{"csi/other": "kept"}) {
		t.Errorf("got %+v", got)
	}
	if fmt.Sprint(to.Options) != fmt.Sprint(wished) {
		t.Error("the wish has changed")
	}
}

// TestPublicWishes: what is wrong with a wish by itself.
func TestPublicWishes(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Options = backends.Values{
		"public_ipv4": false, "primary_ipv4_id": "1", "primary_ipv6_id": "x",
		"firewall_ids": []any{"1", "2", "3", "4", "5", "6"},
	}
	issues := c.CheckForm(spec)
	if got := pathsOf(issues); got != "hetzner_cloud.primary_ipv6_id hetzner_cloud.primary_ipv4_id hetzner_cloud.firewall_ids" {
		t.Errorf("issues %v", issues)
	}
}

// TestMakeWithPrimaryIPs: they are in the POST, and one that its last server lets go of
// is waited for.
func TestMakeWithPrimaryIPs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, emulated.Options{DeleteTime: 20 * time.Second}, func(s *site) backends.MachineSpec {
			spec := testSpec()
			spec.Options = backends.Values{"primary_ipv4_id": s.ipv4s[0], "primary_ipv6_id": s.ipv6}
			return spec
		})
		if v := s.server(); v.IPv4 != mustNumber(s.ipv4s[0]) || v.IPv6 != mustNumber(s.ipv6) {
			t.Errorf("made %+v", v)
		}
		again := testSpec()
		again.Name, again.Options = "web-1", backends.Values{"primary_ipv4_id": s.ipv4s[0]}
		_, err := s.client.MakeMachine(t.Context(), again)
		if e := wantError(t, err); e.Path.String() != "hetzner_cloud.primary_ipv4_id" || !strings.Contains(e.Remedy, "web-0") || e.Ambiguous {
			t.Errorf("got %v (%s)", e, e.Remedy)
		}
		if err := s.client.DeleteMachine(t.Context(), s.machine); err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.MakeMachine(t.Context(), again); err != nil {
			t.Error(err)
		}
	})
}
