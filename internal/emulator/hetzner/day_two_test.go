// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// newMachine makes a server with the vendor's client and waits until it runs.
func newMachine(t *testing.T, client *hcloud.Client, name string, change func(*hcloud.ServerCreateOpts)) *hcloud.Server {
	t.Helper()
	opts := hcloud.ServerCreateOpts{
		Name: name, ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"},
		Location: &hcloud.Location{Name: "fsn1"},
	}
	if change != nil {
		change(&opts)
	}
	created := must[hcloud.ServerCreateResult](t)(client.Server.Create(t.Context(), opts))
	wait(t, client, append(created.NextActions, created.Action)...)
	return created.Server
}

func wantCode(t *testing.T, code string) func(_ any, _ *hcloud.Response, err error) {
	return func(_ any, _ *hcloud.Response, err error) {
		t.Helper()
		if !hcloud.IsError(err, hcloud.ErrorCode(code)) {
			t.Errorf("want %s, got %v", code, err)
		}
	}
}

func onServer(v *hcloud.Server) []hcloud.FirewallResource {
	return []hcloud.FirewallResource{{Type: hcloud.FirewallResourceTypeServer, Server: &hcloud.FirewallResourceServer{ID: v.ID}}}
}

func onSelector(selector string) []hcloud.FirewallResource {
	return []hcloud.FirewallResource{{
		Type: hcloud.FirewallResourceTypeLabelSelector, LabelSelector: &hcloud.FirewallResourceLabelSelector{Selector: selector},
	}}
}

// TestFirewallActions applies firewalls and removes them with the vendor's client.
func TestFirewallActions(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	client := serve(t, s, quick())
	ctx := t.Context()
	firewall := func(name string, on ...hcloud.FirewallResource) *hcloud.Firewall {
		made := must[hcloud.FirewallCreateResult](t)(client.Firewall.Create(ctx, hcloud.FirewallCreateOpts{Name: name, ApplyTo: on}))
		wait(t, client, made.Actions...)
		return made.Firewall
	}
	v := newMachine(t, client, "a", nil)
	f := firewall("f")
	apply := must[[]*hcloud.Action](t)
	wait(t, client, apply(client.Firewall.ApplyResources(ctx, f, onServer(v)))...)
	got := must[*hcloud.Server](t)(client.Server.GetByID(ctx, v.ID))
	if len(got.PublicNet.Firewalls) != 1 || got.PublicNet.Firewalls[0].Status != hcloud.FirewallStatusApplied {
		t.Errorf("applied: %+v", got.PublicNet.Firewalls)
	}
	refusedAs := func(code string, do func() ([]*hcloud.Action, *hcloud.Response, error)) {
		t.Helper()
		actions, answer, err := do()
		wantCode(t, code)(actions, answer, err)
	}
	refusedAs("firewall_already_applied", func() ([]*hcloud.Action, *hcloud.Response, error) {
		return client.Firewall.ApplyResources(ctx, f, onServer(v))
	})
	refusedAs("firewall_resource_not_found", func() ([]*hcloud.Action, *hcloud.Response, error) {
		return client.Firewall.ApplyResources(ctx, f, onServer(&hcloud.Server{ID: 4711}))
	})
	wait(t, client, apply(client.Firewall.RemoveResources(ctx, f, onServer(v)))...)
	refusedAs("firewall_resource_not_found", func() ([]*hcloud.Action, *hcloud.Response, error) {
		return client.Firewall.RemoveResources(ctx, f, onServer(v))
	})

	selected := firewall("selected", onSelector("role=web")[0])
	if len(s.Servers()[0].Firewalls) != 0 {
		t.Errorf("a server without the label: %v", s.Servers()[0].Firewalls)
	}
	must[*hcloud.Server](t)(client.Server.Update(ctx, v, hcloud.ServerUpdateOpts{Labels: map[string]string{"role": "web"}}))
	if got := s.Servers()[0].Firewalls; !slices.Equal(got, []int64{selected.ID}) {
		t.Errorf("a server with the label: %v", got)
	}
	shown := must[*hcloud.Firewall](t)(client.Firewall.GetByID(ctx, selected.ID))
	if len(shown.AppliedTo) != 1 || len(shown.AppliedTo[0].AppliedToResources) != 1 {
		t.Errorf("shown %+v", shown.AppliedTo)
	}
	refusedAs("firewall_managed_by_label_selector", func() ([]*hcloud.Action, *hcloud.Response, error) {
		return client.Firewall.RemoveResources(ctx, selected, onServer(v))
	})
	if _, err := client.Firewall.Delete(ctx, selected); !hcloud.IsError(err, hcloud.ErrorCodeResourceInUse) {
		t.Errorf("deleting a firewall that is in use: %v", err)
	}
	wait(t, client, apply(client.Firewall.RemoveResources(ctx, selected, onSelector("role=web")))...)
	if _, err := client.Firewall.Delete(ctx, selected); err != nil {
		t.Error(err)
	}

	for i := range 5 {
		wait(t, client, apply(client.Firewall.ApplyResources(ctx, firewall(fmt.Sprint("n", i)), onServer(v)))...)
	}
	refusedAs("resource_limit_exceeded", func() ([]*hcloud.Action, *hcloud.Response, error) {
		return client.Firewall.ApplyResources(ctx, f, onServer(v))
	})
	hidden := newMachine(t, client, "b", func(opts *hcloud.ServerCreateOpts) {
		opts.PublicNet = &hcloud.ServerCreatePublicNet{}
		opts.StartAfterCreate = new(false)
	})
	refusedAs("private_net_only_server", func() ([]*hcloud.Action, *hcloud.Response, error) {
		return client.Firewall.ApplyResources(ctx, f, onServer(hidden))
	})
	wantCode(t, "invalid_input")(client.Server.Poweron(ctx, hidden))
}

