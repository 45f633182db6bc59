// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var rfc3339 = knownvalue.StringRegexp(regexp.MustCompile(`^20..-..-..T..:..:..Z$`))

// apart does one thing after the other, a minute of a clock of their own apart:
// clouds say in whole seconds when something was made.
func apart(t *testing.T, do ...func()) {
	t.Helper()
	_ = t.Context().Done() // is made when it is first asked for, and closed outside
	synctest.Test(t, func(*testing.T) {
		for _, each := range do {
			each()
			time.Sleep(time.Minute)
		}
	})
}

// rowIs checks one attribute of one row of a data source.
func rowIs(address, list string, i int, name string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(list).AtSliceIndex(i).AtMapKey(name), value)
}

// "Returns the tenant's volumes in the order they were made, optionally of one pool,
// with their attachment", on every cloud alike.
func TestVolumesInTheOrderTheyWereMade(t *testing.T) {
	for name, test := range map[string]struct{ poolURI, accountURI, region string }{
		"hetzner-cloud": {poolURI, accountURI, "fsn1"},
		"digitalocean":  {oceanPoolURI, oceanAccountURI, "fra1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			var first, second backends.Volume
			apart(t, func() {
				first = o.makeVolume(test.poolURI, test.region, "data-1")
			}, func() {
				second = o.makeVolume(test.poolURI, test.region, "data-0")
			}, func() {
				o.makeVolume(strings.Replace(test.poolURI, "/web?", "/db?", 1), test.region, "other")
			}, func() {
				o.makeVolume(strings.Replace(test.poolURI, "/main/", "/foreign/", 1), test.region, "foreign")
			})
			pool, _ := o.backendOf(test.poolURI)

			const ofPool, ofAccount, named = "data.bettercompute_provider_volumes.pool", "data.bettercompute_provider_volumes.account", "data.bettercompute_provider_volumes.named"
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				Steps: []resource.TestStep{{
					Config: `
data "bettercompute_provider_volumes" "pool" {
  pool = "` + test.poolURI + `"
}
data "bettercompute_provider_volumes" "account" {
  provider_account = "` + test.accountURI + `"
}
data "bettercompute_provider_volumes" "named" {
  provider_account = "` + test.accountURI + `"
  pools            = ["web"]
}`,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue(ofPool, tfjsonpath.New("volumes"), knownvalue.ListSizeExact(2)),
						rowIs(ofPool, "volumes", 0, "volume_id", text(first.ID)),
						rowIs(ofPool, "volumes", 0, "uri", text(pool.VolumeRef("data-1").String())),
						rowIs(ofPool, "volumes", 0, "id", text(pool.VolumeRef("data-1").ID())),
						rowIs(ofPool, "volumes", 0, "name", text("data-1")),
						rowIs(ofPool, "volumes", 0, "kind", text("block")),
						rowIs(ofPool, "volumes", 0, "state", text("ready")),
						rowIs(ofPool, "volumes", 0, "message", knownvalue.Null()),
						rowIs(ofPool, "volumes", 0, "size_gib", knownvalue.Int64Exact(10)),
						rowIs(ofPool, "volumes", 0, "region", text(test.region)),
						rowIs(ofPool, "volumes", 0, "machine_ids", knownvalue.ListSizeExact(0)),
						rowIs(ofPool, "volumes", 0, "device", knownvalue.NotNull()),
						rowIs(ofPool, "volumes", 0, "mount", knownvalue.Null()),
						rowIs(ofPool, "volumes", 0, "complete", knownvalue.Bool(true)),
						rowIs(ofPool, "volumes", 0, "delete_with_instance", knownvalue.Bool(false)),
						rowIs(ofPool, "volumes", 0, "account_id", text(pool.AccountID())),
						rowIs(ofPool, "volumes", 0, "pool_id", text(pool.PoolID())),
						rowIs(ofPool, "volumes", 0, "created_at", rfc3339),
						rowIs(ofPool, "volumes", 0, "labels", knownvalue.MapSizeExact(0)),
						rowIs(ofPool, "volumes", 1, "volume_id", text(second.ID)),
						statecheck.ExpectKnownValue(ofAccount, tfjsonpath.New("volumes"), knownvalue.ListSizeExact(3)),
						rowIs(ofAccount, "volumes", 0, "uri", knownvalue.Null()),
						rowIs(named, "volumes", 0, "uri", text(pool.VolumeRef("data-1").String())),
						rowIs(named, "volumes", 2, "uri", knownvalue.Null()),
					},
				}},
			})
		})
	}
}

