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

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// oceanAccountLines is an account at DigitalOcean with these lines in its attribute.
func oceanAccountLines(lines string) string {
	return "resource \"bettercompute_provider_account\" \"main\" {\n  name = \"main\"\n  digitalocean = {\n" + lines + "\n  }\n}\n"
}

// The account's attribute, uri and abilities come from the cloud's definition alone.
func TestOceanAccount(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	const token = `token = "env://` + tokenVariable + `"`
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{
				Config: oceanAccountLines(token + "\nregion = \"fra1\""),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectKnownValue(accountResource, tfjsonpath.New("uri"), text(oceanAccountURI)),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("id"), text(reference.AccountID("root", "digitalocean", "main"))),
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("kind"), text("digitalocean")),
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("capabilities"), knownvalue.ListExact([]knownvalue.Check{
						text("deletionProtection"), text("edit"), text("list"), text("power"), text("reinstall"), text("resize"),
						text("selectiveDestroy"), text("sharedSnapshots"), text("sharedVolumes"), text("snapshots"), text("volumes"),
					})),
				},
			},
			{ResourceName: accountResource, ImportState: true, ImportStateVerify: true, ImportStateId: oceanAccountURI},
			// The only one of its regions is where machines are made.
			{
				Config: oceanAccountLines(token + "\nregions = [\"nyc3\"]"),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("uri"), text("digitalocean://root/main?regions=nyc3&token=env://"+tokenVariable)),
				},
			},
			// Regions are a set, which has one spelling in a uri.
			{
				Config: oceanAccountLines(token + "\nregions = [\"nyc3\", \"fra1\"]\nregion = \"fra1\""),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(accountResource, tfjsonpath.New("uri"), text("digitalocean://root/main?region=fra1&regions=fra1,nyc3&token=env://"+tokenVariable)),
				},
			},
			{
				Config:           oceanAccountLines(token + "\nregions = [\"fra1\", \"nyc3\"]\nregion = \"fra1\""),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
		},
	})
}

func TestOceanAccountMistakes(t *testing.T) {
	const token = `token = "env://` + tokenVariable + `"`
	for name, test := range map[string]struct{ lines, want string }{
		"no token":         {`region = "fra1"`, `token\s+is\s+required`},
		"a literal token":  {"token = \"dop_v1_literal\"\nregion = \"fra1\"", `INVALID_INPUT: .*reference`},
		"no region":        {token, `INVALID_INPUT: .*region is required`},
		"two regions":      {token + "\nregions = [\"fra1\", \"nyc3\"]", `INVALID_INPUT: .*region is required`},
		"a region outside": {token + "\nregions = [\"nyc3\"]\nregion = \"fra1\"", `INVALID_INPUT: .*"fra1" is not among`},
		"not a region":     {token + "\nregion = \"Frankfurt 1\"", `INVALID_INPUT: `},
		"http":             {token + "\nregion = \"fra1\"\nendpoint = \"http://example.com\"", `INVALID_INPUT: .*https`},
		"userinfo":         {token + "\nregion = \"fra1\"\nendpoint = \"https://user:hunter2@example.com\"", `INVALID_INPUT: `},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				Steps:                    []resource.TestStep{{Config: oceanAccountLines(test.lines), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)` + test.want)}},
			})
			if calls := o.cloud.Calls(); len(calls) != 0 {
				t.Errorf("bad input led to calls: %v", calls)
			}
		})
	}
}
