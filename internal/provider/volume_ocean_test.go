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

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// oceanInstance is one Droplet of the pool; lines replace those with the same
// attribute.
func oceanInstance(label, name string, lines ...string) string {
	return instanceBlock(label, name, replaceLines([]string{`offer = "s-1vcpu-1gb"`, `image = "ubuntu-24-04-x64"`}, lines)...)
}

// gone fails when DigitalOcean has anything, after a destroy.
func (o *ocean) gone(*terraform.State) error {
	if v, s, d := o.cloud.Volumes(), o.cloud.Shares(), o.cloud.Droplets(); len(v)+len(s)+len(d) > 0 {
		return fmt.Errorf("the cloud still has %+v %+v %+v", v, s, d)
	}
	return nil
}

func (o *ocean) oneVolume() oceanemulator.Volume {
	o.t.Helper()
	all := o.cloud.Volumes()
	if len(all) != 1 {
		o.t.Fatalf("the cloud has %d volumes: %+v", len(all), all)
	}
	return all[0]
}

func (o *ocean) oneShare() oceanemulator.Share {
	o.t.Helper()
	all := o.cloud.Shares()
	if len(all) != 1 {
		o.t.Fatalf("the cloud has %d shares: %+v", len(all), all)
	}
	return all[0]
}

func (o *ocean) droplet(name string) oceanemulator.Droplet {
	o.t.Helper()
	for _, d := range o.cloud.Droplets() {
		if d.Name == name {
			return d
		}
	}
	o.t.Fatalf("the cloud has no Droplet %s", name)
	return oceanemulator.Droplet{}
}

// The same blocks as on Hetzner; here the cloud derives the device from the name, so
// that it is known in the plan, and keeps a description.
func TestVolumeOnDigitalOcean(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	two := oceanPool() + oceanInstance("web", "web-0") + oceanInstance("second", "web-1")
	data := func(lines ...string) string {
		return two + volumeBlock("data", "data", append([]string{`filesystem = "ext4"`, `description = "the data"`, `labels = { role = "db" }`}, lines...)...)
	}
	var before oceanemulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.gone,
		Steps: []resource.TestStep{
			{
				Config: data(instanceURI),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectKnownValue(volumeResource, tfjsonpath.New("device"), text("/dev/disk/by-id/scsi-0DO_Volume_data")),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					volumeHas("state", text("ready")), volumeHas("region", text("fra1")), volumeHas("observed_size_gib", number(10)), attachmentRows(attachmentOurs()),
				},
			},
			check(func() {
				before = o.oneVolume()
				if before.Droplet != o.droplet("web-0").ID || before.FilesystemType != "ext4" || before.Description != "the data" {
					t.Errorf("the volume is %+v", before)
				}
			}),
			{
				Config:           data(`size_gib = 20`, `instances = [bettercompute_instance.second.uri]`),
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{volumeHas("observed_size_gib", number(20))},
			},
			check(func() {
				if v := o.oneVolume(); v.ID != before.ID || v.Droplet != o.droplet("web-1").ID || v.Size != 20 {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{PreConfig: func() { o.cloud.AttachVolume(before.ID, 0) }, Config: data(`size_gib = 20`, `instances = [bettercompute_instance.second.uri]`)},
			check(func() {
				if v := o.oneVolume(); v.Droplet != o.droplet("web-1").ID {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{
				PreConfig: func() { o.cloud.DeleteVolume(before.ID); o.changes() }, Config: data(`size_gib = 30`, instanceURI),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{notReplaced{}}},
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("error"))},
			},
			check(func() { o.expectChanges() }),
		},
	})
}

// "On DigitalOcean, the Droplet's selective destroy names it".
func TestVolumeGoesWithItsDroplet(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	goes := volumeBlock("data", "data", `delete_with_instance = true`, instanceURI)
	var before oceanemulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.gone,
		Steps: []resource.TestStep{
			{Config: oceanPool() + oceanInstance("web", "web-0") + goes},
			check(func() { before = o.oneVolume() }),
			{
				Config:           oceanPool() + oceanInstance("web", "web-0", `image = "debian-12-x64"`) + goes,
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionDestroyBeforeCreate),
			},
			check(func() {
				if v := o.oneVolume(); v.ID == before.ID || v.Droplet != o.droplet("web-0").ID {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{Config: oceanPool() + oceanInstance("web", "web-0", `image = "debian-12-x64"`) + volumeForgotten},
			{PreConfig: func() { o.changes() }, Config: oceanPool()},
			{PreConfig: func() {
				if volumes := o.cloud.Volumes(); len(volumes) > 0 {
					t.Errorf("the cloud has %+v", volumes)
				}
				for i, c := range o.changes() {
					if selective := strings.HasSuffix(c, "/destroy_with_associated_resources/selective"); selective != (i == 0) || strings.HasPrefix(c, "DELETE /v2/volumes") {
						t.Errorf("call %d is %s", i, c)
					}
				}
			}, Config: oceanPool()},
		},
	})
}

