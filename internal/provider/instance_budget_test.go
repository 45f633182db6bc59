// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// count counts calls by what they are for.
func count(calls []string) (lists, catalog, changes, other int) {
	for _, c := range calls {
		switch {
		case strings.HasPrefix(c, "GET /v1/servers"):
			lists++
		case strings.HasPrefix(c, "GET /v1/server_types"), strings.HasPrefix(c, "GET /v1/images"), strings.HasPrefix(c, "GET /v1/pricing"),
			strings.HasPrefix(c, "GET /v1/locations"):
			catalog++
		case !strings.HasPrefix(c, "GET "):
			changes++
		default:
			other++
		}
	}
	return lists, catalog, changes, other
}

// TestCallsOfOneInstance: a first plan and apply together make at most 12 calls
// plus polls, an idle plan at most 3, and a new process reads no catalog unless
// something is created or changed (each phase of a step is a new process).
func TestCallsOfOneInstance(t *testing.T) {
	w := newWorldWith(t, hetzneremulator.Options{Boot: 20 * time.Millisecond})
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			// The first apply of tests plans once more before and after; the calls of one
			// plan and one apply are what makes and completes the machine and the reads
			// around them.
			{PreConfig: w.forgetCalls, Config: w.instance(), PlanOnly: true, ExpectNonEmptyPlan: true},
			{
				PreConfig: func() {
					_, catalog, changes, other := count(w.calls())
					// PlanOnly plans twice.
					if catalog > 2*3 || changes > 0 || other > 0 {
						t.Errorf("two plans cost %v", w.calls())
					}
					w.forgetCalls()
				},
				Config: w.instance(),
			},
			{
				PreConfig: func() {
					calls := w.calls()
					lists, _, changes, other := count(calls)
					if changes != 2 || other > 1 {
						t.Errorf("one create costs %d changes and %d other calls besides %d reads of servers: %v", changes, other, lists, calls)
					}
					w.forgetCalls()
				},
				Config: w.instance(), PlanOnly: true,
			},
			{
				PreConfig: func() {
					lists, catalog, changes, other := count(w.calls())
					// PlanOnly plans twice, each with a refresh.
					if lists > 2*3 || catalog+changes+other > 0 {
						t.Errorf("two idle plans cost %v", w.calls())
					}
				},
				Config: w.instance(), PlanOnly: true,
			},
		},
	})
}

// TestRefreshCostsPagesNotObjects: ceil(N/50) + P + 1 (DESIGN.md §7).
func TestRefreshCostsPagesNotObjects(t *testing.T) {
	const n = 51
	w := newWorld(t)
	config := w.pool() + strings.Replace(instanceBlock("web", "", `name = "web-${count.index}"`), "{\n", "{\n  count = 51\n", 1)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: config},
			{PreConfig: w.forgetCalls, RefreshState: true},
			{
				PreConfig: func() {
					// RefreshState refreshes, and plans with another refresh.
					calls := w.calls()
					if most := 2 * ((n+49)/50 + 1 + 1); len(calls) > most {
						t.Errorf("%d calls, at most %d: %v", len(calls), most, calls)
					}
				},
				RefreshState: true,
			},
		},
	})
}
