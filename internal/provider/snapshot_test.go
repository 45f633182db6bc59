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
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const (
	snapshotResource = "bettercompute_snapshot.first"
	dataVolumeURI    = "digitalocean://root/main/web/volumes/data" + oceanQuery
	firstURI         = "digitalocean://root/main/web/volumes/data/snapshots/first" + oceanQuery
)

// snapshotOf is the configuration of a snapshot; the volume's uri is spelled out, so
// that the volume may be anybody's.
func snapshotOf(volumeURI, name string, lines ...string) string {
	return fmt.Sprintf("\nresource \"bettercompute_snapshot\" \"first\" {\n  volume = %q\n  name = %q\n  %s\n}\n", volumeURI, name, strings.Join(lines, "\n  "))
}

// firstSnapshot is the configuration of the snapshot "first" of the volume "data".
func firstSnapshot(lines ...string) string { return snapshotOf(dataVolumeURI, "first", lines...) }

func snapshotHas(name string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(snapshotResource, tfjsonpath.New(name), value)
}

func snapshotAction(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(snapshotResource, a)}}
}

func isEmptyPlan() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// expectChanges fails when the calls since the last time that change something
// aren't these: each is a pattern.
func (o *ocean) expectChanges(want ...string) {
	o.t.Helper()
	got := o.changes()
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && regexp.MustCompile("^"+want[i]+"$").MatchString(got[i])
	}
	if !ok {
		o.t.Errorf("made %v, want %v", got, want)
	}
}

func TestSnapshotFromFirstPlanToDestroy(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	id := reference.SnapshotID(v.Marks.Key, "first")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{
				Config: firstSnapshot(),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectKnownValue(snapshotResource, tfjsonpath.New("id"), text(id)),
						plancheck.ExpectKnownValue(snapshotResource, tfjsonpath.New("uri"), text(firstURI)),
						plancheck.ExpectUnknownValue(snapshotResource, tfjsonpath.New("snapshot_id")),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					snapshotHas("id", text(id)), snapshotHas("uri", text(firstURI)), snapshotHas("state", text("ready")), snapshotHas("message", knownvalue.Null()),
					snapshotHas("size_gib", knownvalue.Int64Exact(10)), snapshotHas("claim", knownvalue.NotNull()), snapshotHas("snapshot_id", knownvalue.NotNull()),
					snapshotHas("created_at", knownvalue.StringRegexp(regexp.MustCompile(`^20..-..-..T..:..:..Z$`))),
				},
			},
			check(func() {
				s := o.oneSnapshot()
				for _, tag := range []string{"better-compute", "better-compute:complete", "better-compute:key:" + id} {
					if s.Name != "first" || s.Volume != v.ID || !slices.Contains(s.Tags, tag) {
						t.Errorf("no tag %s: %+v", tag, s)
					}
				}
			}),
			// Another name is another snapshot.
			{Config: snapshotOf(dataVolumeURI, "second"), ConfigPlanChecks: snapshotAction(plancheck.ResourceActionDestroyBeforeCreate)},
			check(func() {
				if s := o.oneSnapshot(); s.Name != "second" {
					t.Errorf("the cloud has %+v", s)
				}
			}),
		},
	})
	if len(o.cloud.Volumes()) != 1 {
		t.Errorf("the volume is gone too: %+v", o.cloud.Volumes())
	}
}

