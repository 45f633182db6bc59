// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// TestUnknownValuesDestroyNothing: what isn't known at plan time and turns out to
// be what it was changes nothing.
func TestUnknownValuesDestroyNothing(t *testing.T) {
	for attribute, value := range map[string]string{"image": "ubuntu-24.04", "offer": "cx23", "region": "fsn1", "name": "web-0"} {
		t.Run(attribute, func(t *testing.T) {
			w := newWorld(t)
			var before hetzneremulator.Server
			config := func(trigger int) string {
				return w.pool() + fmt.Sprintf(`
resource "terraform_data" "value" {
  input            = %q
  triggers_replace = %d
}
`, value, trigger) + instanceBlock("web", "web-0", attribute+" = terraform_data.value.output")
			}
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{
					{Config: config(1)},
					check(func() { before = w.only() }),
					{Config: config(2), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
					check(func() {
						if after := w.only(); after.ID != before.ID {
							t.Errorf("before %+v, after %+v", before, after)
						}
					}),
				},
			})
		})
	}
}

func TestImportThatWouldReplaceIsRefusedAtPlanTime(t *testing.T) {
	w := newWorld(t)
	id := w.makeMachine(poolURI, "web-0").ID
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: w.instance(`offer = "cx33"`) + fmt.Sprintf(`
import {
  to = bettercompute_instance.web
  id = "hetzner-cloud://root/main/web/instances/web-0/%s?token=env://%s"
}
`, id, tokenVariable),
				PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*imported.*offer`),
			},
			{PreConfig: func() { w.only(); w.deleteMachines() }, Config: w.account()},
		},
	})
}

func TestOfferThatTheMachineHasByNowIsRecordedInPlace(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance()},
			{
				PreConfig: func() {
					before = w.only()
					w.resize(before.ID, "cx33")
				},
				Config: w.instance(`offer = "cx33"`), ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{has("offer", text("cx33")), has("power", text("on"))},
			},
			check(func() {
				if after := w.only(); after.ID != before.ID {
					t.Errorf("before %+v, after %+v", before, after)
				}
			}),
		},
	})
}

func TestNetworkLeftOutIsHandsOff(t *testing.T) {
	w := newWorld(t)
	network := w.makeNetwork()
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance(fmt.Sprintf("network_id = %q", network))},
			{Config: w.instance(), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		},
	})
}

// TestFailedReinstallationIsNotRepeated: the disk is wiped once, also when what
// follows fails.
func TestFailedReinstallationIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	rebuilds := func() (n int) {
		for _, c := range w.hetzner.Calls() {
			if c.Method == http.MethodPost && regexp.MustCompile(`/actions/rebuild$`).MatchString(c.Path) {
				n++
			}
		}
		return n
	}
	reinstalled := w.instance(`image = "debian-12"`, `on_image_change = "reinstall"`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance()},
			{
				PreConfig: func() {
					w.fault(emulator.Rule{Service: "hetzner", Method: "PUT", Path: "*", Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever})
				},
				Config: reinstalled, ExpectError: regexp.MustCompile(`PROVIDER_ERROR`),
			},
			{PreConfig: w.hetzner.ClearFaults, Config: reinstalled},
			check(func() {
				if n := rebuilds(); n != 1 {
					t.Errorf("the disk was wiped %d times", n)
				}
			}),
		},
	})
}

func TestReinstallationOfAProtectedMachineIsRefusedAtPlanTime(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance(`deletion_protection = true`)},
			{
				Config:   w.instance(`deletion_protection = true`, `image = "debian-12"`, `on_image_change = "reinstall"`),
				PlanOnly: true, ExpectError: regexp.MustCompile(`INVALID_STATE: `),
			},
			// Lifting it and reinstalling is one apply.
			{Config: w.instance(`deletion_protection = false`, `image = "debian-12"`, `on_image_change = "reinstall"`)},
		},
	})
}

func TestRecordedChangesAreChecked(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance()},
			{
				Config:   w.instance(`labels = { "better-compute.io/claim" = "mine" }`),
				PlanOnly: true, ExpectError: regexp.MustCompile(`INVALID_INPUT: `),
			},
		},
	})
}

func TestSoldOutOfferDoesNotKeepALostStateFromBeingRecovered(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance()},
			check(func() { before = w.only() }),
			{Config: w.forgotten()},
			{
				PreConfig: func() { w.hetzner.SetStock("cx23", "fsn1", false) },
				Config:    w.pool("adopt = true") + instanceBlock("web", "web-0"),
			},
			check(func() {
				if after := w.only(); after.ID != before.ID {
					t.Errorf("before %+v, after %+v", before, after)
				}
			}),
		},
	})
}