// TestFirewallsTakeTime: pending until the action is done, and gone when it fails.
func TestFirewallsTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{Boot: 8 * time.Second})
		handler := described(t, s)
		do(t, handler, "POST", "/v1/servers", newServer)
		do(t, handler, "POST", "/v1/firewalls", `{"name":"f"}`)
		<-time.After(time.Minute)
		v := s.Servers()[0].ID
		_, body, _ := do(t, handler, "GET", "/v1/firewalls?name=f", "")
		var found struct {
			Firewalls []struct {
				ID int64 `json:"id"`
			} `json:"firewalls"`
		}
		if err := json.Unmarshal([]byte(body), &found); err != nil || len(found.Firewalls) != 1 {
			t.Fatal(body, err)
		}
		firewall := found.Firewalls[0].ID
		one := fmt.Sprintf("/v1/servers/%d", v)
		change := func(action, field string) {
			t.Helper()
			path := fmt.Sprintf("/v1/firewalls/%d/actions/%s", firewall, action)
			request := fmt.Sprintf(`{%q:[{"type":"server","server":{"id":%d}}]}`, field, v)
			if status, body, _ := do(t, handler, "POST", path, request); status != 201 || !strings.Contains(body, `"status":"running"`) {
				t.Errorf("%s: %d %s", action, status, body)
			}
		}
		shows := func(want string) {
			t.Helper()
			if _, body, _ := do(t, handler, "GET", one, ""); !strings.Contains(body, want) {
				t.Errorf("want %s in %s", want, body)
			}
		}
		change("apply_to_resources", "apply_to")
		shows(`"status":"pending"`)
		if status, _, _ := do(t, handler, "POST", one+"/actions/poweroff", ""); status != 423 {
			t.Errorf("a server that a firewall is applied to: %d", status)
		}
		<-time.After(time.Second)
		shows(`"status":"applied"`)
		change("remove_from_resources", "remove_from")
		<-time.After(time.Second)
		shows(`"firewalls":[]`)
		addFault(t, s, emulator.Rule{Path: "*/apply_to_resources", Kind: emulator.KindFailAction})
		change("apply_to_resources", "apply_to")
		<-time.After(time.Second)
		shows(`"firewalls":[]`)
		change("apply_to_resources", "apply_to")
		<-time.After(time.Second)
		addFault(t, s, emulator.Rule{Path: "*/remove_from_resources", Kind: emulator.KindFailAction})
		change("remove_from_resources", "remove_from")
		<-time.After(time.Second)
		shows(`"status":"applied"`)
	})
}

