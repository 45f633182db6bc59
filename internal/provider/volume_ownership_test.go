// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const volumeURI = "hetzner-cloud://root/main/web/volumes/data?token=env://" + tokenVariable

// volumeConflict is what a CONFLICT must say to be of use: the blocks to paste.
var volumeConflict = regexp.MustCompile(`(?s)CONFLICT: .*to = bettercompute_provider_volume\.THIS.*id\s+=\s+"hetzner-cloud://root/main/web/volumes/data\?token=env:`)

// makeForeignVolume makes a volume with the vendor's own client, as another tool does.
func (w *world) makeForeignVolume(name string, size int) int64 {
	w.t.Helper()
	made, _, err := w.api().Volume.Create(w.t.Context(), hcloud.VolumeCreateOpts{Name: name, Size: size, Location: &hcloud.Location{Name: "fsn1"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Volume.ID
}

const volumeForgotten = `
removed {
  from = bettercompute_provider_volume.data
  lifecycle {
    destroy = false
  }
}
`

const volumeImport = `
import {
  to = bettercompute_provider_volume.data
  id = "` + volumeURI + `"
}
`

func TestVolumeOfASecondBlockIsAConflict(t *testing.T) {
	w := newWorld(t)
	both := w.volume() + volumeBlock("twin", "data")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: both, ExpectError: volumeConflict},
			checkPending(func() { w.onlyVolume() }),
		},
	})
}

// Lost state with adopt = true never deletes a volume, whatever fails after the
// adoption; what was made from other inputs is not taken over.
func TestVolumeOfALostStateIsAdopted(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Volume
	adopting := func(lines ...string) string {
		return w.pool("adopt = true") + instanceBlock("web", "web-0") + volumeBlock("data", "data", append(lines, instanceURI)...)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.instance() + volumeBlock("data", "data", `filesystem = "ext4"`)},
			check(func() { before = w.onlyVolume() }),
			{Config: w.instance() + volumeForgotten},
			{Config: w.attached(`filesystem = "ext4"`), ExpectError: volumeConflict},
			{Config: adopting(`filesystem = "xfs"`), ExpectError: regexp.MustCompile(`(?s)CONFLICT: .*not\s+adopted.*filesystem`)},
			{
				// The attachment after the adoption fails.
				PreConfig: func() {
					w.fault(emulator.Rule{Service: "hetzner", Method: "POST", Path: "/v1/volumes/*/actions/attach", Kind: emulator.KindFailAction, Times: 1})
				},
				Config: adopting(`filesystem = "ext4"`), ExpectNonEmptyPlan: true,
			},
			{Config: adopting(`filesystem = "ext4"`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			check(func() {
				w.on()
				if v := w.onlyVolume(); v.ID != before.ID || v.Labels["better-compute.io/claim"] == before.Labels["better-compute.io/claim"] {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
		},
	})
}

func TestVolumeClaimedByAnotherStateIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	usurp := func() {
		v := w.onlyVolume()
		v.Labels["better-compute.io/claim"] = "anotherstate"
		w.hetzner.SetVolumeLabels(v.ID, v.Labels)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{PreConfig: usurp, Config: w.volume(`size_gib = 20`), ExpectError: regexp.MustCompile(`CONFLICT: `)},
			{Config: w.pool()}, // destroying only forgets it
			check(func() {
				if v := w.onlyVolume(); v.Size != 10 {
					t.Errorf("the volume is %+v", v)
				}
				w.lose()
			}),
		},
	})
}

func TestVolumeWithoutItsMarksIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	var labels map[string]string
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{
				PreConfig: func() {
					labels = w.onlyVolume().Labels
					w.hetzner.SetVolumeLabels(w.onlyVolume().ID, nil)
				},
				Config: w.pool(), ExpectError: regexp.MustCompile(`ACCESS_DENIED: `),
			},
			{PreConfig: func() { w.hetzner.SetVolumeLabels(w.onlyVolume().ID, labels) }, Config: w.volume()},
		},
	})
}

