// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const poolResource = "bettercompute_pool.web"

func TestPool(t *testing.T) {
	w := newWorld(t)
	id := reference.PoolID(reference.AccountID("root", "hetzner-cloud", "main"), "web")
	known := func(name string, value knownvalue.Check) plancheck.PlanCheck {
		return plancheck.ExpectKnownValue(poolResource, tfjsonpath.New(name), value)
	}
	const limited = "hetzner-cloud://root/main/web?pool.adopt=true&pool.limits.disk_gib=100&pool.limits.instances=3" +
		"&pool.limits.price_per_hour=0.1&token=env://" + tokenVariable
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: w.pool(),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					known("id", knownvalue.StringExact(id)),
					known("uri", knownvalue.StringExact(poolURI)),
					known("class", knownvalue.StringExact("provider")),
					known("agent", knownvalue.StringExact("none")),
					known("adopt", knownvalue.Bool(false)),
				}},
			},
			{
				Config: w.pool(`adopt = true`, `limits = { instances = 3, disk_gib = 100, price_per_hour = 0.1 }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(poolResource, plancheck.ResourceActionUpdate),
					known("id", knownvalue.StringExact(id)),
					known("uri", knownvalue.StringExact(limited)),
				}},
			},
			// A decimal from a uri is the decimal of a configuration.
			{ResourceName: poolResource, ImportState: true, ImportStateVerify: true, ImportStateId: limited},
			// Another configuration of the account changes the uri, in place.
			{
				Config: w.account(`location = "hel1"`) + `
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
}`,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(poolResource, plancheck.ResourceActionUpdate),
					known("uri", knownvalue.StringExact("hetzner-cloud://root/main/web?location=hel1&token=env://"+tokenVariable)),
				}},
			},
			// Another account, here an empty pool's, is another pool.
			{
				Config: accountNamed("other") + `
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
}`,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(poolResource, plancheck.ResourceActionDestroyBeforeCreate),
				}},
			},
		},
	})
}

func TestPoolFlavors(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config:      w.pool(`flavors = { small = "cx32x", big = "cx53" }`),
				ExpectError: regexp.MustCompile(`(?s)INVALID_INPUT:.*cx32x.*cx33`),
			},
			{Config: w.pool(`flavors = { small = "cx23", big = "cx53" }`)},
			// A withdrawn offer breaks no plan that doesn't touch it.
			{
				PreConfig: func() {
					w.hetzner.Withdraw("cx23")
					w.forgetCalls()
				},
				Config:           w.pool(`flavors = { small = "cx23", big = "cx53" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			{
				PreConfig: func() {
					if calls := w.calls(); len(calls) != 0 {
						t.Errorf("an idle plan of account and pool made calls: %v", calls)
					}
				},
				Config:      w.pool(`flavors = { small = "cx23", other = "cx23" }`),
				ExpectError: regexp.MustCompile(`INVALID_INPUT:`),
			},
		},
	})
}

func TestPoolWrongReferences(t *testing.T) {
	for name, test := range map[string]struct{ account, want string }{
		"id":          {reference.AccountID("root", "hetzner-cloud", "main"), `provider_account: This is the id of an account, not a\s+uri`},
		"pool's uri":  {poolURI, `provider_account: This is the uri of a pool`},
		"empty":       {"", `provider_account: The uri is empty`},
		"no uri":      {"main", `provider_account: This is not a uri`},
		"other cloud": {"hetzner-clout://root/main", `provider_account: The uri's scheme "hetzner-clout" is no\s+cloud that is\s+known`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{{
					Config:      `resource "bettercompute_pool" "web" {` + "\n" + `name = "web"` + "\n" + `provider_account = "` + test.account + `"` + "\n}",
					ExpectError: regexp.MustCompile(`INVALID_INPUT: ` + test.want), PlanOnly: true,
				}},
			})
		})
	}
}

// What a plan doesn't know replaces nothing; where it turns out to be another
// account, the apply ends before anything happens, in the core's words.
func TestPoolUnknownAccount(t *testing.T) {
	w := newWorld(t)
	pool := func(value string) string {
		return w.account() + `
resource "terraform_data" "uri" {
  input = "` + value + `"
}
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = terraform_data.uri.output
}`
	}
	update := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(poolResource, plancheck.ResourceActionUpdate),
		plancheck.ExpectUnknownValue(poolResource, tfjsonpath.New("uri")),
	}}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: pool(accountURI),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectUnknownValue(poolResource, tfjsonpath.New("id")),
				}},
			},
			{
				Config:           pool("hetzner-cloud://root/main?location=hel1&token=env://" + tokenVariable),
				ConfigPlanChecks: update,
			},
			{
				Config:           pool("hetzner-cloud://root/other?token=env://" + tokenVariable),
				ConfigPlanChecks: update,
				ExpectError:      regexp.MustCompile(`inconsistent final plan`),
			},
		},
	})
}
