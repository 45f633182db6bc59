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
				Config: w.instance(`region = "nbg1"`) + fmt.Sprintf(`
import {
  to = bettercompute_instance.web
  id = "hetzner-cloud://root/main/web/instances/web-0/%s?token=env://%s"
}
`, id, tokenVariable),
				PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*imported.*region`),
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

// TestReplacementThatCannotBeMadeIsRefusedAtPlanTime: the old machine would be
// destroyed first. A resize that can't be made would only cost a restart.
func TestReplacementThatCannotBeMadeIsRefusedAtPlanTime(t *testing.T) {
	for name, test := range map[string]struct {
		lines  []string
		pool   []string
		before func(w *world)
		want   string
	}{
		"unknown image":      {lines: []string{`image = "nope-1"`}, want: `INVALID_INPUT: `},
		"other architecture": {lines: []string{`offer = "cax11"`, `image = "161547269"`}, want: `INVALID_INPUT: `},
		"unknown offer":      {lines: []string{`offer = "nope-1"`}, want: `INVALID_INPUT: `},
		"unknown region":     {lines: []string{`region = "mars"`}, want: `INVALID_INPUT: `},
		"sold out": {
			lines: []string{`offer = "cx33"`}, before: func(w *world) { w.hetzner.SetStock("cx33", "fsn1", false) }, want: `CAPACITY_UNAVAILABLE: `,
		},
		"over the pool's price": {lines: []string{`offer = "cx33"`}, pool: []string{"limits = { price_per_hour = 0.0067 }"}, want: `QUOTA_EXCEEDED: `},
		"over the pool's number": {
			lines: []string{`region = "nbg1"`}, pool: []string{"limits = { instances = 0 }"}, want: `QUOTA_EXCEEDED: `,
		},
		"sold out, with adopt": {
			lines: []string{`offer = "cx33"`}, pool: []string{"adopt = true"},
			before: func(w *world) { w.hetzner.SetStock("cx33", "fsn1", false) }, want: `CAPACITY_UNAVAILABLE: `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{
					{Config: w.instance()},
					{
						PreConfig: func() {
							if test.before != nil {
								test.before(w)
							}
						},
						Config:   w.pool(test.pool...) + instanceBlock("web", "web-0", test.lines...),
						PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)` + test.want),
					},
				},
			})
		})
	}
}

func TestImportIsNotReinstalledBeforeItIsTakenOver(t *testing.T) {
	w := newWorld(t)
	id := w.makeMachine(poolURI, "web-0").ID
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				PreConfig: func() {
					s := w.only()
					s.Labels["better-compute.io/digest"] = "i000000"
					w.hetzner.SetLabels(s.ID, s.Labels)
				},
				Config: w.instance(`image = "debian-12"`, `on_image_change = "reinstall"`) + fmt.Sprintf(`
import {
  to = bettercompute_instance.web
  id = "hetzner-cloud://root/main/web/instances/web-0/%s?token=env://%s"
}
`, id, tokenVariable),
				PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*imported.*reinstalled`),
			},
			{PreConfig: func() { w.only(); w.deleteMachines() }, Config: w.account()},
		},
	})
}

// TestReplacementBesideARemovalIsNoQuestionOfLimits: what else the plan adds is
// counted when it is made, not held against the replacement.
func TestReplacementBesideARemovalIsNoQuestionOfLimits(t *testing.T) {
	w := newWorld(t)
	pool := w.pool("limits = { instances = 2 }")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: pool + instanceBlock("web", "web-0") + instanceBlock("old", "old-0")},
			{
				Config:   pool + instanceBlock("web", "web-0", `region = "nbg1"`) + instanceBlock("new", "new-0"),
				PlanOnly: true, ExpectNonEmptyPlan: true,
			},
		},
	})
}
