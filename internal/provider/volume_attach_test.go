// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const instanceURI = `instances = [bettercompute_instance.web.uri]`

// named is a server by its name.
func (w *world) named(name string) hetzneremulator.Server {
	w.t.Helper()
	for _, s := range w.hetzner.Servers() {
		if s.Name == name {
			return s
		}
	}
	w.t.Fatalf("the cloud has no server %s", name)
	return hetzneremulator.Server{}
}

// writes are the calls that changed something since the last [world.forgetCalls],
// ids left out.
func (w *world) writes() []string {
	var out []string
	for _, c := range w.calls() {
		if !strings.HasPrefix(c, "GET ") {
			out = append(out, regexp.MustCompile(`/\d+`).ReplaceAllString(c, "/ID"))
		}
	}
	return out
}

// after is a check of a plan that does something between the plan and the apply.
type after func()

// CheckPlan implements [plancheck.PlanCheck].
func (do after) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) {
	do()
}

// "Attaches the volume to an instance", "without a reboot"; "detaches": by editing
// instances, detach first.
func TestVolumeIsMovedInPlaceAndDetachedFirst(t *testing.T) {
	w := newWorld(t)
	two := w.instance() + instanceBlock("second", "web-1")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: two + volumeBlock("data", "data", instanceURI)},
			{
				PreConfig: w.forgetCalls, Config: two + volumeBlock("data", "data", `instances = [bettercompute_instance.second.uri]`),
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{attachmentRows(attachmentOurs())},
			},
			check(func() {
				got, want := fmt.Sprint(w.writes()), "[POST /v1/volumes/ID/actions/detach POST /v1/volumes/ID/actions/attach]"
				if got != want {
					t.Errorf("moving made the calls %s, want %s", got, want)
				}
				if v := w.onlyVolume(); v.Server != w.named("web-1").ID {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{
				Config: two + volumeBlock("data", "data", `instances = []`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{attachmentRows()},
			},
			check(func() {
				if v := w.onlyVolume(); v.Server != 0 {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{Config: two + volumeBlock("data", "data", instanceURI), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
		},
	})
}

func TestVolumeInstancesNullIsHandsOff(t *testing.T) {
	w := newWorld(t)
	config := w.instance() + volumeBlock("data", "data")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{attachmentRows()}},
			{PreConfig: func() { w.hetzner.AttachVolume(w.onlyVolume().ID, w.only().ID) }, Config: config},
			{
				Config: config, PlanOnly: true,
			},
			check(func() { w.on() }),
			// It grows where it is.
			{Config: w.instance() + volumeBlock("data", "data", `size_gib = 20`)},
			check(func() { w.on() }),
			// "A volume any instance still has attached is INVALID_STATE": this state doesn't name it.
			{Config: w.instance(), ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*is\s+attached\s+to\s+the\s+machine`)},
			{PreConfig: func() { w.hetzner.AttachVolume(w.onlyVolume().ID, 0) }, Config: w.instance()},
		},
	})
}

// A volume that was detached outside shows in the plan and is attached again.
func TestVolumeDetachedOutsideIsAttachedAgain(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached()},
			{
				PreConfig: func() { w.hetzner.AttachVolume(w.onlyVolume().ID, 0) }, Config: w.attached(),
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{attachmentRows(attachmentOurs())},
			},
			check(w.on),
		},
	})
}

// Foreign attachments show, and give way only to another instance that is named.
func TestVolumeForeignAttachmentGivesWayToANamedInstanceOnly(t *testing.T) {
	w := newWorld(t)
	two := w.instance() + instanceBlock("second", "web-1")
	none := two + volumeBlock("data", "data", `instances = []`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: none},
			{PreConfig: func() { w.hetzner.AttachVolume(w.onlyVolume().ID, w.named("web-1").ID) }, RefreshState: true},
			{
				Config: none + "# again\n",
				ConfigStateChecks: []statecheck.StateCheck{attachmentRows(knownvalue.ObjectExact(map[string]knownvalue.Check{
					"instance_id": knownvalue.Null(), "machine_id": knownvalue.NotNull(), "state": text("attached"), "desired_state": text("detached"),
				}))},
			},
			{Config: two + volumeBlock("data", "data", `instances = []`, `size_gib = 20`)},
			check(func() {
				if v := w.onlyVolume(); v.Server != w.named("web-1").ID || v.Size != 20 {
					t.Errorf("the volume is %+v", v)
				}
			}),
			{Config: two + volumeBlock("data", "data", `size_gib = 20`, instanceURI), ConfigStateChecks: []statecheck.StateCheck{attachmentRows(attachmentOurs())}},
			check(func() {
				if v := w.onlyVolume(); v.Server != w.named("web-0").ID {
					t.Errorf("the volume is %+v", v)
				}
			}),
		},
	})
}

// An attachment that the plan did not show is CONFLICT.
func TestVolumeAttachmentThatThePlanDidNotShowIsAConflict(t *testing.T) {
	w := newWorld(t)
	two := w.instance() + instanceBlock("second", "web-1")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: two + volumeBlock("data", "data", `instances = []`)},
			{
				// Someone attaches it between the plan and the apply.
				Config: two + volumeBlock("data", "data", instanceURI),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectUnknownValue(volumeResource, tfjsonpath.New("attachments")),
					after(func() { w.hetzner.AttachVolume(w.onlyVolume().ID, w.named("web-1").ID) }),
				}},
				ExpectError: regexp.MustCompile(`(?s)CONFLICT: .*which\s+the\s+plan\s+didn't\s+show`),
			},
			checkPending(func() {
				if v := w.onlyVolume(); v.Server != w.named("web-1").ID {
					t.Errorf("the volume is %+v", v)
				}
				w.hetzner.AttachVolume(w.onlyVolume().ID, 0)
			}),
		},
	})
}

