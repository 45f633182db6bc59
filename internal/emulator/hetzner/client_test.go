// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4FMNuQ0ltaZHWTmqRPxJMy1GZOaHaDJTLwpxtcVvGy test"

// TestClient walks through a server's life with the vendor's own client, with
// its defaults but for the pace of polling.
func TestClient(t *testing.T) {
	s := hetzner.New(hetzner.Options{Boot: 20 * time.Millisecond})
	client := serve(t, s, quick())
	ctx := t.Context()

	serverType := must[*hcloud.ServerType](t)(client.ServerType.GetByName(ctx, "cx23"))
	image := must[*hcloud.Image](t)(client.Image.GetByNameAndArchitecture(ctx, "ubuntu-24.04", serverType.Architecture))
	if image.Architecture != hcloud.ArchitectureX86 {
		t.Fatalf("image of architecture %s", image.Architecture)
	}
	location := must[*hcloud.Location](t)(client.Location.GetByName(ctx, "nbg1"))
	key := must[*hcloud.SSHKey](t)(client.SSHKey.Create(ctx, hcloud.SSHKeyCreateOpts{Name: "me", PublicKey: publicKey}))
	_, ipRange, _ := net.ParseCIDR("10.0.0.0/16")
	_, subnetRange, _ := net.ParseCIDR("10.0.1.0/24")
	network := must[*hcloud.Network](t)(client.Network.Create(ctx, hcloud.NetworkCreateOpts{
		Name: "net", IPRange: ipRange,
		Subnets: []hcloud.NetworkSubnet{{Type: hcloud.NetworkSubnetTypeCloud, IPRange: subnetRange, NetworkZone: hcloud.NetworkZoneEUCentral}},
	}))
	_, everywhere, _ := net.ParseCIDR("0.0.0.0/0")
	wall := must[hcloud.FirewallCreateResult](t)(client.Firewall.Create(ctx, hcloud.FirewallCreateOpts{
		Name:  "wall",
		Rules: []hcloud.FirewallRule{{Direction: hcloud.FirewallRuleDirectionIn, Protocol: hcloud.FirewallRuleProtocolTCP, Port: new("22"), SourceIPs: []net.IPNet{*everywhere}}},
	}))
	group := must[hcloud.PlacementGroupCreateResult](t)(client.PlacementGroup.Create(ctx, hcloud.PlacementGroupCreateOpts{
		Name: "spread", Type: hcloud.PlacementGroupTypeSpread,
	}))

	created := must[hcloud.ServerCreateResult](t)(client.Server.Create(ctx, hcloud.ServerCreateOpts{
		Name: "web-0", ServerType: serverType, Image: image, Location: location,
		SSHKeys:        []*hcloud.SSHKey{key},
		UserData:       "#cloud-config\n",
		Labels:         map[string]string{"better-compute.io/managed": "true", "n": "0"},
		Networks:       []*hcloud.Network{network},
		Firewalls:      []*hcloud.ServerCreateFirewall{{Firewall: *wall.Firewall}},
		PlacementGroup: group.PlacementGroup,
		PublicNet:      &hcloud.ServerCreatePublicNet{EnableIPv4: true, EnableIPv6: false},
	}))
	if created.Server.Status != hcloud.ServerStatusInitializing || created.Action.Status != hcloud.ActionStatusRunning || len(created.NextActions) != 1 || created.RootPassword != "" {
		t.Fatalf("created %+v", created)
	}
	wait(t, client, append(created.NextActions, created.Action)...)
	server := must[*hcloud.Server](t)(client.Server.GetByName(ctx, "web-0"))
	switch {
	case server.Status != hcloud.ServerStatusRunning:
		t.Errorf("status %s", server.Status)
	case server.PublicNet.IPv4.IsUnspecified() || !server.PublicNet.IPv6.IsUnspecified():
		t.Errorf("public net %+v", server.PublicNet)
	case len(server.PrivateNet) != 1 || server.PrivateNet[0].IP.String() != "10.0.1.1":
		t.Errorf("private net %+v", server.PrivateNet)
	case len(server.PublicNet.Firewalls) != 1 || server.PlacementGroup == nil || server.Location.Name != "nbg1":
		t.Errorf("server %+v", server)
	}
	if got := s.Servers()[0]; got.UserData != "#cloud-config\n" || len(got.SSHKeys) != 1 {
		t.Errorf("recorded %+v", got)
	}

	server = must[*hcloud.Server](t)(client.Server.Update(ctx, server, hcloud.ServerUpdateOpts{Labels: map[string]string{"a": "b"}}))
	if len(server.Labels) != 1 || server.Labels["a"] != "b" {
		t.Errorf("labels are %v, not replaced", server.Labels)
	}

	for _, step := range []struct {
		name string
		do   func() (*hcloud.Action, *hcloud.Response, error)
		want hcloud.ServerStatus
	}{
		{"poweroff", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.Poweroff(ctx, server) }, "off"},
		{"change_type", func() (*hcloud.Action, *hcloud.Response, error) {
			return client.Server.ChangeType(ctx, server, hcloud.ServerChangeTypeOpts{ServerType: &hcloud.ServerType{Name: "cx33"}, UpgradeDisk: true})
		}, "running"},
		{"reboot", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.Reboot(ctx, server) }, "running"},
		{"reset", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.Reset(ctx, server) }, "running"},
		{"enable_backup", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.EnableBackup(ctx, server, "") }, "running"},
		{"disable_backup", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.DisableBackup(ctx, server) }, "running"},
		{"detach_from_network", func() (*hcloud.Action, *hcloud.Response, error) {
			return client.Server.DetachFromNetwork(ctx, server, hcloud.ServerDetachFromNetworkOpts{Network: network})
		}, "running"},
		{"attach_to_network", func() (*hcloud.Action, *hcloud.Response, error) {
			return client.Server.AttachToNetwork(ctx, server, hcloud.ServerAttachToNetworkOpts{Network: network, IP: net.IPv4(10, 0, 1, 9)})
		}, "running"},
		{"poweroff again", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.Poweroff(ctx, server) }, "off"},
		{"poweron", func() (*hcloud.Action, *hcloud.Response, error) { return client.Server.Poweron(ctx, server) }, "running"},
	} {
		action := must[*hcloud.Action](t)(step.do())
		wait(t, client, action)
		server = must[*hcloud.Server](t)(client.Server.GetByID(ctx, server.ID))
		if server.Status != step.want {
			t.Errorf("after %s the server is %s", step.name, server.Status)
		}
	}
	if server.ServerType.Name != "cx33" || server.PrimaryDiskSize != 80 || server.PrivateNet[0].IP.String() != "10.0.1.9" {
		t.Errorf("server %+v", server)
	}

	debian := must[*hcloud.Image](t)(client.Image.GetByNameAndArchitecture(ctx, "debian-12", serverType.Architecture))
	rebuilt := must[hcloud.ServerRebuildResult](t)(client.Server.RebuildWithResult(ctx, server, hcloud.ServerRebuildOpts{Image: debian}))
	wait(t, client, rebuilt.Action)
	if got := s.Servers()[0]; got.Image != debian.ID || got.UserData != "#cloud-config\n" || got.Status != "running" {
		t.Errorf("rebuilt: %+v", got)
	}

	protect := must[*hcloud.Action](t)(client.Server.ChangeProtection(ctx, server, hcloud.ServerChangeProtectionOpts{Delete: new(true), Rebuild: new(true)}))
	wait(t, client, protect)
	if _, _, err := client.Server.DeleteWithResult(ctx, server); !hcloud.IsError(err, hcloud.ErrorCodeProtected) {
		t.Errorf("deleting a protected server: %v", err)
	}
	protect = must[*hcloud.Action](t)(client.Server.ChangeProtection(ctx, server, hcloud.ServerChangeProtectionOpts{Delete: new(false), Rebuild: new(false)}))
	wait(t, client, protect)

	snapshot := must[hcloud.ServerCreateImageResult](t)(client.Server.CreateImage(ctx, server, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot, Description: new("backup of web-0")}))
	wait(t, client, snapshot.Action)
	if made := must[*hcloud.Image](t)(client.Image.GetByID(ctx, snapshot.Image.ID)); made.Status != hcloud.ImageStatusAvailable {
		t.Errorf("snapshot %+v", made)
	}

	deleted := must[*hcloud.ServerDeleteResult](t)(client.Server.DeleteWithResult(ctx, server))
	wait(t, client, deleted.Action)
	if gone := must[*hcloud.Server](t)(client.Server.GetByID(ctx, server.ID)); gone != nil {
		t.Errorf("still there: %+v", gone)
	}
	if ips, err := client.PrimaryIP.All(ctx); err != nil || len(ips) != 0 {
		t.Errorf("primary IPs left: %v %v", ips, err)
	}
	if action := must[*hcloud.Action](t)(client.Action.GetByID(ctx, deleted.Action.ID)); action == nil || action.Status != hcloud.ActionStatusSuccess {
		t.Errorf("the action went with its server: %+v", action)
	}
}

