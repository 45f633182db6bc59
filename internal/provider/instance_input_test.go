// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// TestInstanceBadInput: each mistake is an error at plan time at the latest, and
// no call makes anything.
func TestInstanceBadInput(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		pool  []string
		want  string
	}{
		"unknown offer lists near ones": {lines: []string{`offer = "cx32x"`}, want: `INVALID_INPUT: .*cx33`},
		"offer not in the location":     {lines: []string{`offer = "cax11"`, `image = "ubuntu-24.04"`, `region = "ash"`}, want: `INVALID_INPUT: .*fsn1`},
		"unknown region":                {lines: []string{`region = "mars"`}, want: `INVALID_INPUT: .*fsn1`},
		"unknown image":                 {lines: []string{`image = "ubuntu-24.40"`}, want: `INVALID_INPUT: .*ubuntu-24\.04`},
		"empty image":                   {lines: []string{`image = ""`}, want: `INVALID_INPUT: image `},
		"a name with capitals":          {lines: []string{`name = "Web-0"`}, want: `INVALID_INPUT: .*lower-case`},
		"a name with an underscore":     {lines: []string{`name = "web_0"`}, want: `INVALID_INPUT: `},
		"a name too long":               {lines: []string{fmt.Sprintf("name = %q", strings.Repeat("a", 64))}, want: `INVALID_INPUT: .*63`},
		"a name that ends in a hyphen":  {lines: []string{`name = "web-"`}, want: `INVALID_INPUT: `},
		"an id where a uri belongs":     {lines: []string{`pool = bettercompute_pool.web.id`}, want: `INVALID_INPUT: .*uri`},
		"the uri of an account":         {lines: []string{`pool = bettercompute_provider_account.main.uri`}, want: `INVALID_INPUT: .*pool`},
		"100 KiB of user data":          {lines: []string{fmt.Sprintf("user_data = %q", "#!/bin/sh\n"+strings.Repeat("# padding\n", 10240))}, want: `INVALID_INPUT: .*32\s*KiB`},
		"keys with foreign user data":   {lines: []string{`user_data = "plain text"`, `ssh_keys = ["` + testSSHKey + `"]`}, want: `INVALID_INPUT: .*#cloud-config`},
		"both kinds of user data":       {lines: []string{`user_data = "#!a"`, `user_data_wo = "#!b"`}, want: `INVALID_INPUT: .*exclude`},
		"not a key":                     {lines: []string{`ssh_keys = ["my-key"]`}, want: `INVALID_INPUT: .*public key`},
		"a private key":                 {lines: []string{`ssh_keys = ["-----BEGIN OPENSSH PRIVATE KEY-----"]`}, want: `INVALID_INPUT: .*private key`},
		"a timeout that is none":        {lines: []string{`timeouts = { create = "soon" }`}, want: `INVALID_INPUT: A timeout is`},
		"an empty region":               {lines: []string{`region = ""`}, want: `INVALID_INPUT: region `},
		"a foreign policy":              {lines: []string{`on_image_change = "keep"`}, want: `INVALID_INPUT: on_image_change `},
		"power neither on nor off":      {lines: []string{`power = "standby"`}, want: `INVALID_INPUT: power .*on`},
		"a network that is no id":       {lines: []string{`network_id = "my-net"`}, want: `INVALID_INPUT: `},
		"a reserved label":              {lines: []string{`labels = { "better-compute.io/claim" = "mine" }`}, want: `INVALID_INPUT: `},
		"a label value with a blank":    {lines: []string{`labels = { role = "web server" }`}, want: `INVALID_INPUT: `},
		"options that exclude each other": {
			lines: []string{`network_id = "1"`, `hetzner_cloud = { networks = [{ network_id = "1" }] }`}, want: `INVALID_INPUT: `,
		},
		"no address at all": {lines: []string{`hetzner_cloud = { public_ipv4 = false, public_ipv6 = false }`}, want: `INVALID_INPUT: `},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{{
					Config:      w.pool(test.pool...) + instanceBlock("web", "web-0", test.lines...),
					PlanOnly:    true,
					ExpectError: regexp.MustCompile(`(?s)` + test.want),
				}},
			})
			for _, c := range w.calls() {
				if !strings.HasPrefix(c, "GET ") {
					t.Errorf("the plan made a call: %s", c)
				}
			}
		})
	}
}

func TestInstanceOutOfStockNamesAlternatives(t *testing.T) {
	w := newWorld(t)
	w.hetzner.SetStock("cx23", "fsn1", false)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{{
			Config: w.instance(), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)CAPACITY_UNAVAILABLE|INVALID_INPUT: .*cx33`),
		}},
	})
}

func TestOfferWithdrawnDoesNotBreakOtherPlans(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance()},
			{PreConfig: func() { w.hetzner.Withdraw("cx23") }, Config: w.instance(`power = "off"`), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		},
	})
}

func TestPoolLimitWarnsInThePlanAndRefusesTheApply(t *testing.T) {
	w := newWorld(t)
	config := w.pool("limits = { instances = 1 }") + instanceBlock("web", "web-0") + instanceBlock("more", "web-1")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: config, ExpectError: regexp.MustCompile(`(?s)QUOTA_EXCEEDED: .*limits\.instances`)},
			checkPending(func() { w.only() }),
		},
	})
}

func TestInstanceOnAnAccountThatCannotBeResolvedIsUnchecked(t *testing.T) {
	w := newWorld(t)
	config := strings.ReplaceAll(w.instance(`offer = "nonsense"`), "env://"+tokenVariable, "env://BETTERCOMPUTE_TEST_UNSET")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: config, ExpectError: regexp.MustCompile(`INVALID_CONFIG: .*BETTERCOMPUTE_TEST_UNSET`)},
		},
	})
	if calls := w.calls(); len(calls) > 0 {
		t.Errorf("calls were made: %v", calls)
	}
}