// "A pool whose provider offers no volumes is UNSUPPORTED", and so are snapshots,
// at plan time, whether the volume is there or not.
func TestSnapshotsAreUnsupportedWhereTheCloudHasNone(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{{
			Config:   snapshotOf("hetzner-cloud://root/main/web/volumes/data?token=env://"+tokenVariable, "first"),
			PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)UNSUPPORTED: Hetzner Cloud has no snapshots of volumes.*reason:\s+snapshots`),
		}},
	})
	if calls := o.calls(); len(calls) > 0 {
		t.Errorf("it took %v", calls)
	}
}

func TestSnapshotMistakes(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"a capital":       {snapshotOf(dataVolumeURI, "First"), `INVALID_INPUT: A snapshot name is`},
		"a digit first":   {snapshotOf(dataVolumeURI, "1st"), `INVALID_INPUT: A snapshot name is`},
		"a hyphen last":   {snapshotOf(dataVolumeURI, "first-"), `INVALID_INPUT: A snapshot name is`},
		"43 characters":   {snapshotOf(dataVolumeURI, strings.Repeat("a", 43)), `INVALID_INPUT: A snapshot name is`},
		"a volume's id":   {snapshotOf("pvol_0123456789abcdefghjkmnpqrs", "first"), `INVALID_INPUT: volume: This is the id of a volume, not a uri`},
		"a pool's uri":    {snapshotOf(oceanPoolURI, "first"), `INVALID_INPUT: volume: This is the uri of a pool`},
		"no length":       {firstSnapshot(`timeouts = { create = "soon" }`), `INVALID_INPUT: A timeout is`},
		"a missing label": {"resource \"bettercompute_snapshot\" \"first\" {\n  name = \"first\"\n}\n", `volume`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				Steps:                    []resource.TestStep{{Config: test.config, PlanOnly: true, ExpectError: regexp.MustCompile(test.want)}},
			})
		})
	}
}

// "A retry with the same idempotencyKey returns the same snapshot", which is one
// whose answer was lost.
func TestSnapshotWhoseAnswerWasLostIsMadeOnce(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	if err := o.cloud.AddFault(emulator.Rule{Service: "digitalocean", Method: "POST", Path: "/v2/volumes/*/snapshots", Kind: emulator.KindLoseAnswer, Nth: 1, Times: 1}); err != nil {
		t.Fatal(err)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot(), ConfigStateChecks: []statecheck.StateCheck{snapshotHas("state", text("ready"))}},
			check(func() { o.oneSnapshot() }),
		},
	})
}

// "A volume has at most 25 snapshots that are not deleted (QUOTA_EXCEEDED)." The plan
// warns, since it may delete another one too; the apply asks for nothing.
func TestAVolumeHasAtMost25Snapshots(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	for i := range backends.MaxSnapshots {
		o.makeSnapshot(v, fmt.Sprintf("s-%d", i), i%2 == 0)
	}
	o.changes()
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: firstSnapshot(), ExpectError: regexp.MustCompile(`QUOTA_EXCEEDED: The volume .* has 25 snapshots`)},
			{
				PreConfig: func() {
					o.expectChanges()
					o.cloud.DeleteVolumeSnapshot(o.cloud.VolumeSnapshots()[0].ID)
				},
				Config: firstSnapshot(),
			},
			// At the limit its own place is free for a replacement.
			{Config: snapshotOf(dataVolumeURI, "renamed"), ConfigPlanChecks: snapshotAction(plancheck.ResourceActionDestroyBeforeCreate)},
		},
	})
	if left := len(o.cloud.VolumeSnapshots()); left != backends.MaxSnapshots-1 {
		t.Errorf("%d snapshots are left", left)
	}
}

// "The name is unique among them (CONFLICT)": of the volume, whoever made them, and
// known in the plan.
func TestSnapshotNamesAreUniqueOnTheirVolume(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	o.makeSnapshot(v, "first", false)
	o.makeSnapshot(o.makeVolume(oceanPoolURI, "fra1", "other"), "second", false)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{
				Config: firstSnapshot(), PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)CONFLICT: The name "first" is taken.*import \{.*to = bettercompute_snapshot.THIS\s+id = "` + regexp.QuoteMeta(firstURI)),
			},
			{Config: snapshotOf(dataVolumeURI, "second")},
		},
	})
}

func TestSnapshotOfAVolumeThatIsNotThere(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			// Another part of the plan may make it.
			{Config: firstSnapshot(), PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: firstSnapshot(), ExpectError: regexp.MustCompile(`NOT_FOUND: The volume "data" isn't in the cloud`)},
		},
	})
	o.expectChanges()
}

// A snapshot outlives its volume, and a volume that is made again under its name
// leaves it as it is.
func TestASnapshotOutlivesItsVolume(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{
				PreConfig:         func() { o.cloud.DeleteVolume(v.ID); o.changes() },
				Config:            firstSnapshot(),
				ConfigPlanChecks:  isEmptyPlan(),
				ConfigStateChecks: []statecheck.StateCheck{snapshotHas("state", text("ready"))},
			},
			{
				PreConfig:        func() { o.makeVolume(oceanPoolURI, "fra1", "data"); o.changes() },
				Config:           firstSnapshot(),
				ConfigPlanChecks: isEmptyPlan(),
			},
			check(func() {
				o.expectChanges()
				if s := o.oneSnapshot(); s.Volume != v.ID {
					t.Errorf("the cloud has %+v", s)
				}
			}),
		},
	})
}

