// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// site is an emulated project with a server and everything that it can be given.
type site struct {
	*testing.T
	cloud  *emulated.Service
	client *Client
	// machine is the server, with a label, a firewall and a network that something else
	// has given it.
	machine backends.Machine
	// offs is how often an edit has switched the server off.
	offs int
	// firewalled: it has the other's firewall.
	firewalled bool

	networks  []string // the third lies within the first, the last is another's
	firewalls []string // the last is another's, applied to the server
	groups    []string
	ipv4s     []string // primary IPs in fsn1
	ipv6      string
}

// newSite makes a server of a wish.
func newSite(t *testing.T, options emulated.Options, make func(*site) backends.MachineSpec, wrap ...func(http.Handler) http.Handler) *site {
	t.Helper()
	s := &site{T: t}
	s.client, s.cloud = emulatedClient(t, options)
	for _, wrap := range wrap {
		s.client = clientOf(t, emulator.Transport(wrap(s.cloud)), &fixedSecrets{token: testToken})
	}
	for i, whole := range []string{"10.0.0.0/16", "10.1.0.0/16", "10.0.1.0/24", "10.9.0.0/16"} {
		id := makeNetwork(t, s.cloud, fmt.Sprint("n", i), whole, []string{"10.0.1.0/24", "10.1.1.0/24", "10.0.1.0/24", "10.9.1.0/24"}[i])
		s.networks = append(s.networks, fmt.Sprint(id))
	}
	for i := range 7 {
		s.firewalls = append(s.firewalls, fmt.Sprint(objectID(t, post(t, s.cloud, "/firewalls", map[string]any{"name": fmt.Sprint("f", i)}), "firewall")))
	}
	for i := range 2 {
		group := post(t, s.cloud, "/placement_groups", map[string]any{"name": fmt.Sprint("g", i), "type": "spread"})
		s.groups = append(s.groups, fmt.Sprint(objectID(t, group, "placement_group")))
	}
	for i := range 2 {
		s.ipv4s = append(s.ipv4s, s.primaryIP(fmt.Sprint("v4-", i), "ipv4", "fsn1"))
	}
	s.ipv6 = s.primaryIP("v6", "ipv6", "fsn1")
	spec := make(s)
	m, err := s.client.MakeMachine(t.Context(), spec)
	if err == nil {
		m, err = s.client.FinishMachine(t.Context(), m, spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.machine = m
	s.unlock()
	s.foreign()
	s.unlock()
	return s
}

func (s *site) primaryIP(name, family, location string) string {
	s.Helper()
	made := post(s.T, s.cloud, "/primary_ips", map[string]any{"name": name, "type": family, "location": location})
	return fmt.Sprint(objectID(s.T, made, "primary_ip"))
}

// unlock waits until nothing works on the server.
func (s *site) unlock() {
	s.Helper()
	for s.server().Locked {
		<-time.After(time.Second) // of a bubble's clock: other clouds here take no time
	}
}

// foreign gives the server what another tool might.
func (s *site) foreign() {
	s.Helper()
	v := s.server()
	labels := v.Labels
	labels["csi/other"] = "kept"
	s.cloud.SetLabels(v.ID, labels)
	s.firewalled = v.IPv4 != 0 || v.IPv6 != 0
	if s.firewalled {
		post(s.T, s.cloud, "/firewalls/"+s.firewalls[6]+"/actions/apply_to_resources", map[string]any{
			"apply_to": []map[string]any{{"type": "server", "server": map[string]any{"id": v.ID}}},
		})
		s.unlock()
	}
	post(s.T, s.cloud, fmt.Sprintf("/servers/%d/actions/attach_to_network", v.ID), map[string]any{"network": mustNumber(s.networks[3])})
	s.machine.Labels = s.client.marks.foreign(labels)
}

func mustNumber(id string) int64 {
	n, ok := parseID(id)
	if !ok {
		panic(id)
	}
	return n
}

// server is the site's server as the cloud has it.
func (s *site) server() emulated.Server {
	s.Helper()
	id := mustNumber(s.machine.ID)
	servers := s.cloud.Servers()
	i := slices.IndexFunc(servers, func(v emulated.Server) bool { return v.ID == id })
	if i < 0 {
		s.Fatalf("server %d is gone", id)
	}
	return servers[i]
}

// off is the power-down that an edit is given: hard, and counted.
func (s *site) off(context.Context) error {
	s.offs++
	s.cloud.SetPower(mustNumber(s.machine.ID), false)
	return nil
}

// edit edits the server.
func (s *site) edit(from, to backends.MachineSpec) error {
	m, err := s.client.Edit(s.Context(), s.machine, from, to, s.off)
	if err == nil {
		s.machine = m
	}
	return err
}

// holds fails unless the server is what the wish says, has nothing more of the earlier
// one, and has kept what something else gave it.
func (s *site) holds(from, to backends.MachineSpec) {
	s.Helper()
	shown, err := s.client.Shown(s.Context(), s.machine, to)
	if err != nil {
		s.Error(err)
		return
	}
	for _, effect := range s.client.PlanEdit(shown, to) {
		name, _ := effect.Path[len(effect.Path)-1].(string)
		s.Errorf("%s isn't what is wished: %v instead of %v", effect.Path, shown.Options[name], to.Options[name])
	}
	v := s.server()
	if got := s.client.marks.read(v.Labels); got != to.Marks {
		s.Errorf("marks %+v, want %+v", got, to.Marks)
	}
	if v.Labels["csi/other"] != "kept" || v.Networks[mustNumber(s.networks[3])] == nil {
		s.Errorf("another's label or network is gone: %+v", v)
	}
	if s.firewalled && !slices.Contains(v.Firewalls, mustNumber(s.firewalls[6])) {
		s.Errorf("another's firewall is gone: %+v", v)
	}
	for key := range from.Labels {
		if _, stays := to.Labels[key]; !stays && to.Labels != nil && v.Labels[key] != "" {
			s.Errorf("the label %s has stayed", key)
		}
	}
	if to.Options.Has("firewall_ids") {
		for _, id := range firewallsOf(from.Options) {
			if slices.Contains(v.Firewalls, id) && !slices.Contains(firewallsOf(to.Options), id) {
				s.Errorf("firewall %d has stayed", id)
			}
		}
	}
	if want, _ := allNetworks(to); to.Network != "" || to.Options.Has("networks") {
		had, _ := allNetworks(from)
		for _, n := range had {
			if v.Networks[n.id] != nil && !slices.ContainsFunc(want, func(w network) bool { return w.id == n.id }) {
				s.Errorf("network %d has stayed", n.id)
			}
		}
	}
	if left := s.strayAddresses(); left != 0 {
		s.Errorf("%d addresses were made for the server and are left over", left)
	}
}

// strayAddresses is how many primary IPs, other than those that the site was made with,
// nothing has.
func (s *site) strayAddresses() int {
	s.Helper()
	found, err := s.client.api.PrimaryIP.All(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	stray := 0
	for _, ip := range found {
		own := slices.Contains(append(s.ipv4s, s.ipv6), fmt.Sprint(ip.ID)) || ip.Name == "far"
		if ip.AssigneeID == 0 && !own {
			stray++
		}
	}
	return stray
}

// requests are the calls since they were last cleared, reads of actions left out.
func (s *site) requests() []emulator.Call {
	return slices.DeleteFunc(s.cloud.Calls(), func(c emulator.Call) bool {
		return c.Method == http.MethodGet && len(c.Path) > 11 && c.Path[:12] == "/v1/actions/"
	})
}

// writes are those of them that aren't reads.
func (s *site) writes() []emulator.Call {
	return slices.DeleteFunc(s.requests(), func(c emulator.Call) bool { return c.Method == http.MethodGet })
}
