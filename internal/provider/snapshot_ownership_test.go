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
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// snapshotConflict is what a CONFLICT must say to be of use: the block to paste.
var snapshotConflict = regexp.MustCompile(`(?s)CONFLICT: The snapshot "first" .*exists\s+already.*import \{\s+to = bettercompute_snapshot.THIS\s+id = "` +
	regexp.QuoteMeta(firstURI) + `".*moved \{`)

func claimOf(tags []string) string {
	for _, tag := range tags {
		if claim, ok := strings.CutPrefix(tag, "better-compute:claim:"); ok {
			return claim
		}
	}
	return ""
}

func TestSecondBlockWithTheSameSnapshotIsAConflict(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	twin := strings.Replace(firstSnapshot(), `"first" {`, `"twin" {`, 1)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{Config: firstSnapshot() + twin, ExpectError: snapshotConflict},
			checkPending(func() { o.oneSnapshot() }),
		},
	})
}

// A lost state makes the pool anew in the same run, so that its adopt counts, though
// a volume's uri doesn't hold it.
func TestLostSnapshotIsRecoveredByThePoolsAdopt(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	o.makeSnapshot(v, "first", true)
	before := o.oneSnapshot()
	const after = "depends_on = [bettercompute_pool.web]"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: oceanPool() + firstSnapshot(after), ExpectError: snapshotConflict},
			{Config: oceanPool("adopt = true") + firstSnapshot(after), ConfigStateChecks: []statecheck.StateCheck{snapshotHas("snapshot_id", text(before.ID))}},
			check(func() {
				if now := o.oneSnapshot(); now.ID != before.ID || claimOf(now.Tags) == claimOf(before.Tags) {
					t.Errorf("before %+v, after %+v", before, now)
				}
			}),
			// The state that took it over may delete it. The volume holds the pool.
			{Config: oceanPool("adopt = true")},
			check(func() {
				if left := o.cloud.VolumeSnapshots(); len(left) > 0 {
					t.Errorf("the cloud still has %+v", left)
				}
				o.cloud.DeleteVolume(v.ID)
			}),
		},
	})
}

// With the pool in the state the lost volume tells of its adopt.
func TestLostVolumeAndSnapshotAreRecoveredByThePoolsAdopt(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	pool := oceanPool("adopt = true")
	config := pool + volumeBlock("data", "data") + strings.Replace(firstSnapshot(), fmt.Sprintf("%q", dataVolumeURI), "bettercompute_provider_volume.data.uri", 1)
	var before oceanemulator.VolumeSnapshot
	var forget strings.Builder
	for _, address := range []string{volumeResource, snapshotResource} {
		fmt.Fprintf(&forget, "removed {\n  from = %s\n  lifecycle {\n    destroy = false\n  }\n}\n", address)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: config},
			check(func() { before = o.oneSnapshot() }),
			{Config: pool + forget.String()},
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{snapshotHas("state", text("ready"))}},
			check(func() {
				if now := o.oneSnapshot(); now.ID != before.ID || claimOf(now.Tags) == claimOf(before.Tags) {
					t.Errorf("before %+v, after %+v", before, now)
				}
			}),
		},
	})
}

// Of a volume that had the name before, a snapshot isn't what is asked for.
func TestSnapshotOfAnotherVolumeIsNotAdopted(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	old := o.makeVolume(oceanPoolURI, "fra1", "data")
	s := o.makeSnapshot(old, "first", true)
	o.cloud.DeleteVolume(old.ID)
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{
				Config:      oceanPool("adopt = true") + firstSnapshot("depends_on = [bettercompute_pool.web]"),
				ExpectError: regexp.MustCompile(`(?s)CONFLICT: .*not\s+adopted.*nothing\s+can\s+make\s+that\s+match`),
			},
			// The way that it names works.
			{Config: oceanPool("adopt = true") + importedFirst(), ConfigStateChecks: []statecheck.StateCheck{snapshotHas("snapshot_id", text(s.ID))}},
			// Its volume is named by a text, so that nothing would destroy it before the pool.
			{Config: oceanPool("adopt = true")},
			check(func() { o.cloud.DeleteVolume(v.ID) }),
		},
	})
}

