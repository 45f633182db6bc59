// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// lose deletes the volume behind the provider's back.
func (w *world) lose() {
	w.t.Helper()
	w.hetzner.DeleteVolume(w.onlyVolume().ID)
}

// untouched fails when volumes were changed since the last [world.forgetCalls].
func (w *world) untouched() {
	w.t.Helper()
	if writes := w.writes(); len(writes) > 0 {
		w.t.Errorf("a volume that is gone cost the calls %v", writes)
	}
}

// "One deleted at the provider outside better-compute goes to error and is never
// created again (its data is gone; delete it)": whatever is edited, the plan makes
// nothing, and destroying it makes no call that fails.
func TestVolumeLostIsNeverMadeAgain(t *testing.T) {
	gone := []statecheck.StateCheck{volumeHas("state", text("error")), volumeHas("message", knownvalue.StringRegexp(regexp.MustCompile(`gone`)))}
	for name, lines := range map[string][]string{
		"nothing":              nil,
		"name":                 {`name = "other"`},
		"size":                 {`size_gib = 50`},
		"smaller":              {`size_gib = 5`},
		"region":               {`region = "nbg1"`},
		"filesystem":           {`filesystem = "xfs"`},
		"no filesystem":        {`filesystem = null`},
		"instances":            {`instances = []`},
		"no instances":         {`instances = null`},
		"delete_with_instance": {`delete_with_instance = false`},
		"labels":               {`labels = { role = "db" }`},
		"description":          {`description = "data"`},
		"timeouts":             {`timeouts = { create = "5m" }`},
		"all": {
			`name = "other"`, `size_gib = 50`, `filesystem = "xfs"`, `instances = null`, `delete_with_instance = false`,
			`labels = { role = "db" }`, `timeouts = { create = "5m" }`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			base := []string{`filesystem = "ext4"`, `delete_with_instance = true`}
			edited := w.instance() + volumeBlock("data", "data", replaceLines(append(base, instanceURI), lines)...)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				CheckDestroy: func(s *terraform.State) error {
					for _, c := range w.hetzner.Calls() {
						if c.Status >= http.StatusBadRequest && c.Method != http.MethodGet {
							t.Errorf("a call failed: %+v", c)
						}
					}
					return w.noVolumes(s)
				},
				Steps: []resource.TestStep{
					{Config: w.attached(base...)},
					{
						PreConfig: func() { w.lose(); w.forgetCalls() }, Config: edited, ConfigStateChecks: gone,
						ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{notReplaced{}}, PostApplyPostRefresh: []plancheck.PlanCheck{notReplaced{}}},
					},
					check(func() {
						w.untouched()
						if volumes := w.hetzner.Volumes(); len(volumes) > 0 {
							t.Errorf("the cloud has %+v", volumes)
						}
					}),
					// Other resources apply.
					{Config: edited + instanceBlock("second", "web-1"), ConfigStateChecks: gone},
				},
			})
		})
	}
}

// A volume that is gone is destroyed without a call that fails.
func TestVolumeLostIsDestroyedWithoutACall(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{PreConfig: w.lose, Config: w.volume(), ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("error"))}},
			{
				PreConfig: w.forgetCalls, Config: w.pool(),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionDestroy), after(w.forgetCalls),
				}},
			},
			check(func() {
				for _, c := range w.calls() {
					if c != "GET /v1/servers" && c != "GET /v1/volumes" && c != "GET /v1/locations" {
						t.Errorf("destroying made the call %s", c)
					}
				}
			}),
		},
	})
}

// The way out besides removal: a new volume by -replace.
func TestVolumeLostIsMadeAnewByReplace(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached()},
			{PreConfig: w.lose, Config: w.attached(), ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("error"))}},
			{Config: w.attached(), Taint: []string{volumeResource}, ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("ready"))}},
			check(w.on),
		},
	})
}

// A volume that a later refresh sees again is itself again.
func TestVolumeSeenAgainIsItselfAgain(t *testing.T) {
	w := newWorld(t)
	hidden := func(on bool) func() {
		return func() {
			w.hetzner.ClearFaults()
			if on {
				w.fault(emulator.Rule{Service: "hetzner", Method: "GET", Path: "/v1/volumes", Kind: emulator.KindHideFromLists, Times: emulator.Forever})
				w.fault(emulator.Rule{
					Service: "hetzner", Method: "GET", Path: "/v1/volumes/*", Kind: emulator.KindStatus, Status: http.StatusNotFound, Times: emulator.Forever,
				})
			}
		}
	}
	var before hetzneremulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume()},
			check(func() { before = w.onlyVolume() }),
			{PreConfig: hidden(true), Config: w.volume(), ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("error"))}},
			{
				PreConfig: hidden(false), Config: w.volume(),
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("ready")), volumeHas("message", knownvalue.Null())},
			},
			check(func() {
				if v := w.onlyVolume(); v.ID != before.ID {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
		},
	})
}

