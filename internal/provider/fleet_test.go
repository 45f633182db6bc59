// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// fleet is one configuration for both clouds: what differs between them is data,
// the blocks are the same.
func fleet(machines int, volume string) string {
	return fmt.Sprintf(`
resource "bettercompute_provider_account" "hetzner" {
  name = "main"
  hetzner_cloud = { token = %[1]q }
}
resource "bettercompute_provider_account" "digitalocean" {
  name = "main"
  digitalocean = {
    token  = %[1]q
    region = "fra1"
  }
}
locals {
  clouds = {
    hetzner      = { account = bettercompute_provider_account.hetzner.uri, offer = "cx23", image = "debian-12" }
    digitalocean = { account = bettercompute_provider_account.digitalocean.uri, offer = "s-1vcpu-1gb", image = "debian-12-x64" }
  }
  nodes = merge([for cloud, c in local.clouds : { for i in range(%[2]d) : "${cloud}-${i}" => merge(c, { cloud = cloud }) }]...)
}
resource "bettercompute_pool" "web" {
  for_each         = local.clouds
  name             = "web"
  provider_account = each.value.account
}
resource "bettercompute_instance" "web" {
  for_each = local.nodes
  name     = each.key
  pool     = bettercompute_pool.web[each.value.cloud].uri
  offer    = each.value.offer
  image    = each.value.image
}
resource "bettercompute_provider_volume" "data" {
  for_each  = local.nodes
  name      = each.key
  pool      = bettercompute_pool.web[each.value.cloud].uri
  instances = [bettercompute_instance.web[each.key].uri]
  %[3]s
}
`, "env://"+tokenVariable, machines, volume)
}

// drift switches a machine off and detaches another's volume, in both clouds behind
// the provider's back.
func (o *ocean) drift() {
	o.t.Helper()
	done := 0
	for _, m := range o.hetzner.Servers() {
		if m.Name == "hetzner-0" && o.hetzner.SetPower(m.ID, false) {
			done++
		}
	}
	for _, v := range o.hetzner.Volumes() {
		if v.Name == "hetzner-1" && o.hetzner.AttachVolume(v.ID, 0) {
			done++
		}
	}
	for _, m := range o.cloud.Droplets() {
		if m.Name == "digitalocean-0" && o.cloud.SetPower(m.ID, false) {
			done++
		}
	}
	for _, v := range o.cloud.Volumes() {
		if v.Name == "digitalocean-1" && o.cloud.AttachVolume(v.ID, 0) {
			done++
		}
	}
	if done != 4 {
		o.t.Fatalf("only %d of 4 changes were made", done)
	}
}

// cloudCheck looks at the clouds. A test of terraform-plugin-testing whose resources
// have for_each can have no Check and no CheckDestroy, and must end with nothing.
type cloudCheck func() error

func (c cloudCheck) CheckState(_ context.Context, _ statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	resp.Error = c()
}

func (o *ocean) nothingLeft() error {
	for name, objects := range map[string]emulator.Objects{"hetzner": o.hetzner.Objects(), "digitalocean": o.cloud.Objects()} {
		if len(objects.Machines)+len(objects.Volumes)+len(objects.Snapshots) > 0 {
			return fmt.Errorf("%s still has %+v", name, objects)
		}
	}
	return nil
}

// met tells how many calls that change something were answered with a status; 0 is
// an answer that was lost.
func met(calls []emulator.Call, status int) (n int) {
	for _, c := range calls {
		if c.Method == http.MethodPost && c.Status == status {
			n++
		}
	}
	return n
}

func (o *ocean) has(machines int) []statecheck.StateCheck {
	return []statecheck.StateCheck{cloudCheck(func() error {
		for name, objects := range map[string]emulator.Objects{"hetzner": o.hetzner.Objects(), "digitalocean": o.cloud.Objects()} {
			if len(objects.Machines) != machines || len(objects.Volumes) != machines {
				return fmt.Errorf("%s has %d machines and %d volumes; want %d of each", name, len(objects.Machines), len(objects.Volumes), machines)
			}
		}
		return nil
	})}
}

