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

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
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

// Volumes and snapshots hold a pool and an account as machines do; a snapshot that
// outlived its volume too.
func TestVolumesAndSnapshotsHoldTheirPool(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	block := func(name string) string {
		return fmt.Sprintf("\nresource \"bettercompute_pool\" \"web\" {\n  name = %q\n  provider_account = bettercompute_provider_account.main.uri\n}\n", name)
	}
	account := oceanAccountOf("env://" + tokenVariable)
	var v backends.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: account + block("web")},
			{
				PreConfig: func() {
					apart(t, func() {
						v = o.makeVolume(oceanPoolURI, "fra1", "data")
					}, func() {
						for i := range 9 {
							o.makeSnapshot(v, fmt.Sprintf("s-%d", i), true)
						}
						o.makeSnapshot(v, "unmarked", false)
						o.makeShare("files")
					})
				},
				Config: account,
				ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: The pool "web" still has 2 volumes and 9 snapshots in the cloud.*` +
					`volume\s+data.*volume\s+bc-.*(?:snapshot\s+s-\d.*){8}and\s+1\s+more.*removed \{`),
			},
			{Config: account + block("renamed"), ExpectError: regexp.MustCompile(`INVALID_STATE: The pool "web" can't become another one: it has 2 volumes and 9`)},
			{
				Config:      strings.Replace(account, `"main"`+"\n", `"another"`+"\n", 1) + block("web"),
				ExpectError: regexp.MustCompile(`INVALID_STATE: The pool "web" can't become another one|INVALID_STATE: The account "main" can't become another one: it has 2 volumes and 9`),
			},
			{
				Config:      strings.Replace(account, `name = "main"`, "name = \"main\"\n  tenant_id = \"blue\"", 1) + block("web"),
				ExpectError: regexp.MustCompile(`INVALID_STATE: The account "main" can't become another one: it has 2 volumes and 9`),
			},
			{
				PreConfig: func() {
					o.cloud.DeleteVolume(v.ID)
					for _, s := range o.cloud.Shares() {
						o.cloud.DeleteShare(s.ID)
					}
					for _, s := range o.cloud.VolumeSnapshots() {
						if s.Name != "s-0" {
							o.cloud.DeleteVolumeSnapshot(s.ID)
						}
					}
				},
				Config: account, ExpectError: regexp.MustCompile(`INVALID_STATE: The pool "web" still has 1 snapshot in`),
			},
			{
				PreConfig: func() { o.cloud.DeleteVolumeSnapshot(o.oneSnapshot().ID) },
				Config:    account,
			},
			// The tags of what is gone go with the pool and the account.
			{Config: " "},
		},
	})
	if left := o.cloud.Tags(); slices.ContainsFunc(left, func(tag string) bool {
		return strings.HasPrefix(tag, "better-compute:pool:") || strings.HasPrefix(tag, "better-compute:account:")
	}) {
		t.Errorf("the cloud still has the tags %v", left)
	}
}

// An account without machines is recognised by its volumes.
func TestAccountOfAnotherProjectIsToldByItsVolumes(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{Projects: emulator.Projects{token: "first", "second-token": "second"}})
	o.makeVolume("digitalocean://root/main/web?region=fra1&token=secret://root/old", "fra1", "data")
	secrets := "provider \"bettercompute\" {\n  secrets = { old = \"" + token + "\", new = \"second-token\" }\n}\n"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: secrets + oceanAccountOf("secret://root/old")},
			{
				Config:      secrets + oceanAccountOf("secret://root/new"),
				ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: The new configuration doesn't show the account's volume: volume\s+data`),
			},
			checkPending(func() { o.cloud.DeleteVolume(o.cloud.Volumes()[0].ID) }),
			{Config: secrets + oceanAccountOf("secret://root/new")},
		},
	})
}
