// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// accountWith is an account whose token is another reference.
func accountWith(token string) string {
	return fmt.Sprintf(`
resource "bettercompute_provider_account" "main" {
  name = "main"
  hetzner_cloud = {
    token = %q
  }
}
`, token)
}

// Creating an account makes one call, an idle plan none, and a change of its
// configuration three more: one proves it, and two list what the old one shows,
// machines first.
func TestAccountProvesOnce(t *testing.T) {
	w := newWorld(t)
	expect := func(step string, want ...string) func() {
		return func() {
			if got := w.calls(); !slices.Equal(got, want) {
				t.Errorf("%s made %v, want %v", step, got, want)
			}
			w.forgetCalls()
		}
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			{PreConfig: expect("creation", "GET /v1/servers"), Config: w.pool(), PlanOnly: true},
			{PreConfig: expect("an idle plan"), Config: w.account(`location = "hel1"`) + poolBlock},
			{PreConfig: expect("a change", "GET /v1/servers", "GET /v1/servers", "GET /v1/volumes"), Config: w.account(`location = "hel1"`) + poolBlock, PlanOnly: true},
		},
	})
}

const poolBlock = `
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
}
`

func TestUnresolvableSecret(t *testing.T) {
	w := newWorld(t)
	const missing = "env://BETTERCOMPUTE_TEST_NO_SUCH_VARIABLE"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			// The plan goes through, unchecked, with all that is known without a cloud.
			{
				Config:   accountWith(missing) + poolBlock,
				PlanOnly: true, ExpectNonEmptyPlan: true,
			},
			{
				Config:      accountWith(missing),
				ExpectError: regexp.MustCompile(`INVALID_CONFIG: ` + missing + ` can't\s+be\s+resolved`),
			},
			{
				PreConfig: func() {
					if calls := w.calls(); len(calls) != 0 {
						t.Errorf("an unresolvable secret led to calls: %v", calls)
					}
				},
				Config:      accountWith("secret://root/main"),
				ExpectError: regexp.MustCompile(`INVALID_CONFIG: secret://root/main can't\s+be\s+resolved`),
			},
			// The value from the provider block, and in no state.
			{
				Config: `provider "bettercompute" {
  secrets = { main = "` + token + `" }
}` + accountWith("secret://root/main") + poolBlock,
				Check: noToken,
			},
		},
	})
}

func noToken(s *terraform.State) error {
	if strings.Contains(s.String(), token) {
		return fmt.Errorf("the token is in the state")
	}
	return nil
}

func TestRefusedToken(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.account()},
			// A change whose credentials fail is not recorded.
			{
				PreConfig:   func() { w.refuse(401) },
				Config:      w.account(`location = "hel1"`),
				ExpectError: regexp.MustCompile(`PROVIDER_ERROR:`),
			},
			{
				Config: w.account(), PlanOnly: true,
			},
		},
	})
}

// A provider block whose values only an apply knows stops no plan.
func TestUnknownProviderBlock(t *testing.T) {
	w := newWorld(t)
	block := func(what string) string {
		return `
resource "terraform_data" "made" {
  input = "` + token + `"
}
provider "bettercompute" {
  ` + what + `
}
`
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: block(`secrets = { main = terraform_data.made.output }`) + accountWith("secret://root/main") + poolBlock,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectKnownValue(poolResource, tfjsonpath.New("uri"), knownvalue.StringExact("hetzner-cloud://root/main/web?token=secret://root/main")),
				}},
			},
			// A data source can't wait for the apply.
			{
				Config: `
resource "terraform_data" "other" {
  input = "x"
}
provider "bettercompute" {
  vault = { address = "http://127.0.0.1:1", token = terraform_data.other.output }
}
data "bettercompute_offers" "all" {
  provider_account = "hetzner-cloud://root/main?token=vault://secret/hcloud%23token"
}
` + accountWith("env://"+tokenVariable),
				ExpectError: regexp.MustCompile(`INVALID_CONFIG:`),
			},
		},
	})
}

func TestUnknownTenant(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: `
resource "terraform_data" "tenant" {
  input = "blue"
}
provider "bettercompute" {
  tenant_id = terraform_data.tenant.output
  secrets   = { "env://` + tokenVariable + `" = "` + token + `" }
}
` + w.account() + poolBlock,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectUnknownValue(accountResource, tfjsonpath.New("id")),
					plancheck.ExpectUnknownValue(poolResource, tfjsonpath.New("uri")),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("tenant_id"), knownvalue.StringExact("blue")),
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("id"), knownvalue.StringExact(reference.AccountID("blue", "hetzner-cloud", "main"))),
				},
			},
			// An unknown part of the configuration leaves the id known.
			{
				Config: `
resource "terraform_data" "location" {
  input = "hel1"
}
provider "bettercompute" {
  tenant_id = "blue"
}
` + w.account(`location = terraform_data.location.output`) + poolBlock,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(accountResource, plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction(poolResource, plancheck.ResourceActionUpdate),
					plancheck.ExpectUnknownValue(accountResource, tfjsonpath.New("uri")),
					plancheck.ExpectKnownValue(poolResource, tfjsonpath.New("id"),
						knownvalue.StringExact(reference.PoolID(reference.AccountID("blue", "hetzner-cloud", "main"), "web"))),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("version"), knownvalue.Int64Exact(2)),
					statecheck.ExpectKnownValue(poolResource, tfjsonpath.New("uri"),
						knownvalue.StringExact("hetzner-cloud://blue/main/web?location=hel1&token=env://"+tokenVariable)),
				},
			},
		},
	})
}

// A token that the cloud refuses leaves a plan unchecked, so that the plan which
// mends it can run; the apply is refused.
func TestRefusedTokenAtPlan(t *testing.T) {
	w := newWorld(t)
	with := w.pool(`flavors = { small = "cx23" }`)
	another := strings.ReplaceAll(w.pool(), `"web"`+"\n  provider", `"other"`+"\n  provider")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			{PreConfig: func() { w.refuse(401) }, Config: with, PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: another, PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: with, ExpectError: regexp.MustCompile(`PROVIDER_ERROR: .*unauthorized`)},
		},
	})
}
