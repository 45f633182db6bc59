// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

func TestInUseStays(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			// Eleven machines that the state doesn't know: ten are named.
			{
				PreConfig: func() {
					for i := range 11 {
						w.makeMachine(poolURI, fmt.Sprintf("left-%d", i))
					}
				},
				Config:      w.account(),
				ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: The pool "web" still has 11 machines in the cloud.*left-0.*left-9.*and 1\s+more.*another\s+configuration\s+that\s+uses\s+the\s+same\s+account\s+name.*removed \{`),
			},
			{Config: w.pool(), Destroy: true, ExpectError: regexp.MustCompile(`INVALID_STATE: The pool "web" still has 11 machines`)},
			{
				Config: accountNamed("other") + `
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
}`,
				ExpectError: regexp.MustCompile(`INVALID_STATE: The account "main" can't become another one: it has 11 machines`),
			},
			{
				Config: w.account() + `
resource "bettercompute_pool" "web" {
  name             = "renamed"
  provider_account = bettercompute_provider_account.main.uri
}`,
				ExpectError: regexp.MustCompile(`INVALID_STATE: The pool "web" can't become another one: it has 11 machines`),
			},
			// Without a pool in the state the account is held by its machines alone.
			{
				PreConfig: w.deleteMachines,
				Config:    w.account(),
			},
			{
				PreConfig: func() { w.makeMachine(poolURI, "late") },
				Config:    " ", ExpectError: regexp.MustCompile(`INVALID_STATE: The account "main" still has 1 machine in`),
			},
			{PreConfig: w.deleteMachines, Config: " "},
		},
	})
}

// A dead token must not keep an account in the state for ever.
func TestDeadCredentialsAtDelete(t *testing.T) {
	for name, config := range map[string]string{
		"unresolvable": `provider "bettercompute" {
  secrets = { "env://BETTERCOMPUTE_TEST_TOKEN" = "" }
}
`,
		"refused": "",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{
					{Config: w.pool()},
					{
						PreConfig: func() {
							w.makeMachine(poolURI, "left")
							if name == "refused" {
								w.refuse(401)
							}
						},
						Config: config + " ",
					},
				},
			})
		})
	}
}
