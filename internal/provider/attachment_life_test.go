// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const attachmentBlock = `
resource "bettercompute_volume_attachment" "data" {
  volume   = bettercompute_provider_volume.data.uri
  instance = bettercompute_instance.web.uri
}
`

const attachmentResource = "bettercompute_volume_attachment.data"

func attachmentAction(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(attachmentResource, a)},
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
	}
}

// What `instances` can't: the volume's device is in the instance's user data. In one
// apply all three are made; made anew, the instance or the volume takes the attachment
// along; and destroying all of it detaches first.
func TestAttachmentLetsUserDataNameTheVolume(t *testing.T) {
	w := newWorld(t)
	var server, volume int64
	const names = `user_data = "#cloud-config\n# ${bettercompute_provider_volume.data.device}\n"`
	config := func(instance string, lines ...string) string {
		return w.pool() + volumeBlock("data", "data", lines...) + instance + attachmentBlock
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: config(instanceBlock("web", "web-0", names), `filesystem = "ext4"`), ConfigPlanChecks: attachmentAction(plancheck.ResourceActionCreate)},
			check(func() {
				w.on()
				server, volume = w.only().ID, w.onlyVolume().ID
				if data := w.only().UserData; !strings.Contains(data, "scsi-0HC_Volume_") {
					t.Errorf("the user data is %q", data)
				}
			}),
			{
				ResourceName: attachmentResource, ImportState: true, ImportStateVerify: true,
				ImportStateIdFunc: func(s *terraform.State) (string, error) {
					is := s.RootModule().Resources[attachmentResource].Primary.Attributes
					return is["volume"] + "|" + is["instance"], nil
				},
			},
			{
				Config:           config(instanceBlock("web", "web-0", names, `image = "debian-12"`), `filesystem = "ext4"`),
				ConfigPlanChecks: attachmentAction(plancheck.ResourceActionUpdate),
			},
			check(func() {
				w.on()
				if w.only().ID == server || w.onlyVolume().ID != volume {
					t.Errorf("the server is %d, the volume %d", w.only().ID, w.onlyVolume().ID)
				}
				server = w.only().ID
			}),
			{
				Config:           config(instanceBlock("web", "web-0", names, `image = "debian-12"`), `filesystem = "xfs"`),
				ConfigPlanChecks: attachmentAction(plancheck.ResourceActionDestroyBeforeCreate),
			},
			check(func() {
				w.on()
				if w.only().ID != server || w.onlyVolume().ID == volume {
					t.Errorf("the server is %d, the volume %d", w.only().ID, w.onlyVolume().ID)
				}
			}),
			{
				PreConfig:        func() { w.hetzner.AttachVolume(w.onlyVolume().ID, 0) },
				Config:           config(instanceBlock("web", "web-0", names, `image = "debian-12"`), `filesystem = "xfs"`),
				ConfigPlanChecks: attachmentAction(plancheck.ResourceActionUpdate),
			},
			check(w.on),
		},
	})
}

// Renamed, the volume keeps its attachment, and a volume that an instance names too.
func TestVolumeRenameUpdatesWhatDependsOnIt(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Volume
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.instance() + volumeBlock("data", "data") + attachmentBlock},
			check(func() { before = w.onlyVolume(); w.forgetCalls() }),
			{
				Config: w.instance() + volumeBlock("data", "renamed") + attachmentBlock,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(volumeResource, plancheck.ResourceActionUpdate),
						plancheck.ExpectResourceAction(attachmentResource, plancheck.ResourceActionUpdate),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
			check(func() {
				w.on()
				if v := w.onlyVolume(); v.ID != before.ID || v.Name != "renamed" {
					t.Errorf("the volume was %+v and is %+v", before, v)
				}
				for _, c := range w.calls() {
					if strings.HasPrefix(c, "POST ") || strings.HasPrefix(c, "DELETE ") {
						t.Errorf("renaming made the call %s", c)
					}
				}
			}),
		},
	})
}

// The volume's instances and an attachment exclude each other when they are planned; one
// takes over from the other in one apply.
func TestAttachmentAndInstancesInOneConfiguration(t *testing.T) {
	w := newWorld(t)
	both := regexp.MustCompile(`CONFLICT: .*has both instances and a`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.attached() + attachmentBlock, ExpectError: both},
			{Config: w.attached()},
			{Config: w.attached() + attachmentBlock, ExpectError: both},
			{Config: w.instance() + volumeBlock("data", "data") + attachmentBlock, ConfigPlanChecks: attachmentAction(plancheck.ResourceActionCreate)},
			check(w.on),
			{Config: w.attached()},
			{Config: w.attached(), PlanOnly: true},
			check(w.on),
		},
	})
}

// Protection and allow_replacement are in the CLIs' words.
func TestVolumeThatIsKept(t *testing.T) {
	w := newWorld(t)
	on := `deletion_protection = true`
	protected := regexp.MustCompile(`INVALID_STATE: .*has deletion protection`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.volume(on)},
			{Config: w.volume(on), PlanOnly: true},
			{Config: w.pool(), ExpectError: protected},
			{Config: w.volume(on, `region = "nbg1"`), ExpectError: protected},
			{Config: w.volume(`deletion_protection = false`, `allow_replacement = false`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionUpdate)},
			{Config: w.volume(`deletion_protection = false`, `allow_replacement = false`, `region = "nbg1"`), ExpectError: regexp.MustCompile(`allow_replacement = false`)},
			{
				Config: w.volume(`deletion_protection = false`, `allow_replacement = true`, `region = "nbg1"`), ConfigPlanChecks: volumeAction(plancheck.ResourceActionDestroyBeforeCreate),
			},
		},
	})
}