// A volume shows what it is attached to.
func TestVolumesShowTheirMachine(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	_, backend := o.backendOf(oceanPoolURI)
	m, err := backend.MakeMachine(t.Context(), backends.MachineSpec{Name: "web-0", Offer: "s-1vcpu-1gb", Image: "debian-12-x64", Region: "fra1", Start: true})
	if err != nil {
		t.Fatal(err)
	}
	volumer, ok := backend.(backends.Volumer)
	if !ok {
		t.Fatal("no volumes")
	}
	if err := volumer.Volumes().Attach(t.Context(), v, m.ID); err != nil {
		t.Fatal(err)
	}
	const data = "data.bettercompute_provider_volumes.pool"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{{
			Config:            "data \"bettercompute_provider_volumes\" \"pool\" {\n  pool = \"" + oceanPoolURI + "\"\n}",
			ConfigStateChecks: []statecheck.StateCheck{rowIs(data, "volumes", 0, "machine_ids", knownvalue.ListExact([]knownvalue.Check{text(m.ID)}))},
		}},
	})
}

// A share of a cloud without tags for shares has its marks in its name: its own name
// can't be told, its pool and account can.
func TestSharesAreListedWithoutUri(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	share := o.makeShare("files")
	pool, _ := o.backendOf(oceanPoolURI)
	const volumes, snapshots = "data.bettercompute_provider_volumes.pool", "data.bettercompute_snapshots.account"
	shareURI := pool.VolumeRef("files").String()
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{
				Config: snapshotOf(shareURI, "first"),
				ConfigStateChecks: []statecheck.StateCheck{
					snapshotHas("state", text("ready")), snapshotHas("claim", knownvalue.StringRegexp(regexp.MustCompile("^[0-9a-z]{10}$"))),
					snapshotHas("size_gib", knownvalue.Int64Exact(50)), snapshotHas("uri", text(pool.VolumeRef("files").SnapshotRef("first").String())),
				},
			},
			{
				Config: snapshotOf(shareURI, "first") + `
data "bettercompute_provider_volumes" "pool" {
  pool = "` + oceanPoolURI + `"
}
data "bettercompute_snapshots" "account" {
  provider_account = "` + oceanAccountURI + `"
  pools            = ["web"]
}`,
				ConfigStateChecks: []statecheck.StateCheck{
					rowIs(volumes, "volumes", 0, "volume_id", text(share.ID)),
					rowIs(volumes, "volumes", 0, "kind", text("shared")),
					rowIs(volumes, "volumes", 0, "uri", knownvalue.Null()),
					rowIs(volumes, "volumes", 0, "network_id", text(share.Network)),
					rowIs(volumes, "volumes", 0, "mount", knownvalue.ObjectExact(map[string]knownvalue.Check{"source": knownvalue.NotNull(), "type": text("nfs4")})),
					rowIs(volumes, "volumes", 0, "id", text(pool.VolumeRef("files").ID())),
					rowIs(volumes, "volumes", 0, "account_id", text(pool.AccountID())),
					rowIs(volumes, "volumes", 0, "pool_id", text(pool.PoolID())),
					rowIs(snapshots, "snapshots", 0, "kind", text("shared")),
					rowIs(snapshots, "snapshots", 0, "uri", knownvalue.Null()),
					rowIs(snapshots, "snapshots", 0, "id", text(reference.SnapshotID(pool.VolumeRef("files").ID(), "first"))),
					rowIs(snapshots, "snapshots", 0, "account_id", text(pool.AccountID())),
					rowIs(snapshots, "snapshots", 0, "pool_id", text(pool.PoolID())),
				},
			},
		},
	})
	if left := o.cloud.ShareSnapshots(); len(left) > 0 {
		t.Errorf("the cloud still has %+v", left)
	}
}