// It is found by its key also when its volume is gone.
func TestSnapshotWithoutItsVolumeIsAdopted(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	o.makeSnapshot(v, "first", true)
	o.cloud.DeleteVolume(v.ID)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: oceanPool("adopt = true") + firstSnapshot("depends_on = [bettercompute_pool.web]"), ConfigStateChecks: []statecheck.StateCheck{snapshotHas("state", text("ready"))}},
		},
	})
}

func TestSnapshotClaimedByAnotherStateIsLeftAlone(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{
				PreConfig: func() {
					s := o.oneSnapshot()
					tags := slices.DeleteFunc(slices.Clone(s.Tags), func(tag string) bool { return strings.HasPrefix(tag, "better-compute:claim:") })
					o.cloud.SetVolumeSnapshotTags(s.ID, append(tags, "better-compute:claim:anotherstate")...)
				},
				Config: firstSnapshot(), ConfigPlanChecks: isEmptyPlan(),
			},
			{Config: " "}, // destroying only forgets it
			check(func() { o.oneSnapshot() }),
		},
	})
}

func TestSnapshotWithoutItsMarksIsNotDeleted(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	var tags []string
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{
				PreConfig: func() { s := o.oneSnapshot(); tags = s.Tags; o.cloud.SetVolumeSnapshotTags(s.ID) },
				Config:    " ", ExpectError: regexp.MustCompile(`ACCESS_DENIED: The snapshot "first"`),
			},
			checkPending(func() { o.cloud.SetVolumeSnapshotTags(o.oneSnapshot().ID, tags...) }),
		},
	})
}

// importedFirst is the snapshot "first" with the block that imports it.
func importedFirst() string {
	return firstSnapshot() + fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", snapshotResource, firstURI)
}

// Naming an object is the consent to manage it; taking it over shows in the plan.
func TestImportOfASnapshot(t *testing.T) {
	for name, marked := range map[string]bool{"another state's": true, "nobody's": false} {
		t.Run(name, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			v := o.makeVolume(oceanPoolURI, "fra1", "data")
			id := o.makeSnapshot(v, "first", marked).ID
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				CheckDestroy:             o.noSnapshots,
				Steps: []resource.TestStep{
					{
						Config: importedFirst(),
						ConfigPlanChecks: resource.ConfigPlanChecks{
							PreApply: []plancheck.PlanCheck{
								plancheck.ExpectResourceAction(snapshotResource, plancheck.ResourceActionUpdate),
								plancheck.ExpectUnknownValue(snapshotResource, tfjsonpath.New("claim")),
								plancheck.ExpectKnownValue(snapshotResource, tfjsonpath.New("snapshot_id"), text(id)),
							},
							PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
						},
						ConfigStateChecks: []statecheck.StateCheck{
							snapshotHas("state", text("ready")), snapshotHas("claim", knownvalue.NotNull()), snapshotHas("size_gib", knownvalue.Int64Exact(10)),
						},
					},
					check(func() {
						s := o.oneSnapshot()
						if claim := claimOf(s.Tags); s.ID != id || claim == "" || claim == "another-states" || !slices.Contains(s.Tags, "better-compute:complete") {
							t.Errorf("the snapshot is %+v", s)
						}
					}),
				},
			})
		})
	}
}

// A snapshot that outlived its volume is imported by its key.
func TestImportOfASnapshotWithoutItsVolume(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	o.makeSnapshot(v, "first", true)
	o.cloud.DeleteVolume(v.ID)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps:                    []resource.TestStep{{Config: importedFirst()}},
	})
}

// Until an import is applied nothing of it is changed or deleted.
func TestImportedSnapshotIsNeitherReplacedNorDeleted(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeSnapshot(o.makeVolume(oceanPoolURI, "fra1", "data"), "first", true)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{
				Config: firstSnapshot(), ResourceName: snapshotResource, ImportState: true, ImportStatePersist: true,
				ImportStateId: firstURI,
			},
			{Config: snapshotOf(dataVolumeURI, "renamed"), PlanOnly: true, ExpectError: regexp.MustCompile(`INVALID_STATE: The snapshot was imported`)},
			{Config: firstSnapshot(), Destroy: true, ExpectError: regexp.MustCompile(`INVALID_STATE: The snapshot "first" was imported`)},
			checkPending(func() { o.oneSnapshot() }),
			{Config: firstSnapshot()},
		},
	})
}

