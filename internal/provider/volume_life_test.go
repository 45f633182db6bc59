// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const volumeResource = "bettercompute_provider_volume.data"

// volumeBlock is one volume of the pool; lines replace those with the same attribute.
func volumeBlock(label, name string, lines ...string) string {
	attributes := []string{fmt.Sprintf("name = %q", name), `pool = bettercompute_pool.web.uri`, `size_gib = 10`}
	for _, line := range lines {
		key, _, _ := strings.Cut(line, " ")
		for i, a := range attributes {
			if strings.HasPrefix(a, key+" ") {
				attributes[i] = ""
			}
		}
		attributes = append(attributes, line)
	}
	return fmt.Sprintf("\nresource \"bettercompute_provider_volume\" %q {\n  %s\n}\n", label, strings.Join(attributes, "\n  "))
}

// volume is the configuration of an account, a pool and the volume data in it.
func (w *world) volume(lines ...string) string {
	return w.pool() + volumeBlock("data", "data", lines...)
}

// attached is the volume data on the instance web-0; lines are put into the volume.
func (w *world) attached(lines ...string) string {
	return w.instance() + volumeBlock("data", "data", append([]string{`instances = [bettercompute_instance.web.uri]`}, lines...)...)
}

func volumeAction(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(volumeResource, a)}}
}

func volumeHas(name string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(volumeResource, tfjsonpath.New(name), value)
}

func number(n int64) knownvalue.Check { return knownvalue.Int64Exact(n) }

// onlyVolume is the one volume of the cloud.
func (w *world) onlyVolume() hetzneremulator.Volume {
	w.t.Helper()
	volumes := w.hetzner.Volumes()
	if len(volumes) != 1 {
		w.t.Fatalf("the cloud has %d volumes: %+v", len(volumes), volumes)
	}
	return volumes[0]
}

// noVolumes fails when the cloud has servers or volumes, after a destroy.
func (w *world) noVolumes(s *terraform.State) error {
	if volumes := w.hetzner.Volumes(); len(volumes) > 0 {
		return fmt.Errorf("the cloud still has %+v", volumes)
	}
	return w.empty(s)
}

// on fails unless the volume is attached to the one server.
func (w *world) on() {
	w.t.Helper()
	if v, s := w.onlyVolume(), w.only(); v.Server != s.ID {
		w.t.Errorf("the volume is on %d, the server is %d", v.Server, s.ID)
	}
}

// attachments checks the attribute as a list of rows.
func attachmentRows(rows ...knownvalue.Check) statecheck.StateCheck {
	return volumeHas("attachments", knownvalue.ListExact(rows))
}

func attachmentOurs() knownvalue.Check {
	return knownvalue.ObjectExact(map[string]knownvalue.Check{
		"instance_id": knownvalue.StringRegexp(regexp.MustCompile(`^inst_`)), "machine_id": knownvalue.NotNull(),
		"state": text("attached"), "desired_state": text("attached"),
	})
}

func TestVolumeFromFirstPlanToDestroy(t *testing.T) {
	w := newWorld(t)
	pool := reference.PoolID(reference.AccountID("root", "hetzner-cloud", "main"), "web")
	id, uri := reference.VolumeID(pool, "data"), "hetzner-cloud://root/main/web/volumes/data?token=env://"+tokenVariable
	config := w.attached(`filesystem = "ext4"`, `labels = { role = "db" }`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{
				Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionCreate),
						plancheck.ExpectKnownValue(volumeResource, tfjsonpath.New("id"), text(id)),
						plancheck.ExpectKnownValue(volumeResource, tfjsonpath.New("uri"), text(uri)),
						plancheck.ExpectKnownValue(volumeResource, tfjsonpath.New("region"), text("fsn1")),
						plancheck.ExpectUnknownValue(volumeResource, tfjsonpath.New("device")),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					volumeHas("id", text(id)), volumeHas("uri", text(uri)), volumeHas("state", text("ready")), volumeHas("message", knownvalue.Null()),
					volumeHas("kind", text("block")), volumeHas("observed_size_gib", number(10)), volumeHas("claim", knownvalue.NotNull()),
					volumeHas("device", knownvalue.StringRegexp(regexp.MustCompile(`^/dev/disk/by-id/scsi-0HC_Volume_\d+$`))),
					volumeHas("volume_id", knownvalue.NotNull()), volumeHas("mount", knownvalue.Null()), attachmentRows(attachmentOurs()),
				},
			},
			check(func() {
				w.on()
				v := w.onlyVolume()
				if v.Name != "data" || v.Size != 10 || v.Format != "ext4" || v.Labels["role"] != "db" ||
					v.Labels["better-compute.io/complete"] != "true" || v.Labels["better-compute.io/idempotency-key"] != id {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{Config: config, PlanOnly: true},
		},
	})
}

