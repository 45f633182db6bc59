// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
)

// otherCloud is a second cloud with a field of every type. It has no abilities, no
// prices and no machines: enough for accounts and pools.
func otherCloud() *backends.Definition {
	return &backends.Definition{
		ID: "other-cloud", Title: "Other Cloud", Version: "1.0.0", Provides: []backends.Kind{backends.KindMetal},
		Description: "A cloud for tests.",
		Manifest: backends.Manifest{Account: []backends.Field{
			{Name: "api_key", Type: backends.TypeString, Secret: true, Description: "The key."},
			{Name: "limit", Type: backends.TypeInt, Default: int64(7), Description: "A number."},
			{Name: "fast", Type: backends.TypeBool, Default: true, Description: "A switch."},
			{Name: "zones", Type: backends.TypeStringList, Description: "A list."},
			{Name: "tags", Type: backends.TypeStringSet, Description: "A set."},
			{Name: "nested", Type: backends.TypeObject, Description: "An object.", Fields: []backends.Field{
				{Name: "host", Type: backends.TypeString, Required: true, Description: "A host."},
				{Name: "port", Type: backends.TypeInt, Description: "A port."},
			}},
		}},
		Region: func(backends.Values) string { return "here" },
		Create: func(backends.Values, backends.Environment) (backends.Backend, error) { return otherBackend{}, nil },
	}
}

type otherBackend struct{}

var errNotHere = errors.New("the test's cloud makes nothing")

func (otherBackend) Prove(context.Context) error { return nil }
func (otherBackend) Offers(context.Context, backends.OfferQuery) ([]backends.Offer, error) {
	return []backends.Offer{{ID: "big", Kind: backends.KindMetal, Region: "here", VCPU: 64, MemoryGiB: 512.5, Available: true,
		GPUs: []backends.GPU{{Model: "h100", Count: 8}}}}, nil
}
func (otherBackend) CheckForm(backends.MachineSpec) []*backends.Error { return nil }
func (otherBackend) CheckMachine(context.Context, backends.MachineSpec) (backends.Resolved, []*backends.Error, error) {
	return backends.Resolved{}, nil, nil
}
func (otherBackend) FindMachines(context.Context, string) ([]backends.Machine, error) {
	return nil, nil
}
func (otherBackend) MakeMachine(context.Context, backends.MachineSpec) (backends.Machine, error) {
	return backends.Machine{}, errNotHere
}
func (otherBackend) GetMachine(context.Context, string) (backends.Machine, error) {
	return backends.Machine{}, errNotHere
}
func (otherBackend) MarkMachine(context.Context, backends.Machine, backends.Marks) (backends.Machine, error) {
	return backends.Machine{}, errNotHere
}
func (otherBackend) DeleteMachine(context.Context, backends.Machine) error { return errNotHere }

// newTwoClouds is a world with a second cloud.
func newTwoClouds(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	first, _ := w.clouds.Lookup(hetzner.ID)
	clouds, err := backends.NewRegistry(first, otherCloud())
	if err != nil {
		t.Fatal(err)
	}
	w.clouds = clouds
	return w
}

func TestTwoClouds(t *testing.T) {
	w := newTwoClouds(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: `resource "bettercompute_provider_account" "main" {
  name = "main"
  hetzner_cloud = {
    token = "env://BETTERCOMPUTE_TEST_TOKEN"
  }
  other_cloud = {
    limit = 1
  }
}`,
				ExpectError: regexp.MustCompile(`INVALID_INPUT: The account configures more than one cloud`),
			},
			// A field of each type goes through schema, tree, uri and back.
			{
				Config: otherAccount,
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("uri"), knownvalue.StringExact(otherAccountURI)),
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("capabilities"), knownvalue.ListSizeExact(0)),
				},
			},
			{ResourceName: accountResource, ImportState: true, ImportStateVerify: true, ImportStateId: otherAccountURI},
			// Another cloud is another account.
			{
				Config: w.account(),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(accountResource, plancheck.ResourceActionDestroyBeforeCreate),
				}},
			},
		},
	})
}

const otherAccountURI = "other-cloud://blue/main?fast=false&limit=9&nested.host=example.org&nested.port=22&tags=a,b&zones=z2,z1"

const otherAccount = `resource "bettercompute_provider_account" "main" {
  name      = "main"
  tenant_id = "blue"
  other_cloud = {
    limit  = 9
    fast   = false
    zones  = ["z2", "z1"]
    tags   = ["b", "a"]
    nested = { host = "example.org", port = 22 }
  }
}
`

func TestPriceLimitWithoutPrices(t *testing.T) {
	w := newTwoClouds(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{{
			Config: otherAccount + `
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
  limits = {
    price_per_hour = 0.5
  }
}`,
			ExpectError: regexp.MustCompile(`UNSUPPORTED: Other Cloud has no prices`),
		}},
	})
}

func TestOffersOfAllKinds(t *testing.T) {
	w := newTwoClouds(t)
	offer := func(name string) tfjsonpath.Path {
		return tfjsonpath.New("offers").AtSliceIndex(0).AtMapKey(name)
	}
	const data = "data.bettercompute_offers.gpu"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{{
			Config: `data "bettercompute_offers" "gpu" {
  provider_account = "other-cloud://root/main"
}`,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(data, tfjsonpath.New("region"), knownvalue.StringExact("here")),
				statecheck.ExpectKnownValue(data, offer("memory_gib"), knownvalue.Float64Exact(512.5)),
				statecheck.ExpectKnownValue(data, offer("gpus"), knownvalue.ListExact([]knownvalue.Check{
					knownvalue.ObjectExact(map[string]knownvalue.Check{"model": knownvalue.StringExact("h100"), "count": knownvalue.Int64Exact(8)}),
				})),
				statecheck.ExpectKnownValue(data, offer("price_per_hour"), knownvalue.Null()),
				statecheck.ExpectKnownValue(data, offer("disk_gib"), knownvalue.Null()),
			},
		}},
	})
}