// TestPlacementGroupActions puts servers into a group and takes them out.
func TestPlacementGroupActions(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	client := serve(t, s, quick())
	ctx := t.Context()
	group := must[hcloud.PlacementGroupCreateResult](t)(client.PlacementGroup.Create(ctx, hcloud.PlacementGroupCreateOpts{
		Name: "g", Type: hcloud.PlacementGroupTypeSpread,
	})).PlacementGroup
	v := newMachine(t, client, "a", nil)
	act := must[*hcloud.Action](t)

	action, answer, err := client.Server.AddToPlacementGroup(ctx, v, group)
	wantCode(t, "server_not_stopped")(action, answer, err)
	wait(t, client, act(client.Server.Poweroff(ctx, v)))
	action, answer, err = client.Server.AddToPlacementGroup(ctx, v, &hcloud.PlacementGroup{ID: 4711})
	wantCode(t, "not_found")(action, answer, err)
	addFault(t, s, emulator.Rule{Path: "*/add_to_placement_group", Kind: emulator.KindFailAction})
	if err := client.Action.WaitFor(ctx, act(client.Server.AddToPlacementGroup(ctx, v, group))); err == nil || s.Servers()[0].PlacementGroup != 0 {
		t.Errorf("a failed action: %v, %+v", err, s.Servers()[0])
	}
	wait(t, client, act(client.Server.AddToPlacementGroup(ctx, v, group)))
	if got := must[*hcloud.PlacementGroup](t)(client.PlacementGroup.GetByID(ctx, group.ID)); !slices.Equal(got.Servers, []int64{v.ID}) {
		t.Errorf("members %v", got.Servers)
	}
	action, answer, err = client.Server.AddToPlacementGroup(ctx, v, group)
	wantCode(t, "already_in_placement_group")(action, answer, err)
	wait(t, client, act(client.Server.Poweron(ctx, v)))
	wait(t, client, act(client.Server.RemoveFromPlacementGroup(ctx, v)))
	if s.Servers()[0].PlacementGroup != 0 {
		t.Errorf("still a member: %+v", s.Servers()[0])
	}
	action, answer, err = client.Server.RemoveFromPlacementGroup(ctx, v)
	wantCode(t, "invalid_input")(action, answer, err)
}

// TestPrimaryIPActions moves public addresses between servers.
func TestPrimaryIPActions(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	client := serve(t, s, quick())
	ctx := t.Context()
	act := must[*hcloud.Action](t)
	ip := func(name string, family hcloud.PrimaryIPType, location string) *hcloud.PrimaryIP {
		return must[*hcloud.PrimaryIPCreateResult](t)(client.PrimaryIP.Create(ctx, hcloud.PrimaryIPCreateOpts{
			Name: name, Type: family, Location: location,
		})).PrimaryIP
	}
	assign := func(ip *hcloud.PrimaryIP, v *hcloud.Server) (*hcloud.Action, *hcloud.Response, error) {
		return client.PrimaryIP.Assign(ctx, hcloud.PrimaryIPAssignOpts{ID: ip.ID, AssigneeID: v.ID, AssigneeType: "server"})
	}
	refusedAs := func(code string, do func() (*hcloud.Action, *hcloud.Response, error)) {
		t.Helper()
		action, answer, err := do()
		wantCode(t, code)(action, answer, err)
	}
	v := newMachine(t, client, "a", nil)
	made := s.Servers()[0].IPv4
	mine, far := ip("mine", hcloud.PrimaryIPTypeIPv4, "fsn1"), ip("far", hcloud.PrimaryIPTypeIPv4, "ash")
	if mine.AssigneeType != "unassigned" || mine.AssigneeID != 0 {
		t.Errorf("not assigned: %+v", mine)
	}
	refusedAs("server_not_stopped", func() (*hcloud.Action, *hcloud.Response, error) { return assign(mine, v) })
	refusedAs("server_not_stopped", func() (*hcloud.Action, *hcloud.Response, error) { return client.PrimaryIP.Unassign(ctx, made) })
	wait(t, client, act(client.Server.Poweroff(ctx, v)))
	refusedAs("server_has_ipv4", func() (*hcloud.Action, *hcloud.Response, error) { return assign(mine, v) })
	wait(t, client, act(client.PrimaryIP.Unassign(ctx, made)))
	refusedAs("invalid_input", func() (*hcloud.Action, *hcloud.Response, error) { return client.PrimaryIP.Unassign(ctx, made) })
	refusedAs("primary_ip_datacenter_mismatch", func() (*hcloud.Action, *hcloud.Response, error) { return assign(far, v) })
	refusedAs("not_found", func() (*hcloud.Action, *hcloud.Response, error) { return assign(mine, &hcloud.Server{ID: 4711}) })
	addFault(t, s, emulator.Rule{Path: "*/assign", Kind: emulator.KindFailAction})
	if err := client.Action.WaitFor(ctx, act(assign(mine, v))); err == nil || s.Servers()[0].IPv4 != 0 {
		t.Errorf("a failed action: %v, %+v", err, s.Servers()[0])
	}
	wait(t, client, act(assign(mine, v)))
	refusedAs("primary_ip_already_assigned", func() (*hcloud.Action, *hcloud.Response, error) { return assign(mine, v) })
	got := must[*hcloud.Server](t)(client.Server.GetByID(ctx, v.ID))
	if got.PublicNet.IPv4.ID != mine.ID || !got.PublicNet.IPv4.IP.Equal(mine.IP) {
		t.Errorf("server %+v", got.PublicNet.IPv4)
	}
	// The address that was made with the server stays until it is deleted.
	if left := must[*hcloud.PrimaryIP](t)(client.PrimaryIP.GetByID(ctx, made)); left == nil || !left.AutoDelete || left.AssigneeID != 0 {
		t.Errorf("left %+v", left)
	}
	if _, err := client.PrimaryIP.Delete(ctx, &hcloud.PrimaryIP{ID: made}); err != nil {
		t.Error(err)
	}

	wait(t, client, act(client.PrimaryIP.Unassign(ctx, mine.ID)))
	created := must[*hcloud.PrimaryIPCreateResult](t)(client.PrimaryIP.Create(ctx, hcloud.PrimaryIPCreateOpts{
		Name: "new", Type: hcloud.PrimaryIPTypeIPv4, AssigneeID: &v.ID, AssigneeType: "server", AutoDelete: new(true),
	}))
	wait(t, client, created.Action)
	if got := s.Servers()[0].IPv4; got != created.PrimaryIP.ID {
		t.Errorf("assigned by the creation: %d, want %d", got, created.PrimaryIP.ID)
	}
	_, answer, err := client.PrimaryIP.Create(ctx, hcloud.PrimaryIPCreateOpts{
		Name: "second", Type: hcloud.PrimaryIPTypeIPv4, AssigneeID: &v.ID, AssigneeType: "server",
	})
	wantCode(t, "server_has_ipv4")(nil, answer, err)
	kept := must[*hcloud.PrimaryIP](t)(client.PrimaryIP.Update(ctx, created.PrimaryIP, hcloud.PrimaryIPUpdateOpts{AutoDelete: new(false)}))
	if kept.AutoDelete || kept.AssigneeType != "server" {
		t.Errorf("updated %+v", kept)
	}
	wait(t, client, must[*hcloud.ServerDeleteResult](t)(client.Server.DeleteWithResult(ctx, v)).Action)
	if left := must[*hcloud.PrimaryIP](t)(client.PrimaryIP.GetByID(ctx, kept.ID)); left == nil || left.AssigneeID != 0 {
		t.Errorf("an address that is to stay: %+v", left)
	}
}

