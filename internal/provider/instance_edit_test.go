// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// posted counts the calls of an action of a server.
func (w *world) posted(action string) (n int) {
	for _, c := range w.hetzner.Calls() {
		if c.Method == http.MethodPost && strings.HasSuffix(c.Path, "/actions/"+action) {
			n++
		}
	}
	return n
}

func TestInstanceIsResizedInPlace(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance()},
			check(func() { before = w.only(); w.forgetCalls() }),
			{
				Config: w.instance(`offer = "cx33"`), ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{has("offer", text("cx33")), has("offer_actual", text("cx33")), has("state", text("running"))},
			},
			check(func() {
				after := w.only()
				if after.ID != before.ID || after.ServerType != "cx33" || after.Status != "running" || after.Disk != before.Disk {
					t.Errorf("before %+v, after %+v", before, after)
				}
				if w.posted("shutdown") != 1 || w.posted("poweroff") != 0 || w.posted("change_type") != 1 {
					t.Errorf("calls %v", w.hetzner.Calls())
				}
			}),
			{Config: w.instance(`offer = "cx33"`), PlanOnly: true},
			{Config: w.instance(`offer = "cax11"`), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_INPUT: .*architecture`)},
			// It kept its disk, so it can go back.
			{Config: w.instance(), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
			{Config: w.instance(`offer = "cx33"`, `resize_disk = true`), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
			{Config: w.instance(`resize_disk = true`), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_INPUT: .*disk`)},
		},
	})
}

func TestInstanceIsRenamedWithItsVolume(t *testing.T) {
	w := newWorld(t)
	config := func(name string) string {
		return w.pool() + instanceBlock("web", name) + `
resource "bettercompute_provider_volume" "data" {
  name                 = "data"
  pool                 = bettercompute_pool.web.uri
  size_gib             = 10
  delete_with_instance = true
  instances            = [bettercompute_instance.web.uri]
}
`
	}
	var before hetzneremulator.Server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: config("web-0")},
			check(func() { before = w.only() }),
			{
				Config: config("web-1"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionUpdate),
						plancheck.ExpectResourceAction("bettercompute_provider_volume.data", plancheck.ResourceActionUpdate),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			check(func() {
				after := w.only()
				if after.ID != before.ID || after.Name != "web-1" || after.Labels["better-compute.io/claim"] != before.Labels["better-compute.io/claim"] ||
					after.Labels["better-compute.io/idempotency-key"] == before.Labels["better-compute.io/idempotency-key"] {
					t.Errorf("before %+v, after %+v", before, after)
				}
			}),
		},
	})
}

func TestNamesThatAreTakenAreRefusedAtPlanTime(t *testing.T) {
	w := newWorld(t)
	both := func(first, second string) string {
		return w.pool() + instanceBlock("web", first) + instanceBlock("other", second)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: both("web-0", "web-1")},
			{Config: both("web-1", "web-0"), PlanOnly: true, ExpectError: regexp.MustCompile(`CONFLICT: `)},
			{Config: both("web-1", "web-2"), PlanOnly: true, ExpectError: regexp.MustCompile(`CONFLICT: `)},
		},
	})
}

func TestFallbackIsNoReasonForADifference(t *testing.T) {
	w := newWorld(t)
	fallbacks := `offer_fallbacks = ["cx33"]`
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{
				PreConfig: func() { w.hetzner.SetStock("cx23", "fsn1", false) },
				Config:    w.instance(), PlanOnly: true, ExpectError: regexp.MustCompile(`CAPACITY_UNAVAILABLE: `),
			},
			{Config: w.instance(`offer_fallbacks = ["nope-1"]`), PlanOnly: true, ExpectError: regexp.MustCompile(`INVALID_INPUT: `)},
			{
				Config:            w.instance(fallbacks),
				ConfigStateChecks: []statecheck.StateCheck{has("offer", text("cx23")), has("offer_actual", text("cx33"))},
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			// To write down what it is costs no call, and no restart.
			{PreConfig: w.forgetCalls, Config: w.instance(`offer = "cx33"`), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
			check(func() {
				if n := w.posted("change_type") + w.posted("shutdown"); n != 0 {
					t.Errorf("calls %v", w.hetzner.Calls())
				}
			}),
		},
	})
}

// TestProtectionOfAnotherStateIsSeen: the machine is protected in the cloud, and this
// state says nothing about it.
func TestProtectionOfAnotherStateIsSeen(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(`deletion_protection = true`)},
			{Config: w.instance()}, // hands off: it stays
			{Config: w.instance(`region = "nbg1"`), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*deletion\s+protection`)},
			{Config: w.pool(), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*deletion\s+protection`)},
			{Config: w.instance(`deletion_protection = false`)},
		},
	})
}

// TestLabelsOfOthersStay: only those that are from here are changed.
func TestLabelsOfOthersStay(t *testing.T) {
	w := newWorld(t)
	labels := func(want map[string]string) resource.TestStep {
		return check(func() {
			own := map[string]string{}
			for k, v := range w.only().Labels {
				if !strings.HasPrefix(k, "better-compute.io/") {
					own[k] = v
				}
			}
			if fmt.Sprint(own) != fmt.Sprint(want) {
				t.Errorf("labels %v, want %v", own, want)
			}
		})
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(`labels = { role = "web", tier = "one" }`)},
			{
				PreConfig: func() {
					s := w.only()
					s.Labels["theirs"] = "x"
					w.hetzner.SetLabels(s.ID, s.Labels)
				},
				Config: w.instance(`labels = { role = "db", new = "" }`),
			},
			labels(map[string]string{"role": "db", "new": "", "theirs": "x"}),
			{Config: w.instance()},
			labels(map[string]string{"role": "db", "new": "", "theirs": "x"}),
			{Config: w.instance(`labels = { role = "db" }`)},
			{Config: w.instance(`labels = {}`)},
			labels(map[string]string{"new": "", "theirs": "x"}),
		},
	})
}
