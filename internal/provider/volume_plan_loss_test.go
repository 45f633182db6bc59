// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

const dataIsLost = `The volume's data is lost: "data"`

// Every replacement says that the data is lost, of which volume, and why.
func TestVolumeReplacementWarnsOfLostData(t *testing.T) {
	cloud := newWorld(t)
	w := cloud.wire()
	instance, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
	instance = done(t, instance, diags)
	attached := onInstances(instance.text(t, "uri"))
	attached["delete_with_instance"] = tftypes.NewValue(tftypes.Bool, true)
	volume, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, attached))
	volume = done(t, volume, diags)
	id := volume.text(t, "volume_id")
	with := func(more map[string]tftypes.Value) tftypes.Value {
		given := maps.Clone(attached)
		maps.Copy(given, more)
		return volumeConfig(w, given)
	}

	_, diags = w.plan(volumeType, volume, with(map[string]tftypes.Value{"size_gib": tftypes.NewValue(tftypes.Number, 20)}))
	contains(t, "grown", warned(diags), nil)
	other := map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, "other"), "region": tftypes.NewValue(tftypes.String, "nbg1")}
	_, diags = w.plan(volumeType, volume, with(other))
	contains(t, "replaced", warned(diags), []string{dataIsLost, id, "What forces it: region."})
	_, diags = w.plan(volumeType, volume, with(onInstances()))
	contains(t, "taken from its instance", warned(diags), []string{`The volume's data goes with the instance: "data"`})
	if strings.Contains(warned(diags), dataIsLost) {
		t.Errorf("said twice: %s", warned(diags))
	}

	cloud.lose()
	w = cloud.wire()
	gone, diags := w.read(volumeType, volume)
	contains(t, "gone", warned(diags), []string{`NOT_FOUND: the volume is gone: "data"`})
	_, diags = w.plan(volumeType, gone, with(other))
	contains(t, "gone, and changed", warned(diags), nil)
}

// What filesystem is on a volume that something else made, nobody recorded: to write
// it down later is no reason to destroy it.
func TestVolumeFilesystemThatWasNotRecordedIsRecordedInPlace(t *testing.T) {
	w := newWorld(t)
	id := w.makeForeignVolume("data", 10)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume() + volumeImport},
			{
				Config: w.volume(`filesystem = "ext4"`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			check(func() {
				if v := w.onlyVolume(); v.ID != id {
					t.Errorf("the volume is %+v", v)
				}
			}),
			// From then on it is what the state says.
			{Config: w.volume(`filesystem = "xfs"`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionDestroyBeforeCreate)},
		},
	})
}

func TestVolumeFilesystemRecordedOnlyIsWarnedOf(t *testing.T) {
	filesystem := func(name string) map[string]tftypes.Value {
		return map[string]tftypes.Value{"filesystem": tftypes.NewValue(tftypes.String, name)}
	}
	for name, test := range map[string]struct {
		made map[string]tftypes.Value
		want []string
	}{
		"none recorded":       {nil, []string{"Recorded only", "neither looked at nor formatted"}},
		"recorded as none":    {filesystem("none"), []string{dataIsLost, "What forces it: filesystem."}},
		"recorded as another": {filesystem("xfs"), []string{dataIsLost, "What forces it: filesystem."}},
		"the same":            {filesystem("ext4"), nil},
	} {
		w := newWorld(t).wire()
		volume, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, test.made))
		volume = done(t, volume, diags)
		_, diags = w.plan(volumeType, volume, volumeConfig(w, filesystem("ext4")))
		contains(t, name, warned(diags), test.want)
	}
}

// A refresh says of a foreign attachment that it stays; a plan that moves the volume
// says from where to where.
func TestVolumePlanSaysFromWhereItMovesIt(t *testing.T) {
	cloud := newWorld(t)
	machine := cloud.makeMachine(poolURI, "other")
	w := cloud.wire()
	instance, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
	instance = done(t, instance, diags)
	volume, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, onInstances()))
	volume = done(t, volume, diags)
	cloud.hetzner.AttachVolume(cloud.onlyVolume().ID, cloud.named("other").ID)
	w = cloud.wire()
	volume, _ = w.read(volumeType, volume)

	unknown := map[string]tftypes.Value{"instances": tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, tftypes.UnknownValue)}
	for name, test := range map[string]struct {
		more map[string]tftypes.Value
		want []string
	}{
		"left alone":          {onInstances(), nil},
		"moved":               {onInstances(instance.text(t, "uri")), []string{`Taken from another machine: "data"`, "from the machine " + machine.ID + ` to "web-0"`}},
		"moved to a new one":  {unknown, []string{"from the machine " + machine.ID + " to an instance that isn't made yet"}},
		"named where it is":   {onInstances("hetzner-cloud://root/main/web/instances/other?token=env://" + tokenVariable), nil},
		"hands off from here": {nil, nil},
	} {
		_, diags := w.plan(volumeType, volume, volumeConfig(w, test.more))
		if problems := errorsOf(diags); problems != "" {
			t.Errorf("%s: %s", name, problems)
		}
		contains(t, name, warned(diags), test.want)
	}

	_, diags = w.destroy(volumeType, volume)
	contains(t, "destroyed", errorsOf(diags), []string{
		`INVALID_STATE: The volume "data" is attached to a machine that instances doesn't name.` + "\n", "attached to the machine " + machine.ID,
	})
}