// TestNetworkAddresses: an address is one server's, aliases included.
func TestNetworkAddresses(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	client := serve(t, s, quick())
	ctx := t.Context()
	act := must[*hcloud.Action](t)
	network := func(name, whole string, subnets ...string) *hcloud.Network {
		opts := hcloud.NetworkCreateOpts{Name: name, IPRange: cidr(t, whole)}
		for _, subnet := range subnets {
			opts.Subnets = append(opts.Subnets, hcloud.NetworkSubnet{
				Type: hcloud.NetworkSubnetTypeCloud, IPRange: cidr(t, subnet), NetworkZone: hcloud.NetworkZoneEUCentral,
			})
		}
		return must[*hcloud.Network](t)(client.Network.Create(ctx, opts))
	}
	n := network("n", "10.0.0.0/16", "10.0.1.0/24", "10.0.2.0/24")
	same := network("same", "10.0.0.0/8", "10.0.1.0/24")
	a, b := newMachine(t, client, "a", nil), newMachine(t, client, "b", nil)
	attach := func(v *hcloud.Server, opts hcloud.ServerAttachToNetworkOpts) (*hcloud.Action, *hcloud.Response, error) {
		return client.Server.AttachToNetwork(ctx, v, opts)
	}
	aliases := func(v *hcloud.Server, n *hcloud.Network, ips ...string) (*hcloud.Action, *hcloud.Response, error) {
		opts := hcloud.ServerChangeAliasIPsOpts{Network: n}
		for _, ip := range ips {
			opts.AliasIPs = append(opts.AliasIPs, net.ParseIP(ip))
		}
		return client.Server.ChangeAliasIPs(ctx, v, opts)
	}
	refusedAs := func(code string, do func() (*hcloud.Action, *hcloud.Response, error)) {
		t.Helper()
		action, answer, err := do()
		wantCode(t, code)(action, answer, err)
	}
	wait(t, client, act(attach(a, hcloud.ServerAttachToNetworkOpts{Network: n, IP: net.ParseIP("10.0.1.5"), AliasIPs: []net.IP{net.ParseIP("10.0.1.6")}})))
	wait(t, client, act(aliases(a, n, "10.0.1.6", "10.0.1.1")))
	refusedAs("networks_overlap", func() (*hcloud.Action, *hcloud.Response, error) {
		return attach(a, hcloud.ServerAttachToNetworkOpts{Network: same})
	})
	for _, taken := range []string{"10.0.1.5", "10.0.1.6", "10.0.0.1", "10.0.3.1"} {
		refusedAs("ip_not_available", func() (*hcloud.Action, *hcloud.Response, error) {
			return attach(b, hcloud.ServerAttachToNetworkOpts{Network: n, IP: net.ParseIP(taken)})
		})
	}
	wait(t, client, act(attach(b, hcloud.ServerAttachToNetworkOpts{Network: n})))
	if got := s.Servers()[1].Networks[n.ID]; !slices.Equal(got, []string{"10.0.1.2"}) {
		t.Errorf("the first free address: %v", got)
	}
	refusedAs("ip_not_available", func() (*hcloud.Action, *hcloud.Response, error) { return aliases(b, n, "10.0.1.6") })
	refusedAs("invalid_input", func() (*hcloud.Action, *hcloud.Response, error) { return aliases(b, same, "10.0.1.6") })
	wait(t, client, act(aliases(a, n)))
	if got := s.Servers()[0].Networks[n.ID]; !slices.Equal(got, []string{"10.0.1.5"}) {
		t.Errorf("without aliases: %v", got)
	}
	addFault(t, s, emulator.Rule{Path: "*/change_alias_ips", Kind: emulator.KindFailAction})
	if err := client.Action.WaitFor(ctx, act(aliases(a, n, "10.0.1.7"))); err == nil || len(s.Servers()[0].Networks[n.ID]) != 1 {
		t.Errorf("a failed action: %v", err)
	}
	wait(t, client, act(client.Server.DetachFromNetwork(ctx, b, hcloud.ServerDetachFromNetworkOpts{Network: n})))
	wait(t, client, act(attach(b, hcloud.ServerAttachToNetworkOpts{Network: n, IPRange: cidr(t, "10.0.2.0/24")})))
	if got := s.Servers()[1].Networks[n.ID]; !slices.Equal(got, []string{"10.0.2.1"}) {
		t.Errorf("of a subnet: %v", got)
	}
}

