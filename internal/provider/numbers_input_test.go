// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// A number that an attribute can't have is an error with a code, which a plan gives
// before it makes anything, and never one of the framework's that blames the
// provider.
func TestNumbersBadInput(t *testing.T) {
	w := newTwoClouds(t)
	other := func(line string) string {
		return "resource \"bettercompute_provider_account\" \"main\" {\n  name = \"main\"\n  other_cloud = {\n    " + line + "\n  }\n}\n"
	}
	const count = ` must be from 0 to 9223372036854775807`
	for name, test := range map[string]struct{ config, want string }{
		"a fraction of a machine": {w.pool(`limits = { instances = 1.5 }`), `limits\.instances must be a whole number`},
		"a fraction of a GiB":     {w.pool(`limits = { disk_gib = 0.5 }`), `limits\.disk_gib must be a whole number`},
		"fewer than none":         {w.pool(`limits = { instances = -1 }`), `limits\.instances` + count},
		"a huge limit":            {w.pool(`limits = { disk_gib = 1e30 }`), `limits\.disk_gib` + count},
		"a price beyond floats":   {w.pool(`limits = { price_per_hour = 1e400 }`), `price_per_hour is a decimal number`},
		"a price below floats":    {w.pool(`limits = { price_per_hour = 1e-400 }`), `price_per_hour is a decimal number`},
		"half a version":          {w.instance(`user_data_wo_version = 1.5`), `user_data_wo_version must be a whole number`},
		"a huge version":          {w.instance(`user_data_wo_version = 1e30`), `user_data_wo_version must be from `},
		"a cloud's fraction":      {other(`limit = 1.5`), `other_cloud\.limit must be a whole number`},
		"a cloud's huge number":   {other(`limit = 1e30`), `other_cloud\.limit must be from `},
		"a nested fraction":       {other(`nested = { host = "h", port = 0.1 }`), `other_cloud\.nested\.port must be a whole number`},
	} {
		t.Run(name, func(t *testing.T) {
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{{
					Config: test.config, PlanOnly: true,
					ExpectError: regexp.MustCompile(`INVALID_INPUT: ` + strings.ReplaceAll(test.want, " ", `\s+`)),
				}},
			})
		})
	}
}

// A number that only an apply knows is checked there, before anything is recorded.
func TestNumbersKnownLate(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{{
			Config: `
resource "terraform_data" "limit" {
  input = 1.5
}
` + w.pool(`limits = { instances = terraform_data.limit.output }`),
			ExpectError: regexp.MustCompile(`INVALID_INPUT: limits\.instances\s+must\s+be\s+a\s+whole\s+number`),
		}},
	})
}