// A volume from a snapshot is grown to the size asked; what from_snapshot says later
// is recorded, and never replaces.
func TestVolumeFromASnapshot(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	source := oceanPool() + volumeBlock("data", "data") + "\nresource \"bettercompute_snapshot\" \"first\" {\n  volume = bettercompute_provider_volume.data.uri\n  name = \"first\"\n}\n"
	from := `from_snapshot = bettercompute_snapshot.first.uri`
	var made string
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.gone,
		Steps: []resource.TestStep{
			// Everything in one apply: the snapshot isn't there when it is planned.
			{Config: source + volumeBlock("copy", "copy", from, `size_gib = 15`)},
			check(func() {
				all := o.cloud.Volumes()
				if len(all) != 2 || all[1].Name != "copy" || all[1].Size != 15 {
					t.Errorf("the cloud has %+v", all)
				}
				made = all[1].ID
			}),
			{
				PreConfig: func() { o.changes() }, Config: source + volumeBlock("copy", "copy", `size_gib = 15`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("bettercompute_provider_volume.copy", plancheck.ResourceActionUpdate),
				}},
			},
			check(func() {
				if all := o.cloud.Volumes(); len(all) != 2 || all[1].ID != made {
					t.Errorf("the cloud has %+v", all)
				}
				o.expectChanges()
			}),
			{Config: source + volumeBlock("copy", "copy", `size_gib = 15`) + volumeBlock("small", "small", from, `size_gib = 9`), PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)INVALID_INPUT: .*needs\s+10\s+GiB.*reason: size`)},
			{Config: source + volumeBlock("copy", "copy", `size_gib = 15`) + volumeBlock("far", "far", from, `region = "nyc3"`), PlanOnly: true,
				ExpectError: regexp.MustCompile(`INVALID_INPUT: .*region\s+fra1`)},
			{
				Config: source + volumeBlock("copy", "copy", `size_gib = 15`) +
					volumeBlock("none", "none", `from_snapshot = "digitalocean://root/main/web/volumes/data/snapshots/other`+oceanQuery+`"`),
				ExpectError: regexp.MustCompile(`INVALID_INPUT: .*no\s+snapshot\s+"other"`),
			},
			{PreConfig: func() { o.expectChanges() }, Config: source},
		},
	})
}

// share is a shared volume of the pool in a VPC; lines replace those with the same
// attribute.
func share(vpc string, lines ...string) string {
	return volumeBlock("data", "data", replaceLines([]string{
		`kind = "shared"`, `size_gib = 50`, fmt.Sprintf("region = %q", oceanShareRegion), fmt.Sprintf("network_id = %q", vpc),
	}, lines)...)
}

// "A shared volume attaches to any number of instances, each at most once; the
// instance must be on the volume's network (INVALID_INPUT)"; "shows its networkId,
// every attachment as attachments, and mount".
func TestVolumeSharedByInstancesOfItsNetwork(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	vpc := o.cloud.AddVPC("files", oceanShareRegion)
	on := []string{fmt.Sprintf("region = %q", oceanShareRegion), fmt.Sprintf("network_id = %q", vpc)}
	off := on[:1]
	three := oceanPool() + oceanInstance("web", "web-0", on...) + oceanInstance("second", "web-1", on...) + oceanInstance("third", "web-2", off...)
	both := `instances = [bettercompute_instance.web.uri, bettercompute_instance.second.uri]`
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.gone,
		Steps: []resource.TestStep{
			{
				Config:           three + share(vpc, both),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{
					volumeHas("state", text("ready")), volumeHas("network_id", text(vpc)), volumeHas("device", knownvalue.Null()),
					volumeHas("mount", knownvalue.ObjectExact(map[string]knownvalue.Check{
						"source": knownvalue.StringRegexp(regexp.MustCompile(`^[0-9.]+:/`)), "type": text("nfs4"),
					})),
					attachmentRows(attachmentOurs(), attachmentOurs()),
				},
			},
			{
				PreConfig: func() { o.changes() }, Config: three + share(vpc, instanceURI), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{attachmentRows(attachmentOurs())},
			},
			check(func() { o.expectChanges() }),
			{
				Config: three + share(vpc, `instances = [bettercompute_instance.third.uri]`), PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)INVALID_INPUT: .*is\s+on\s+the\s+network`),
			},
			{
				Config: three + share(vpc, instanceURI, `size_gib = 100`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("observed_size_gib", number(100))},
			},
			// A machine that is gone mounts nothing: the plan brings it back.
			{PreConfig: func() { o.cloud.Delete(o.droplet("web-0").ID) }, Config: three + share(vpc, instanceURI, `size_gib = 100`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			check(func() { o.oneShare() }),
			// Deleted outside, it is as lost as a block volume.
			{
				PreConfig: func() { o.cloud.DeleteShare(o.oneShare().ID); o.changes() }, Config: three + share(vpc, instanceURI, `size_gib = 200`),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{notReplaced{}}},
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("error"))},
			},
			check(func() { o.expectChanges() }),
		},
	})
}