func cidr(t *testing.T, text string) *net.IPNet {
	t.Helper()
	_, out, err := net.ParseCIDR(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestChangeType holds what the API refuses, and that a disk that was kept leaves the
// way back open.
func TestChangeType(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	handler := described(t, s, openapitest.AnswersOnly())
	do(t, handler, "POST", "/v1/servers", `{"name":"a","server_type":"cx23","image":"debian-12","location":"hel1"}`)
	v := s.Servers()[0].ID
	one := fmt.Sprintf("/v1/servers/%d/actions/", v)
	change := func(to string, disk bool, status int, want string) {
		t.Helper()
		body := fmt.Sprintf(`{"server_type":%q,"upgrade_disk":%v}`, to, disk)
		if got, answer, _ := do(t, handler, "POST", one+"change_type", body); got != status || !strings.Contains(answer, want) {
			t.Errorf("to %s: %d %s", to, got, answer)
		}
	}
	is := func(serverType string, disk int, status string) {
		t.Helper()
		if got := s.Servers()[0]; got.ServerType != serverType || got.Disk != disk || got.Status != status {
			t.Errorf("want %s with %d GB, %s: %+v", serverType, disk, status, got)
		}
	}
	change("cx33", false, 422, "server_not_stopped")
	s.SetPower(v, false)
	change("cax11", false, 422, "invalid_server_type") // another architecture
	change("cx22", false, 422, "invalid_server_type")  // deprecated
	change("nope", false, 422, "not found")
	s.SetStock("cx33", "hel1", false)
	change("cx33", false, 412, "resource_unavailable")
	s.SetStock("cx33", "hel1", true)
	addFault(t, s, emulator.Rule{Path: "*/change_type", Kind: emulator.KindFailAction})
	change("cx33", false, 201, "change_server_type")
	is("cx23", 40, "off")
	change("cx33", false, 201, "change_server_type")
	is("cx33", 40, "running")
	s.SetPower(v, false)
	change("cx23", false, 201, "change_server_type")
	is("cx23", 40, "running")
	s.SetPower(v, false)
	change("cx33", true, 201, "change_server_type")
	is("cx33", 80, "running")
	s.SetPower(v, false)
	change("cx23", false, 422, "invalid_server_type") // a smaller disk
}