// takenOut is a last step that takes everything out of the configuration.
func (o *ocean) takenOut() resource.TestStep {
	return resource.TestStep{Config: "locals {}", ConfigStateChecks: []statecheck.StateCheck{cloudCheck(o.nothingLeft)}}
}

// TestFleetOnTwoClouds applies, idles, drifts, heals, grows and destroys.
func TestFleetOnTwoClouds(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	const machines = 3
	change := func(action plancheck.ResourceActionType, keys ...string) (checks []plancheck.PlanCheck) {
		for _, key := range keys {
			checks = append(checks, plancheck.ExpectResourceAction(key, action))
		}
		return checks
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: fleet(machines, "size_gib = 10"), ConfigStateChecks: o.has(machines)},
			{
				Config: fleet(machines, "size_gib = 10"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			{
				PreConfig: o.drift,
				Config:    fleet(machines, "size_gib = 10"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: change(plancheck.ResourceActionUpdate,
						`bettercompute_instance.web["hetzner-0"]`, `bettercompute_instance.web["digitalocean-0"]`,
						`bettercompute_provider_volume.data["hetzner-1"]`, `bettercompute_provider_volume.data["digitalocean-1"]`),
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			{
				Config: fleet(machines, "size_gib = 20"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             change(plancheck.ResourceActionUpdate, `bettercompute_provider_volume.data["hetzner-2"]`),
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			{Config: fleet(1, "size_gib = 20"), ConfigStateChecks: o.has(1)},
			o.takenOut(),
		},
	})
}

// TestNothingTwiceOnTwoClouds loses the answer of each creating call of both clouds,
// has lists lag behind, and has attachments meet pending events and locks: the user
// sees no error, and the clouds hold one object each.
func TestNothingTwiceOnTwoClouds(t *testing.T) {
	for i, making := range []struct{ service, path string }{
		{"hetzner", "/servers"}, {"hetzner", "/volumes"},
		{"digitalocean", "/droplets"}, {"digitalocean", "/volumes"},
	} {
		t.Run(strconv.Itoa(i)+" "+making.service+making.path, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			clouds := map[string]interface {
				AddFault(rule emulator.Rule) error
			}{"hetzner": o.hetzner, "digitalocean": o.cloud}
			// 5 s at the tests' time scale.
			lag := emulator.Duration(5 * time.Second / 100)
			lose := emulator.Rule{Method: "POST", Path: making.path, Kind: emulator.KindLoseAnswer, Nth: 1, Times: 2}
			if err := clouds[making.service].AddFault(lose); err != nil {
				t.Fatal(err)
			}
			for service, rules := range map[string][]emulator.Rule{
				"hetzner": {
					{Method: "GET", Path: "/servers", Kind: emulator.KindHideFromLists, Delay: lag, Times: emulator.Forever},
					{Method: "GET", Path: "/volumes", Kind: emulator.KindHideFromLists, Delay: lag, Times: emulator.Forever},
					{Method: "POST", Path: "/volumes/*/actions/attach", Kind: emulator.KindLocked, Nth: 1, Times: 2},
				},
				"digitalocean": {
					{Method: "GET", Path: "/droplets", Kind: emulator.KindHideFromLists, Delay: lag, Times: emulator.Forever},
					{Method: "GET", Path: "/volumes", Kind: emulator.KindHideFromLists, Delay: lag, Times: emulator.Forever},
					{Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindPendingEvent, Nth: 1, Times: 2},
				},
			} {
				for _, rule := range rules {
					if err := clouds[service].AddFault(rule); err != nil {
						t.Fatal(err)
					}
				}
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				Steps: []resource.TestStep{
					{
						Config:            fleet(2, "size_gib = 10"),
						ConfigStateChecks: o.has(2),
						ConfigPlanChecks: resource.ConfigPlanChecks{
							PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
						},
					},
					o.takenOut(),
				},
			})
			lost := met(o.hetzner.Calls(), 0) + met(o.cloud.Calls(), 0)
			locked, pending := met(o.hetzner.Calls(), http.StatusLocked), met(o.cloud.Calls(), http.StatusUnprocessableEntity)
			if lost != 2 || locked != 2 || pending != 2 {
				t.Errorf("%d answers were lost, %d calls met a lock, %d a pending event; the case needs 2 of each", lost, locked, pending)
			}
		})
	}
}
