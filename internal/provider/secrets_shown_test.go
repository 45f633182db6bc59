// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// A secret that stands where none belongs is refused, and shows neither in our
// words nor in the source lines that the CLIs print around them.
func TestLiteralSecretsDoNotShow(t *testing.T) {
	const literal = "literal-secret-7Gh2"
	account := func(body string) string {
		return "resource \"bettercompute_provider_account\" \"main\" {\n  name = \"main\"\n  hetzner_cloud = {\n" + body + "\n  }\n}\n"
	}
	for name, test := range map[string]struct{ config, want string }{
		"literal token":    {account(`token = "` + literal + `"`), `INVALID_INPUT: hetzner_cloud.token must be a secret reference`},
		"misspelt token":   {account(`tokn = "` + literal + `"`), `INVALID_INPUT: hetzner_cloud.token is required`},
		"malformed secret": {account(`token = "env://` + literal + `"`), `INVALID_INPUT: hetzner_cloud.token: The secret reference is malformed`},
		"userinfo":         {account("token = \"env://A\"\nendpoint = \"https://user:" + literal + "@example.com/v1\""), `INVALID_INPUT:`},
		"beside an error":  {account("token = \"" + literal + "\"\nlocation = \"mars\""), `INVALID_INPUT:`},
		"token in a uri": {
			"resource \"bettercompute_pool\" \"web\" {\n  name = \"web\"\n  provider_account = \"hetzner-cloud://root/main?token=" + literal + "\"\n}",
			`INVALID_INPUT: provider_account:`,
		},
		"token in an instance's uri": {
			"resource \"bettercompute_instance\" \"web\" {\n  name = \"web\"\n  offer = \"cx23\"\n  image = \"ubuntu-24.04\"\n" +
				"  pool = \"hetzner-cloud://root/main/web?token=" + literal + "\"\n}",
			`INVALID_INPUT:`,
		},
		"password in a data source's uri": {
			"data \"bettercompute_offers\" \"all\" {\n  provider_account = \"hetzner-cloud://user:" + literal + "@root/main?token=env://A\"\n}",
			`INVALID_INPUT: provider_account:`,
		},
		"malformed key of secrets": {
			"provider \"bettercompute\" {\n  secrets = {\n    \"a b\" = \"" + literal + "\"\n  }\n}\n" + newWorld(t).account(),
			`INVALID_CONFIG: A key of the provider block's secrets is malformed`,
		},
		"bad tenant beside secrets": {
			"provider \"bettercompute\" {\n  tenant_id = \"a b\"\n  secrets = {\n    a = \"" + literal + "\"\n  }\n}\n" + newWorld(t).account(),
			`INVALID_INPUT: A tenant id is`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var output string
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				// Not ExpectError: with it the error's text can't be looked at.
				ErrorCheck: func(err error) error {
					output += err.Error()
					return nil
				},
				Steps: []resource.TestStep{{Config: test.config, PlanOnly: true}},
			})
			if !regexp.MustCompile(test.want).MatchString(output) {
				t.Errorf("no %q in:\n%s", test.want, strings.ReplaceAll(output, literal, "[THE SECRET]"))
			}
			if strings.Contains(output, literal) {
				t.Errorf("the secret shows:\n%s", strings.ReplaceAll(output, literal, "[THE SECRET]"))
			}
			if calls := w.calls(); len(calls) != 0 {
				t.Errorf("bad input led to calls: %v", calls)
			}
		})
	}
}