func TestSnapshotsInTheOrderTheyWereMade(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	var a, b backends.Snapshot
	apart(t, func() { b = o.makeSnapshot(v, "b", true) }, func() { a = o.makeSnapshot(v, "a", true) })
	o.makeSnapshot(v, "unmarked", false)
	o.cloud.DeleteVolume(v.ID)
	pool, _ := o.backendOf(oceanPoolURI)
	const ofPool, ofAccount = "data.bettercompute_snapshots.pool", "data.bettercompute_snapshots.account"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{{
			Config: `
data "bettercompute_snapshots" "pool" {
  pool = "` + oceanPoolURI + `"
}
data "bettercompute_snapshots" "account" {
  provider_account = "` + oceanAccountURI + `"
}
data "bettercompute_snapshots" "none" {
  provider_account = "` + accountURI + `"
}`,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(ofPool, tfjsonpath.New("snapshots"), knownvalue.ListSizeExact(2)),
				rowIs(ofPool, "snapshots", 0, "snapshot_id", text(b.ID)),
				rowIs(ofPool, "snapshots", 0, "uri", text(pool.VolumeRef("data").SnapshotRef("b").String())),
				rowIs(ofPool, "snapshots", 0, "volume", text("data")),
				rowIs(ofPool, "snapshots", 0, "volume_id", text(v.ID)),
				rowIs(ofPool, "snapshots", 0, "kind", text("block")),
				rowIs(ofPool, "snapshots", 0, "state", text("ready")),
				rowIs(ofPool, "snapshots", 0, "region", text("fra1")),
				rowIs(ofPool, "snapshots", 0, "size_gib", knownvalue.Int64Exact(10)),
				rowIs(ofPool, "snapshots", 0, "complete", knownvalue.Bool(true)),
				rowIs(ofPool, "snapshots", 0, "created_at", rfc3339),
				rowIs(ofPool, "snapshots", 1, "snapshot_id", text(a.ID)),
				statecheck.ExpectKnownValue(ofAccount, tfjsonpath.New("snapshots"), knownvalue.ListSizeExact(2)),
				rowIs(ofAccount, "snapshots", 0, "uri", knownvalue.Null()),
				// A cloud without snapshots has none to show.
				statecheck.ExpectKnownValue("data.bettercompute_snapshots.none", tfjsonpath.New("snapshots"), knownvalue.ListSizeExact(0)),
			},
		}},
	})
}

// What no state has is taken in by import { for_each }.
func TestLeftoverSnapshotsAreImportedByForEach(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	o.makeSnapshot(v, "a", true)
	o.makeSnapshot(v, "b", true)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{{
			Config: `
data "bettercompute_snapshots" "pool" {
  pool = "` + oceanPoolURI + `"
}
import {
  for_each = { for s in data.bettercompute_snapshots.pool.snapshots : s.name => s.uri if s.uri != null }
  to       = bettercompute_snapshot.all[each.key]
  id       = each.value
}
resource "bettercompute_snapshot" "all" {
  for_each = toset(["a", "b"])
  name     = each.key
  volume   = "` + dataVolumeURI + `"
}`,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(`bettercompute_snapshot.all["b"]`, tfjsonpath.New("state"), text("ready")),
			},
		}, {Config: " "}},
	})
	if err := o.noSnapshots(nil); err != nil {
		t.Error(err)
	}
}