// A volume that something else made is imported by its name; the first update takes
// it over, and wipes nothing.
func TestVolumeImportOfAnUnmarkedOne(t *testing.T) {
	w := newWorld(t)
	id := w.makeForeignVolume("data", 30)
	w.hetzner.SetVolumeLabels(id, map[string]string{"foreign": "stays"})
	config := w.instance() + volumeBlock("data", "data", instanceURI, `size_gib = 30`, `filesystem = "ext4"`) + volumeImport
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{
				Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionUpdate),
						plancheck.ExpectUnknownValue(volumeResource, tfjsonpath.New("claim")),
						plancheck.ExpectKnownValue(volumeResource, tfjsonpath.New("volume_id"), text(strconv.FormatInt(id, 10))),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("claim", knownvalue.NotNull()), volumeHas("state", text("ready")), attachmentRows(attachmentOurs())},
			},
			check(func() {
				w.on()
				v := w.onlyVolume()
				if v.ID != id || v.Labels["foreign"] != "stays" || v.Labels["better-compute.io/complete"] != "true" {
					t.Errorf("the volume is %+v", v)
				}
			}),
		},
	})
}

// Ours are found by their key, whatever they are called, and what can't be read back
// is compared with what they were made from.
func TestVolumeImportOfOurs(t *testing.T) {
	w := newWorld(t)
	ours := []string{`filesystem = "ext4"`, `delete_with_instance = true`}
	var before hetzneremulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached(ours...)},
			check(func() { before = w.onlyVolume() }),
			{Config: w.instance() + volumeForgotten},
			{
				PreConfig: func() { w.hetzner.SetVolumeName(before.ID, "renamed") },
				Config:    w.attached(ours...) + volumeImport,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			check(func() {
				w.on()
				if v := w.onlyVolume(); v.ID != before.ID || v.Labels["better-compute.io/claim"] == before.Labels["better-compute.io/claim"] {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
			{Config: w.instance() + volumeForgotten},
			// Another filesystem is another volume, and what isn't taken over isn't replaced.
			{Config: w.attached(`filesystem = "xfs"`) + volumeImport, ExpectError: regexp.MustCompile(`INVALID_STATE: .*imported`)},
			{Config: w.attached(ours...) + volumeImport},
		},
	})
}

func TestVolumeImportMistakes(t *testing.T) {
	w := newWorld(t)
	w.makeForeignVolume("legacy", 10)
	uri := func(pool, name string) string {
		return "hetzner-cloud://root/main/" + pool + "/volumes/" + name + "?token=env://" + tokenVariable
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{RefreshState: true, PreConfig: func() {
				for name, test := range map[string]struct{ id, want string }{
					"an id":          {"pvol_0123456789abcdefghjkmnpqrs", `INVALID_INPUT: .*id`},
					"an instance":    {strings.Replace(uri("web", "data"), "volumes", "instances", 1), `INVALID_INPUT: `},
					"no such name":   {uri("web", "other"), `NOT_FOUND: `},
					"another pool's": {uri("db", "data"), `CONFLICT: .*another\s+pool`},
				} {
					t.Run(name, func(t *testing.T) {
						resource.Test(t, resource.TestCase{
							ProtoV6ProviderFactories: w.factories(),
							Steps: []resource.TestStep{{
								Config: w.volume(), ResourceName: volumeResource, ImportState: true, ImportStateId: test.id,
								ExpectError: regexp.MustCompile(`(?s)` + test.want),
							}},
						})
					})
				}
			}},
		},
	})
}

// "A name taken by a volume that is not this deployment's" is refused, and leaves
// nothing in the state.
func TestVolumeNameTakenInTheCloud(t *testing.T) {
	w := newWorld(t)
	w.makeForeignVolume("data", 10)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.volume(), ExpectError: regexp.MustCompile(`(?s)CONFLICT: .*import \{`)},
			{Config: w.pool(), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
			check(func() { w.onlyVolume() }),
		},
	})
}

// "One whose create answer was lost is looked up by name (never created to be
// deleted)": one volume, and no error.
func TestVolumeWhoseAnswerWasLostIsFound(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{
				PreConfig: func() {
					w.fault(emulator.Rule{Service: "hetzner", Method: "POST", Path: "/v1/volumes", Kind: emulator.KindLoseAnswer, Times: 1})
				},
				Config: w.attached(),
			},
			check(w.on),
		},
	})
}

// "A volume … whose create was refused is finished without a provider call": nothing
// is recorded, so nothing is destroyed.
func TestVolumeWhoseCreationWasRefusedLeavesNothing(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			{
				PreConfig: func() {
					w.fault(emulator.Rule{Service: "hetzner", Method: "POST", Path: "/v1/volumes", Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever})
				},
				Config: w.volume(), ExpectError: regexp.MustCompile(`PROVIDER_ERROR: `),
			},
			{
				PreConfig: w.forgetCalls, Config: w.pool(),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			check(w.untouched),
		},
	})
}
