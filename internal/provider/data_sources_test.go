// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

func TestOffers(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			// Sorted by price, the account's region only, and exact.
			{
				Config: w.pool() + `
data "bettercompute_offers" "all" {
  pool           = bettercompute_pool.web.uri
  kind           = "vps"
  min_vcpu       = 2
  min_memory_gib = 4
}
output "regions" {
  value = distinct(data.bettercompute_offers.all.offers[*].region)
}
output "sorted" {
  value = alltrue([for i, o in data.bettercompute_offers.all.offers :
    o.price_per_hour > 0 && o.currency == "EUR" && o.vcpu >= 2 && o.memory_gib >= 4 &&
    (i == 0 || try(data.bettercompute_offers.all.offers[i - 1].price_per_hour <= o.price_per_hour, true))])
}
output "some" {
  value = length(data.bettercompute_offers.all.offers) > 3
}
`,
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownOutputValue("regions", knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("fsn1")})),
					statecheck.ExpectKnownOutputValue("sorted", knownvalue.Bool(true)),
					statecheck.ExpectKnownOutputValue("some", knownvalue.Bool(true)),
				},
			},
			// Nothing fits: an empty list, no error.
			{
				Config: `data "bettercompute_offers" "none" {
  provider_account = "` + accountURI + `"
  gpu_model        = "h100"
  region           = "hel1"
}`,
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("data.bettercompute_offers.none", tfjsonpath.New("offers"), knownvalue.ListSizeExact(0)),
				},
			},
		},
	})
}

func TestDataSourcesBadInput(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"neither":                  {`data "bettercompute_offers" "x" {}`, `INVALID_INPUT: Neither provider_account nor pool is set`},
		"both":                     {`data "bettercompute_instances" "x" {` + "\nprovider_account = \"" + accountURI + "\"\npool = \"" + poolURI + "\"\n}", `INVALID_INPUT: provider_account and pool exclude each other`},
		"an id":                    {`data "bettercompute_instances" "x" {` + "\npool = \"pool_0123\"\n}", `INVALID_INPUT: pool: This is the id of a pool, not a uri`},
		"wrong":                    {`data "bettercompute_instances" "x" {` + "\npool = \"" + accountURI + "\"\n}", `INVALID_INPUT: pool: This is the uri of an account`},
		"too many":                 {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nmin_gpus = 65\n}", `INVALID_INPUT: min_gpus must be from 0 to 64`},
		"too large":                {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nmin_memory_gib = 16385\n}", `INVALID_INPUT: min_memory_gib must be from 0 to 16384`},
		"no kind":                  {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nkind = \"cow\"\n}", `INVALID_INPUT: kind .*vps`},
		"pools of a pool":          {`data "bettercompute_instances" "x" {` + "\npool = \"" + poolURI + "\"\npools = [\"web\"]\n}", `INVALID_INPUT: pools goes with provider_account`},
		"a pool's uri among names": {`data "bettercompute_instances" "x" {` + "\nprovider_account = \"" + accountURI + "\"\npools = [\"" + poolURI + "\"]\n}", `(?s)INVALID_INPUT: A pool name is.*names, not their uris`},
		"negative":                 {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nmin_vcpu = -1\n}", `INVALID_INPUT: min_vcpu must be from 0 to 1024`},
		"a fraction":               {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nmin_vcpu = 1.5\n}", `INVALID_INPUT: min_vcpu must be a whole number`},
		"huge":                     {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nmin_gpus = 1e30\n}", `INVALID_INPUT: min_gpus must be from 0 to 64`},
		"beyond a float64":         {`data "bettercompute_offers" "x" {` + "\nprovider_account = \"" + accountURI + "\"\nmin_memory_gib = 1e400\n}", `INVALID_INPUT: min_memory_gib must be from 0 to 16384`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps:                    []resource.TestStep{{Config: test.config, PlanOnly: true, ExpectError: regexp.MustCompile(test.want)}},
			})
		})
	}
}

func TestInstances(t *testing.T) {
	w := newWorld(t)
	first := w.makeMachine(poolURI, "web-1")
	second := w.makeMachine(poolURI, "web-0")
	renamed := w.makeMachine(poolURI, "web-2")
	w.makeMachine("hetzner-cloud://root/main/other?token=env://"+tokenVariable, "other-0")
	w.makeMachine("hetzner-cloud://root/foreign/web?token=env://"+tokenVariable, "foreign-0")
	id, err := strconv.ParseInt(renamed.ID, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w.hetzner.SetName(id, "changed")

	const pool, account, named = "data.bettercompute_instances.pool", "data.bettercompute_instances.account", "data.bettercompute_instances.named"
	row := func(i int, name string) tfjsonpath.Path {
		return tfjsonpath.New("instances").AtSliceIndex(i).AtMapKey(name)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{{
			Config: `
data "bettercompute_instances" "pool" {
  pool = "` + poolURI + `"
}
data "bettercompute_instances" "account" {
  provider_account = "` + accountURI + `"
}
data "bettercompute_instances" "named" {
  provider_account = "` + accountURI + `"
  pools            = ["web", "empty"]
}`,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(pool, tfjsonpath.New("instances"), knownvalue.ListSizeExact(3)),
				statecheck.ExpectKnownValue(pool, row(0, "machine_id"), knownvalue.StringExact(first.ID)),
				statecheck.ExpectKnownValue(pool, row(0, "uri"),
					knownvalue.StringExact("hetzner-cloud://root/main/web/instances/web-1/"+first.ID+"?token=env://"+tokenVariable)),
				statecheck.ExpectKnownValue(pool, row(0, "complete"), knownvalue.Bool(true)),
				statecheck.ExpectKnownValue(pool, row(0, "offer"), knownvalue.StringExact("cx23")),
				statecheck.ExpectKnownValue(pool, row(0, "region"), knownvalue.StringExact("fsn1")),
				statecheck.ExpectKnownValue(pool, row(0, "ipv4"), knownvalue.NotNull()),
				statecheck.ExpectKnownValue(pool, row(0, "created_at"), knownvalue.StringRegexp(regexp.MustCompile(`^20..-..-..T..:..:..Z$`))),
				statecheck.ExpectKnownValue(pool, row(0, "labels"), knownvalue.MapSizeExact(0)),
				statecheck.ExpectKnownValue(pool, row(1, "machine_id"), knownvalue.StringExact(second.ID)),
				// Renamed in the cloud: its key is not its name's any more.
				statecheck.ExpectKnownValue(pool, row(2, "uri"), knownvalue.Null()),
				statecheck.ExpectKnownValue(pool, row(2, "id"),
					knownvalue.StringExact(reference.InstanceID(reference.PoolID(reference.AccountID("root", "hetzner-cloud", "main"), "web"), "web-2"))),
				statecheck.ExpectKnownValue(account, tfjsonpath.New("instances"), knownvalue.ListSizeExact(4)),
				// The pool's name can't be told from the machine.
				statecheck.ExpectKnownValue(account, row(0, "uri"), knownvalue.Null()),
				// Unless it is given.
				statecheck.ExpectKnownValue(named, tfjsonpath.New("instances"), knownvalue.ListSizeExact(4)),
				statecheck.ExpectKnownValue(named, row(0, "uri"),
					knownvalue.StringExact("hetzner-cloud://root/main/web/instances/web-1/"+first.ID+"?token=env://"+tokenVariable)),
				statecheck.ExpectKnownValue(named, row(2, "uri"), knownvalue.Null()),
				statecheck.ExpectKnownValue(named, row(3, "uri"), knownvalue.Null()),
			},
		}},
	})
}
