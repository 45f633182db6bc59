// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// newTwoProjects is a world whose tokens are of two projects. secretsBlock names
// them: "old" and "new" of one each, "also_old" is another token of the first.
func newTwoProjects(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, hetzneremulator.Options{Projects: emulator.Projects{token: "first", "second-token": "second", "third-token": "first"}})
}

const secretsBlock = `
provider "bettercompute" {
  secrets = { old = "` + token + `", new = "second-token", also_old = "third-token", revoked = "revoked-token" }
}
`

// A configuration of another project is recorded neither in the account nor below.
func TestAccountOfAnotherProject(t *testing.T) {
	w := newTwoProjects(t)
	with := func(secret string) string { return secretsBlock + accountWith("secret://root/"+secret) + poolBlock }
	const oldPool = "hetzner-cloud://root/main/web?token=secret://root/old"
	another := regexp.MustCompile(`(?s)INVALID_STATE: The new configuration shows none of the account's 2\s+machines.*web-0 \(\d+\).*another\s+project`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: with("old")},
			// Without machines any project will do.
			{Config: with("new")},
			{Config: with("old")},
			{
				PreConfig: func() {
					w.makeMachine(oldPool, "web-0")
					w.makeMachine(oldPool, "web-1")
				},
				Config: with("new"), ExpectError: another,
			},
			// Nothing was recorded: the old configuration has nothing to change.
			{
				Config:           with("old"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			// Another token of the project is no other project: one call that proves it,
			// and a list with each.
			{
				PreConfig: w.forgetCalls,
				Config:    with("also_old"),
				Check: func(*terraform.State) error {
					lists := slices.DeleteFunc(w.calls(), func(c string) bool { return c != http.MethodGet+" /v1/servers" })
					if len(lists) != 3 || len(lists) != len(w.calls()) {
						t.Errorf("a rotated token made %v", w.calls())
					}
					return nil
				},
			},
			{PreConfig: w.deleteMachines, Config: with("also_old")},
		},
	})
}

// A token that is revoked, or whose reference is gone, holds no new one up.
func TestAccountWhoseOldTokenIsGone(t *testing.T) {
	for name, gone := range map[string]string{"unresolvable": "", "refused": "revoked-token"} {
		t.Run(name, func(t *testing.T) {
			w := newTwoProjects(t)
			block := func(old string) string {
				return "provider \"bettercompute\" {\n  secrets = { old = \"" + old + "\", also_old = \"third-token\" }\n}\n"
			}
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{
					{Config: block(token) + accountWith("secret://root/old")},
					{
						PreConfig: func() { w.makeMachine("hetzner-cloud://root/main/web?token=secret://root/old", "web-0") },
						Config:    block(gone) + accountWith("secret://root/also_old"),
					},
					{PreConfig: w.deleteMachines, Config: block(gone) + accountWith("secret://root/also_old")},
				},
			})
		})
	}
}