// TestPages needs more servers than a page holds.
func TestPages(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	client := serve(t, s, quick())
	for i := range 120 {
		role := []string{"even", "odd"}[i%2]
		must[hcloud.ServerCreateResult](t)(client.Server.Create(t.Context(), hcloud.ServerCreateOpts{
			Name: fmt.Sprintf("s-%d", i), ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"},
			Labels: map[string]string{"role": role},
		}))
	}
	s.ClearCalls()
	all, err := client.Server.All(t.Context())
	if err != nil || len(all) != 120 {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	if calls := s.Calls(); len(calls) != 3 {
		t.Errorf("120 servers took %d calls", len(calls))
	}
	odd, err := client.Server.AllWithOpts(t.Context(), hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{LabelSelector: "role=odd"}})
	if err != nil || len(odd) != 60 {
		t.Errorf("%d odd servers, %v", len(odd), err)
	}
}

// TestCatalog reads everything that the cloud offers.
func TestCatalog(t *testing.T) {
	client := serve(t, hetzner.New(hetzner.Options{}))
	ctx := t.Context()
	types, err := client.ServerType.All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*hcloud.ServerType{}
	for _, serverType := range types {
		byName[serverType.Name] = serverType
	}
	at := func(serverType, location string) *hcloud.ServerTypeLocation {
		for _, l := range byName[serverType].Locations {
			if l.Location.Name == location {
				return &l
			}
		}
		return nil
	}
	now := time.Now()
	switch {
	case at("cax41", "hel1").Available || !at("cax41", "fsn1").Available:
		t.Error("cax41 should be out of stock in hel1 only")
	case at("cax11", "ash") != nil:
		t.Error("arm is offered in Europe only")
	case !at("cx22", "fsn1").IsDeprecated() || !at("cx22", "fsn1").UnavailableAfter().After(now):
		t.Error("cx22 should be deprecated but to be had")
	case !at("cpx11", "fsn1").UnavailableAfter().Before(now) || at("cpx11", "nbg1").IsDeprecated():
		t.Error("cpx11 should have ended in fsn1 only")
	}
	if price := byName["cx23"].Pricings[0].Hourly; price.Net != "0.0056000000" || price.Gross != "0.0066640000000000" {
		t.Errorf("price %+v", price)
	}
	images, err := client.Image.AllWithOpts(ctx, hcloud.ImageListOpts{Name: "ubuntu-20.04"})
	if err != nil || len(images) != 0 {
		t.Errorf("deprecated images are listed: %v %v", images, err)
	}
	images, err = client.Image.AllWithOpts(ctx, hcloud.ImageListOpts{Name: "ubuntu-20.04", IncludeDeprecated: true})
	if err != nil || len(images) != 2 {
		t.Errorf("a name should mean an image of each architecture: %v %v", images, err)
	}
	locations, err := client.Location.All(ctx)
	if err != nil || len(locations) != 6 {
		t.Errorf("locations %v %v", locations, err)
	}
	pricing, _, err := client.Pricing.Get(ctx)
	if err != nil || pricing.Volume.PerGBMonthly.Currency != "EUR" || len(pricing.ServerTypes) != len(types) {
		t.Errorf("pricing %+v %v", pricing, err)
	}
	if volumes, err := client.Volume.All(ctx); err != nil || len(volumes) != 0 {
		t.Errorf("volumes %v %v", volumes, err)
	}
	if isos, err := client.ISO.All(ctx); err != nil || len(isos) != 0 {
		t.Errorf("isos %v %v", isos, err)
	}
	//nolint:staticcheck // the client still has what the API no longer answers, and that answer is the point
	if _, err := client.Datacenter.All(ctx); !hcloud.IsError(err, "deprecated_api_endpoint") {
		t.Errorf("datacenters: %v", err)
	}
}