// Credentials that don't work say nothing about a volume: what is recorded stays.
func TestVolumeOfAnUnreadableAccountKeepsItsState(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{PreConfig: func() { w.refuse(http.StatusUnauthorized) }, Config: w.volume(), PlanOnly: true},
			{PreConfig: w.hetzner.ClearFaults, Config: w.volume(), ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("ready"))}},
		},
	})
}

// delete_with_instance: the loss is in the plan, in the right order, without an error,
// whatever is edited.
func TestVolumeThatGoesWithItsInstanceIsReplacedWithIt(t *testing.T) {
	for name, config := range map[string]func(w *world) string{
		"moved": func(w *world) string {
			return w.instance() + instanceBlock("second", "web-1") +
				volumeBlock("data", "data", `delete_with_instance = true`, `instances = [bettercompute_instance.second.uri]`)
		},
		"moved, and the instance removed": func(w *world) string {
			return w.pool() + instanceBlock("second", "web-1") +
				volumeBlock("data", "data", `delete_with_instance = true`, `instances = [bettercompute_instance.second.uri]`)
		},
		"taken from it": func(w *world) string {
			return w.instance() + instanceBlock("second", "web-1") + volumeBlock("data", "data", `delete_with_instance = true`, `instances = []`)
		},
		"taken from it, and the instance removed": func(w *world) string {
			return w.pool() + instanceBlock("second", "web-1") + volumeBlock("data", "data", `delete_with_instance = true`)
		},
		"replaced": func(w *world) string {
			return w.instance(`image = "debian-12"`) + instanceBlock("second", "web-1") + volumeBlock("data", "data", `delete_with_instance = true`, instanceURI)
		},
		"replaced, and the wish withdrawn too late": func(w *world) string {
			return w.instance(`image = "debian-12"`) + instanceBlock("second", "web-1") + volumeBlock("data", "data", instanceURI)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var before hetzneremulator.Volume
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				CheckDestroy:             w.noVolumes,
				Steps: []resource.TestStep{
					{Config: w.attached(`delete_with_instance = true`) + instanceBlock("second", "web-1")},
					check(func() { before = w.onlyVolume() }),
					{Config: config(w), ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionDestroyBeforeCreate),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					}},
					check(func() {
						if v := w.onlyVolume(); v.ID == before.ID {
							t.Errorf("the volume is still %+v", v)
						}
					}),
				},
			})
		})
	}
}

// "Deletes the volume with the instance it is attached to": both blocks removed, and
// an instance whose volume is in no state.
func TestVolumeGoesWithItsInstance(t *testing.T) {
	w := newWorld(t)
	forgotten := w.instance() + `
removed {
  from = bettercompute_provider_volume.data
  lifecycle {
    destroy = false
  }
}
`
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached(`delete_with_instance = true`)},
			{Config: w.pool()},
			{Config: w.attached(`delete_with_instance = true`)},
			{Config: forgotten},
			check(w.on),
			{Config: w.pool()},
			{PreConfig: func() {
				if volumes := w.hetzner.Volumes(); len(volumes) > 0 {
					t.Errorf("the cloud has %+v", volumes)
				}
			}, Config: w.pool()},
		},
	})
}

// delete_with_instance = false, applied alone first, keeps the data.
func TestVolumeIsKeptByWithdrawingDeleteWithInstanceFirst(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached(`delete_with_instance = true`)},
			check(func() { before = w.onlyVolume() }),
			{Config: w.attached(), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			{Config: w.instance(`image = "debian-12"`) + volumeBlock("data", "data", instanceURI), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			check(func() {
				w.on()
				if v := w.onlyVolume(); v.ID != before.ID {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
			// Attaching a volume that goes with instances is in place, and so is the wish.
			{Config: w.instance(`image = "debian-12"`) + volumeBlock("data", "data", `instances = []`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			{
				Config:           w.instance(`image = "debian-12"`) + volumeBlock("data", "data", `instances = []`, `delete_with_instance = true`),
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
			},
			{
				Config:           w.instance(`image = "debian-12"`) + volumeBlock("data", "data", instanceURI, `delete_with_instance = true`),
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
			},
			check(func() {
				if v := w.onlyVolume(); v.ID != before.ID {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
		},
	})
}