// "Lost data is loud": gone outside it is in error; no plan makes it again or
// makes a call, whatever is edited; destroy makes none; -replace makes a new one.
func TestSnapshotDeletedOutsideIsAnErrorAndIsNotMadeAgain(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	lost := func() { o.cloud.DeleteVolumeSnapshot(o.oneSnapshot().ID); o.changes() }
	gone := []statecheck.StateCheck{
		snapshotHas("state", text("error")), snapshotHas("message", knownvalue.StringRegexp(regexp.MustCompile("isn't in the cloud"))),
		snapshotHas("name", text("first")), snapshotHas("snapshot_id", knownvalue.NotNull()), snapshotHas("size_gib", knownvalue.Int64Exact(10)),
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{PreConfig: lost, Config: firstSnapshot(), ConfigPlanChecks: isEmptyPlan(), ConfigStateChecks: gone},
			// Another name, another volume: nothing is made or called.
			{Config: snapshotOf(dataVolumeURI, "renamed"), ConfigPlanChecks: snapshotAction(plancheck.ResourceActionNoop), ConfigStateChecks: gone},
			{
				Config:           snapshotOf("digitalocean://root/main/web/volumes/other"+oceanQuery, "first"),
				ConfigPlanChecks: snapshotAction(plancheck.ResourceActionNoop), ConfigStateChecks: gone,
			},
			// What is in the state only is recorded.
			{
				Config:           firstSnapshot(`timeouts = { create = "30m" }`),
				ConfigPlanChecks: snapshotAction(plancheck.ResourceActionUpdate), ConfigStateChecks: gone,
			},
			{PreConfig: func() { o.expectChanges() }, Config: firstSnapshot(), Taint: []string{snapshotResource}},
			check(func() {
				o.expectChanges("POST /v2/volumes/.*/snapshots", "POST /v2/tags/better-compute:complete/resources")
				lost()
			}),
			{Config: " "},
		},
	})
	o.expectChanges()
}

func TestSnapshotIsAnotherWithAnotherVolume(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	other := o.makeVolume(oceanPoolURI, "fra1", "other")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{
				Config:           snapshotOf("digitalocean://root/main/web/volumes/other"+oceanQuery, "first"),
				ConfigPlanChecks: snapshotAction(plancheck.ResourceActionDestroyBeforeCreate),
			},
			check(func() {
				if s := o.oneSnapshot(); s.Volume != other.ID {
					t.Errorf("the cloud has %+v", s)
				}
			}),
		},
	})
}

// Replacing the volume leaves its
// snapshots, since its uri stays.
func TestReplacingAVolumeLeavesItsSnapshots(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	config := func(filesystem string) string {
		return oceanPool() + volumeBlock("data", "data", `filesystem = "`+filesystem+`"`) + `
resource "bettercompute_snapshot" "first" {
  volume = bettercompute_provider_volume.data.uri
  name   = "first"
}
`
	}
	var before oceanemulator.VolumeSnapshot
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{
				Config: config("ext4"),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue(snapshotResource, tfjsonpath.New("uri"), text(firstURI))},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			check(func() { before = o.oneSnapshot() }),
			{
				Config: config("xfs"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionDestroyBeforeCreate),
					plancheck.ExpectResourceAction(snapshotResource, plancheck.ResourceActionNoop),
				}},
			},
			check(func() {
				if after := o.oneSnapshot(); after.ID != before.ID || after.Volume != before.Volume {
					t.Errorf("before %+v, after %+v", before, after)
				}
				if volumes := o.cloud.Volumes(); len(volumes) != 1 || volumes[0].ID == before.Volume {
					t.Errorf("the volumes are %+v", volumes)
				}
			}),
		},
	})
	if left := o.cloud.Volumes(); len(left) > 0 {
		t.Errorf("the cloud still has %+v", left)
	}
}
