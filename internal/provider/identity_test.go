// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
)

// The identity is the uri, follows the account's configuration, and imports.
func TestIdentity(t *testing.T) {
	w := newWorld(t)
	identity := func(resource, uri string) statecheck.StateCheck {
		return statecheck.ExpectIdentity(resource, map[string]knownvalue.Check{"uri": knownvalue.StringExact(uri)})
	}
	resource.ParallelTest(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config:            w.pool(),
				ConfigStateChecks: []statecheck.StateCheck{identity(accountResource, accountURI), identity(poolResource, poolURI)},
			},
			{ResourceName: accountResource, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
			{ResourceName: poolResource, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
			{
				Config: w.account(`location = "hel1"`) + poolBlock,
				ConfigStateChecks: []statecheck.StateCheck{
					identity(accountResource, "hetzner-cloud://root/main?location=hel1&token=env://"+tokenVariable),
					identity(poolResource, "hetzner-cloud://root/main/web?location=hel1&token=env://"+tokenVariable),
				},
			},
		},
	})
}

func TestImportWrongUris(t *testing.T) {
	for name, test := range map[string]struct{ resource, id, want string }{
		"id":             {accountResource, "pacct_0123", `INVALID_INPUT: This is the id of an account, not a\s+uri`},
		"pool's":         {accountResource, poolURI, `INVALID_INPUT: This is the uri of a pool`},
		"account's":      {poolResource, accountURI, `INVALID_INPUT: This is the uri of an account`},
		"unknown scheme": {poolResource, "aws://root/main/web", `INVALID_INPUT: The uri's scheme "aws"`},
		"misspelt key":   {poolResource, poolURI + "&tokken=x", `INVALID_INPUT:`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{{
					Config: w.pool(), ResourceName: test.resource, ImportState: true, ImportStateId: test.id, ExpectError: regexp.MustCompile(test.want),
				}},
			})
		})
	}
}