// Without delete_with_instance, replacing an instance brings its volumes back in the
// same apply.
func TestVolumeComesBackToAReplacedInstance(t *testing.T) {
	w := newWorld(t)
	var volume hetzneremulator.Volume
	var server hetzneremulator.Server
	replaced := w.instance(`image = "debian-12"`) + volumeBlock("data", "data", instanceURI)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached()},
			check(func() { volume, server = w.onlyVolume(), w.only() }),
			{
				Config: replaced,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionDestroyBeforeCreate),
						plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionUpdate),
						plancheck.ExpectUnknownValue(volumeResource, tfjsonpath.New("attachments")),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{attachmentRows(attachmentOurs())},
			},
			check(func() {
				w.on()
				if w.onlyVolume().ID != volume.ID || w.only().ID == server.ID {
					t.Errorf("before: %+v on %+v, after: %+v on %+v", volume, server, w.onlyVolume(), w.only())
				}
			}),
		},
	})
}

// The machine of an instance was deleted outside: both come back together.
func TestVolumeComesBackToAnInstanceMadeAnew(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached()},
			{PreConfig: func() { w.hetzner.AttachVolume(w.onlyVolume().ID, 0); w.deleteMachines() }, Config: w.attached(), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			check(w.on),
		},
	})
}

// Attachments are compared by machine: another spelling of the same instance makes
// no call.
func TestVolumeInstancesAreComparedByMachine(t *testing.T) {
	w := newWorld(t)
	spelled := w.instance() + volumeBlock("data", "data",
		`instances = ["hetzner-cloud://root/main/web/instances/web-0?token=env://`+tokenVariable+`"]`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached(`delete_with_instance = true`)},
			{
				PreConfig: w.forgetCalls, Config: strings.Replace(spelled, "instances =", "delete_with_instance = true\n  instances =", 1),
				ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
			},
			check(func() {
				if writes := w.writes(); len(writes) > 0 {
					t.Errorf("another spelling made the calls %v", writes)
				}
				w.on()
			}),
			{Config: strings.Replace(spelled, "instances =", "delete_with_instance = true\n  instances =", 1), PlanOnly: true},
			// Detached outside, it shows too, although the uri names no machine.
			{
				PreConfig: func() { w.hetzner.AttachVolume(w.onlyVolume().ID, 0) },
				Config:    strings.Replace(spelled, "instances =", "delete_with_instance = true\n  instances =", 1), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate),
			},
			check(w.on),
		},
	})
}

// "The instance must be … on the same account and region (INVALID_INPUT) … and not
// being deleted (INVALID_STATE)", "a block volume on at most one".
func TestVolumeInstancesAreCheckedAtPlanTime(t *testing.T) {
	w := newWorld(t)
	uri := func(account, name string) string {
		return fmt.Sprintf(`"hetzner-cloud://root/%s/web/instances/%s?token=env://%s"`, account, name, tokenVariable)
	}
	refused := func(instances, message string, lines ...string) resource.TestStep {
		return resource.TestStep{
			Config:   w.instance() + volumeBlock("data", "data", append(lines, "instances = ["+instances+"]")...),
			PlanOnly: true, ExpectError: regexp.MustCompile(message),
		}
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.instance()},
			refused("bettercompute_instance.web.uri", `INVALID_INPUT: .*is\s+in\s+the\s+region\s+fsn1`, `region = "nbg1"`),
			refused(uri("other", "web-0"), `INVALID_INPUT: .*of\s+another\s+account`),
			refused(uri("main", "web-9"), `INVALID_INPUT: .*has\s+no\s+machine`),
			refused("bettercompute_instance.web.uri, "+uri("main", "web-0"), `INVALID_INPUT: .*twice`),
			refused(uri("main", "web-1")+", "+uri("main", "web-0"), `INVALID_INPUT: .*at\s+most\s+one`),
			refused("bettercompute_instance.web.id", `INVALID_INPUT: .*id\s+of\s+an\s+instance`),
			refused("bettercompute_pool.web.uri", `INVALID_INPUT: .*uri\s+of\s+a\s+pool`),
			{Config: w.instance()},
		},
	})
}

// An instance that isn't known yet is checked by the apply, before its first call.
func TestVolumeInstanceOfAnotherRegionIsRefusedBeforeTheVolumeIsMade(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.attached(`region = "nbg1"`), ExpectError: regexp.MustCompile(`INVALID_INPUT: .*is\s+in\s+the\s+region\s+fsn1`)},
			{
				PreConfig: func() {
					if volumes := w.hetzner.Volumes(); len(volumes) > 0 {
						t.Errorf("the cloud has %+v", volumes)
					}
				},
				Config: w.pool(),
			},
		},
	})
}