func TestSnapshotImportMistakes(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	o.makeSnapshot(v, "first", true)
	other := o.makeVolume("digitalocean://root/main/db"+oceanQuery, "fra1", "other")
	o.cloud.SetVolumeTags(other.ID)
	o.makeSnapshot(other, "theirs", false)
	in := func(path string) string { return "digitalocean://root/main/" + path + oceanQuery }
	for name, test := range map[string]struct{ id, want string }{
		"an id":             {"psnap_0123456789abcdefghjkmnpqrs", `INVALID_INPUT: .*id`},
		"a volume":          {dataVolumeURI, `INVALID_INPUT: `},
		"no such snapshot":  {in("web/volumes/data/snapshots/none"), `NOT_FOUND: The volume "data" has no snapshot "none"`},
		"no such volume":    {in("web/volumes/none/snapshots/first"), `NOT_FOUND: No snapshot carries the id`},
		"another pool's":    {in("db/volumes/data/snapshots/first"), `NOT_FOUND: No snapshot carries the id`},
		"a cloud without":   {"hetzner-cloud://root/main/web/volumes/data/snapshots/first?token=env://" + tokenVariable, `UNSUPPORTED: `},
		"a literal secret":  {"digitalocean://root/main/web/volumes/data/snapshots/first?region=fra1&token=dop_v1_literal", `INVALID_INPUT: `},
		"a foreign's, none": {in("web/volumes/other/snapshots/none"), `NOT_FOUND: The volume "other" has no snapshot "none"`},
	} {
		t.Run(name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				Steps: []resource.TestStep{{
					Config: firstSnapshot(), ResourceName: snapshotResource, ImportState: true, ImportStateId: test.id,
					ExpectError: regexp.MustCompile(`(?s)` + test.want),
				}},
			})
		})
	}
}

func TestSnapshotFollowsItsAccountInPlace(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	t.Setenv("BETTERCOMPUTE_TEST_TOKEN_2", token)
	moved := strings.ReplaceAll(firstSnapshot(), "env://"+tokenVariable, "env://BETTERCOMPUTE_TEST_TOKEN_2")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot()},
			{
				PreConfig: func() { o.changes() },
				Config:    moved,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(snapshotResource, plancheck.ResourceActionUpdate),
						plancheck.ExpectKnownValue(snapshotResource, tfjsonpath.New("uri"), text(strings.ReplaceAll(firstURI, tokenVariable, "BETTERCOMPUTE_TEST_TOKEN_2"))),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			check(func() { o.expectChanges() }),
		},
	})
}

func TestSnapshotOfAnAccountThatCannotBeRead(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	const variable = "BETTERCOMPUTE_TEST_TOKEN_GONE"
	t.Setenv(variable, token)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: strings.ReplaceAll(firstSnapshot(), tokenVariable, variable)},
			{PreConfig: func() { t.Setenv(variable, "") }, Config: firstSnapshot(), ConfigPlanChecks: snapshotAction(plancheck.ResourceActionUpdate)},
			check(func() { o.oneSnapshot() }),
		},
	})
}

// What isn't known yet never replaces: a volume that is replaced in the same run
// comes back under its uri.
func TestSnapshotOfAVolumeThatIsNotKnownYet(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	with := func(input string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"volume\" {\n  input = %q\n}\n", input) +
			strings.Replace(firstSnapshot(), fmt.Sprintf("%q", dataVolumeURI), "terraform_data.volume.output", 1)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: with(dataVolumeURI)},
			{
				// Another text for the same volume: its output is unknown in the plan.
				PreConfig: func() { o.changes() },
				Config:    strings.Replace(with(dataVolumeURI), "input = ", "triggers_replace = \"again\"\n  input = ", 1),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(snapshotResource, plancheck.ResourceActionUpdate),
					plancheck.ExpectUnknownValue(snapshotResource, tfjsonpath.New("uri")),
				}},
				ConfigStateChecks: []statecheck.StateCheck{snapshotHas("uri", text(firstURI))},
			},
			check(func() { o.expectChanges() }),
		},
	})
}

func TestImportOfASnapshotByIdentity(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	resource.ParallelTest(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.noSnapshots,
		Steps: []resource.TestStep{
			{Config: firstSnapshot(), ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectIdentityValueMatchesState(snapshotResource, tfjsonpath.New("uri")),
			}},
			{
				ResourceName: snapshotResource, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
				ExpectNonEmptyPlan: true,
			},
		},
	})
}
