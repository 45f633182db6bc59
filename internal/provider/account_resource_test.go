// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const accountResource = "bettercompute_provider_account.main"

func TestAccountKnownInTheFirstPlan(t *testing.T) {
	w := newWorld(t)
	id := reference.AccountID("root", "hetzner-cloud", "main")
	known := func(name string, value knownvalue.Check) plancheck.PlanCheck {
		return plancheck.ExpectKnownValue(accountResource, tfjsonpath.New(name), value)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: w.account(),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					known("id", knownvalue.StringExact(id)),
					known("uri", knownvalue.StringExact(accountURI)),
					known("kind", knownvalue.StringExact("hetzner-cloud")),
					known("tenant_id", knownvalue.StringExact("root")),
					known("version", knownvalue.Int64Exact(1)),
					known("capabilities", knownvalue.ListPartial(map[int]knownvalue.Check{2: knownvalue.StringExact("list")})),
				}},
			},
			// The default spelled out is recorded, and is no change of the account.
			{
				Config: w.account(`location = "fsn1"`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(accountResource, plancheck.ResourceActionUpdate),
					known("uri", knownvalue.StringExact(accountURI)),
					known("version", knownvalue.Int64Exact(1)),
				}},
			},
			{
				Config: w.account(`location = "hel1"`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(accountResource, plancheck.ResourceActionUpdate),
					known("id", knownvalue.StringExact(id)),
					known("uri", knownvalue.StringExact("hetzner-cloud://root/main?location=hel1&token=env://"+tokenVariable)),
					known("version", knownvalue.Int64Exact(2)),
				}},
			},
			{
				ResourceName: accountResource, ImportState: true, ImportStateVerify: true,
				ImportStateId:           "hetzner-cloud://root/main?location=hel1&token=env://" + tokenVariable,
				ImportStateVerifyIgnore: []string{"version"},
			},
			// Without machines another name is another account.
			{
				Config: accountNamed("other"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(accountResource, plancheck.ResourceActionDestroyBeforeCreate),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("id"), knownvalue.StringExact(reference.AccountID("root", "hetzner-cloud", "other"))),
				},
			},
		},
	})
}

func TestAccountBadInput(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"no cloud":     {`resource "bettercompute_provider_account" "main" { name = "main" }`, `INVALID_INPUT: The account configures no cloud`},
		"capital name": {accountNamed("Main"), `INVALID_INPUT: An account name is`},
		"http endpoint": {
			newWorld(t).account(`endpoint = "http://example.com/v1"`),
			`hetzner_cloud\.endpoint|must\s+be\s+https`,
		},
		"no token": {
			`resource "bettercompute_provider_account" "main" {
  name = "main"
  hetzner_cloud = {
    location = "fsn1"
  }
}`, `token is required`,
		},
		"unknown location": {newWorld(t).account(`location = "mars"`), `"mars" is not a known location`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps:                    []resource.TestStep{{Config: test.config, ExpectError: regexp.MustCompile(test.want), PlanOnly: true}},
			})
			if calls := w.calls(); len(calls) != 0 {
				t.Errorf("bad input led to calls: %v", calls)
			}
		})
	}
}