// "Grows the volume to sizeGiB": in place, attached or not.
func TestVolumeGrowsInPlaceAttachedOrNot(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached()},
			check(func() { before = w.onlyVolume() }),
			{
				Config: w.attached(`size_gib = 20`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("observed_size_gib", number(20)), volumeHas("state", text("ready"))},
			},
			{Config: w.instance() + volumeBlock("data", "data", `size_gib = 20`, `instances = []`)},
			{Config: w.instance() + volumeBlock("data", "data", `size_gib = 30`, `instances = []`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			check(func() {
				if v := w.onlyVolume(); v.ID != before.ID || v.Size != 30 || v.Server != 0 {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
		},
	})
}

// "A smaller size is INVALID_INPUT": at plan time, before any call.
func TestVolumeShrinkingIsRefusedAtPlanTime(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume(`size_gib = 20`)},
			{Config: w.volume(`size_gib = 10`), PlanOnly: true, ExpectError: regexp.MustCompile(`INVALID_INPUT: .*20 GiB and can't shrink to 10`)},
			{Config: w.volume(`size_gib = 20`), PlanOnly: true},
		},
	})
}

func TestVolumeGrownOutsideIsNoChange(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{PreConfig: func() { w.hetzner.SetVolumeSize(w.onlyVolume().ID, 50) }, Config: w.volume(), PlanOnly: true},
			{
				Config: w.volume(`size_gib = 40`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("observed_size_gib", number(50)), volumeHas("size_gib", number(40))},
			},
			{Config: w.volume(`size_gib = 60`), ConfigStateChecks: []statecheck.StateCheck{volumeHas("observed_size_gib", number(60))}},
		},
	})
}

func TestVolumeIsReplacedForWhatItIsMadeFrom(t *testing.T) {
	for name, line := range map[string]string{
		"region": `region = "nbg1"`, "filesystem": `filesystem = "xfs"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var before hetzneremulator.Volume
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				CheckDestroy:             w.noVolumes,
				Steps: []resource.TestStep{
					{Config: w.volume(`filesystem = "ext4"`)},
					check(func() { before = w.onlyVolume() }),
					{Config: w.volume(`filesystem = "ext4"`, line), ConfigPlanChecks: volumeAction(plancheck.ResourceActionDestroyBeforeCreate)},
					check(func() {
						if v := w.onlyVolume(); v.ID == before.ID {
							t.Errorf("the volume is still %+v", v)
						}
					}),
				},
			})
		})
	}
}

// "It is never changed later": the filesystem is recorded, and removing it from the
// configuration wipes nothing.
func TestVolumeFilesystemLeftOutIsHandsOff(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume(`filesystem = "ext4"`)},
			check(func() { before = w.onlyVolume() }),
			{Config: w.volume(), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			{Config: w.volume(`filesystem = "ext4"`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			check(func() {
				if v := w.onlyVolume(); v.ID != before.ID {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
			}),
		},
	})
}

func TestVolumeInputsOfCreationAreRecordedOnly(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume()},
			{
				PreConfig: w.forgetCalls,
				Config:    w.volume(`description = "data"`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
			},
			check(func() {
				for _, c := range w.calls() {
					if !strings.HasPrefix(c, "GET ") {
						t.Errorf("recording made the call %s", c)
					}
				}
			}),
		},
	})
}

// The account's uri changes; the volume's follows, without a call that changes it.
func TestVolumeFollowsItsAccount(t *testing.T) {
	w := newWorld(t)
	other := strings.Replace(w.attached(), "token = ", "location = \"nbg1\"\n    token = ", 1)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached()},
			{
				PreConfig: w.forgetCalls, Config: other, ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{
					volumeHas("uri", knownvalue.StringRegexp(regexp.MustCompile(`/volumes/data\?location=nbg1&`))), volumeHas("region", text("fsn1")),
				},
			},
			check(func() {
				w.on()
				for _, c := range w.calls() {
					if !strings.HasPrefix(c, "GET ") {
						t.Errorf("following the account made the call %s", c)
					}
				}
			}),
		},
	})
}

func TestVolumeLimitOfThePool(t *testing.T) {
	w := newWorld(t)
	limited := w.pool(`limits = { disk_gib = 15 }`)
	over := regexp.MustCompile(`QUOTA_EXCEEDED`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: limited + volumeBlock("data", "data", `size_gib = 20`), ExpectError: over},
			{Config: limited + volumeBlock("data", "data")},
			{Config: limited + volumeBlock("data", "data", `size_gib = 20`), ExpectError: over},
			checkPending(func() {
				if v := w.onlyVolume(); v.Size != 10 {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{Config: w.pool(`limits = { disk_gib = 20 }`) + volumeBlock("data", "data", `size_gib = 20`)},
			check(func() {
				if v := w.onlyVolume(); v.Size != 20 {
					t.Errorf("the volume is %+v", v)
				}
			}),
		},
	})
}