// A share that failed shows as error, with a message, and is destroyed.
func TestVolumeSharedThatFailedIsShownAndDestroyed(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	vpc := o.cloud.AddVPC("files", oceanShareRegion)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.gone,
		Steps: []resource.TestStep{
			{Config: oceanPool() + share(vpc)},
			{
				PreConfig: func() { o.cloud.SetShareStatus(o.oneShare().ID, "FAILED") }, Config: oceanPool() + share(vpc),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{volumeHas("state", text("error")), volumeHas("message", knownvalue.NotNull())},
			},
			{Config: oceanPool()},
			check(func() {
				if shares := o.cloud.Shares(); len(shares) > 0 {
					t.Errorf("the cloud has %+v", shares)
				}
			}),
		},
	})
}

// A share is imported by its uri; its claim is in its name, and recorded as it is.
func TestVolumeSharedIsImported(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	vpc := o.cloud.AddVPC("files", oceanShareRegion)
	id := "digitalocean://root/main/web/volumes/data" + oceanQuery
	var before oceanemulator.Share
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: o.factories(),
		CheckDestroy:             o.gone,
		Steps: []resource.TestStep{
			{Config: oceanPool() + share(vpc)},
			check(func() { before = o.oneShare() }),
			{Config: oceanPool() + volumeForgotten},
			{
				Config:           oceanPool() + share(vpc) + fmt.Sprintf("\nimport {\n  to = %s\n  id = %q\n}\n", volumeResource, id),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			check(func() {
				if s := o.oneShare(); s.ID != before.ID {
					t.Errorf("the share was %+v and is %+v", before, s)
				}
			}),
		},
	})
}

// The rules of providerVolumes.create for shared volumes, at plan time.
func TestVolumeSharedInputsAreRefusedAtPlanTime(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"no network":           {[]string{`network_id = null`}, `INVALID_INPUT: .*network_id`},
		"filesystem":           {[]string{`filesystem = "ext4"`}, `INVALID_INPUT: .*filesystem`},
		"delete_with_instance": {[]string{`delete_with_instance = true`}, `INVALID_INPUT: `},
		"under 50 GiB":         {[]string{`size_gib = 49`}, `INVALID_INPUT: .*50\s+GiB`},
		"another region":       {[]string{`region = "fra1"`}, `INVALID_INPUT: `},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			config := oceanPool() + share(o.cloud.AddVPC("files", oceanShareRegion), test.lines...)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: o.factories(),
				Steps: []resource.TestStep{
					{Config: config, PlanOnly: true, ExpectError: regexp.MustCompile(test.want)},
					{Config: oceanPool()},
					check(func() { o.expectChanges() }),
				},
			})
		})
	}
}

// Another cloud's options are refused, and two clouds' too.
func TestVolumeOptionsAreOfThePoolsCloud(t *testing.T) {
	w := newOcean(t, oceanemulator.Options{})
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{
				Config: w.volume(`digitalocean = { tags = ["db"] }`), PlanOnly: true,
				ExpectError: regexp.MustCompile(`INVALID_INPUT: .*Hetzner\s+Cloud,\s+which\s+takes\s+no\s+digitalocean`),
			},
			{
				Config: oceanPool() + volumeBlock("data", "data", `digitalocean = { tags = ["b c"] }`), PlanOnly: true,
				ExpectError: regexp.MustCompile(`INVALID_INPUT: .*tag\s+"b c"`),
			},
			{Config: w.pool()},
		},
	})
}
