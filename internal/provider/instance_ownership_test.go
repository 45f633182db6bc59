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
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// conflict is what a CONFLICT must say to be of use: the block to paste.
var conflict = regexp.MustCompile(`(?s)CONFLICT: .*import \{.*id\s+=\s+"hetzner-cloud://root/main/web/instances/web-0/\d+\?token=env:`)

// forgotten is the configuration in which the instance leaves the state and stays
// in the cloud.
func (w *world) forgotten(pool ...string) string {
	return w.pool(pool...) + `
removed {
  from = bettercompute_instance.web
  lifecycle {
    destroy = false
  }
}
`
}

func TestSecondBlockWithTheSameNameIsAConflict(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{
				Config:      w.instance() + instanceBlock("twin", "web-0"),
				ExpectError: conflict,
			},
			{Config: w.instance() + instanceBlock("twin", "web-0"), ExpectError: conflict},
			checkPending(func() { w.only() }),
		},
	})
}

func TestCreateBeforeDestroyWithAFixedNameIsAConflict(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	const lifecycle = "lifecycle {\n    create_before_destroy = true\n  }"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(lifecycle)},
			check(func() { before = w.only() }),
			{Config: w.instance(lifecycle, `image = "debian-12"`), ExpectError: conflict},
			checkPending(func() {
				if after := w.only(); after.ID != before.ID || after.Status != "running" {
					t.Errorf("before %+v, after %+v", before, after)
				}
			}),
		},
	})
}

func TestLostStateIsRecoveredByAdopt(t *testing.T) {
	w := newWorld(t)
	var before, after hetzneremulator.Server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(`ssh_keys = ["` + testSSHKey + `"]`)},
			check(func() { before = w.only() }),
			{Config: w.forgotten()},
			{Config: w.instance(`ssh_keys = ["` + testSSHKey + `"]`), ExpectError: conflict},
			// Another image is another machine: it is not adopted, and the error says why.
			{
				Config:      w.pool("adopt = true") + instanceBlock("web", "web-0", `image = "debian-12"`),
				ExpectError: regexp.MustCompile(`(?s)CONFLICT: .*not\s+adopted.*image,\s+ssh_keys`),
			},
			{
				Config:           w.pool("adopt = true") + instanceBlock("web", "web-0", `ssh_keys = ["`+testSSHKey+`"]`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			check(func() {
				after = w.only()
				if after.ID != before.ID || after.Labels["better-compute.io/claim"] == before.Labels["better-compute.io/claim"] {
					t.Errorf("before %+v, after %+v", before, after)
				}
			}),
			// The pool's own keys touch nothing below it.
			{
				Config: w.instance(`ssh_keys = ["` + testSSHKey + `"]`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionNoop),
				}},
			},
		},
	})
}

func TestMachineClaimedByAnotherStateIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	usurp := func() {
		s := w.only()
		s.Labels["better-compute.io/claim"] = "anotherstate"
		w.hetzner.SetLabels(s.ID, s.Labels)
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance()},
			{PreConfig: usurp, Config: w.instance(`power = "off"`), ExpectError: regexp.MustCompile(`CONFLICT: `)},
			{Config: w.pool()}, // destroying only forgets it; the pool stays while it holds a machine
			check(func() {
				if s := w.only(); s.Status != "running" {
					t.Errorf("the server is %+v", s)
				}
				w.deleteMachines()
			}),
		},
	})
}

func TestImportOfAnUnmarkedServer(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	config := func() string {
		return w.instance() + fmt.Sprintf(`
import {
  to = bettercompute_instance.web
  id = "hetzner-cloud://root/main/web/instances/web-0/%d?token=env://%s"
}
`, before.ID, tokenVariable)
	}
	w.makeMachine(poolURI, "web-0")
	before = w.only()
	w.hetzner.SetLabels(before.ID, map[string]string{"foreign": "stays"})
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{
				Config: config(),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionUpdate),
						plancheck.ExpectUnknownValue(instanceResource, tfjsonpath.New("claim")),
						plancheck.ExpectKnownValue(instanceResource, tfjsonpath.New("machine_id"), text(fmt.Sprint(before.ID))),
						plancheck.ExpectKnownValue(instanceResource, tfjsonpath.New("state"), text("running")),
					},
				},
				ConfigStateChecks: []statecheck.StateCheck{has("claim", knownvalue.NotNull()), has("state", text("running"))},
			},
			check(func() {
				s := w.only()
				if s.ID != before.ID || s.Labels["foreign"] != "stays" || s.Labels["better-compute.io/complete"] != "true" {
					t.Errorf("the server is %+v", s)
				}
			}),
		},
	})
}

func TestImportThatWasNeverAppliedDeletesNothing(t *testing.T) {
	w := newWorld(t)
	id := w.makeMachine(poolURI, "web-0").ID
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			{
				Config: w.instance(), ResourceName: instanceResource, ImportState: true, ImportStatePersist: true,
				ImportStateId: "hetzner-cloud://root/main/web/instances/web-0/" + id + "?token=env://" + tokenVariable,
			},
			{Config: w.instance(), Destroy: true, ExpectError: regexp.MustCompile(`INVALID_STATE: .*imported`)},
			checkPending(func() { w.only() }),
			{Config: w.instance()},
		},
	})
}

func TestImportMistakes(t *testing.T) {
	w := newWorld(t)
	id := w.makeMachine(poolURI, "web-0").ID
	legacy := w.makeMachine(poolURI, "legacy").ID
	w.hetzner.SetLabels(w.hetzner.Servers()[1].ID, nil)
	for name, test := range map[string]struct{ id, want string }{
		"an id":        {"inst_0123456789abcdefghjkmnpqrs", `INVALID_INPUT: .*id`},
		"a pool":       {poolURI, `INVALID_INPUT: `},
		"another name": {"hetzner-cloud://root/main/web/instances/web-1/" + id + "?token=env://" + tokenVariable, `CONFLICT: .*another\s+name`},
		"an unmarked machine's name": {
			"hetzner-cloud://root/main/web/instances/web-1/" + legacy + "?token=env://" + tokenVariable, `INVALID_INPUT: .*called\s+"legacy"`,
		},
		"no such name":     {"hetzner-cloud://root/main/web/instances/web-1?token=env://" + tokenVariable, `NOT_FOUND: `},
		"no such machine":  {"hetzner-cloud://root/main/web/instances/web-1/999?token=env://" + tokenVariable, `NOT_FOUND: `},
		"another pool's":   {"hetzner-cloud://root/main/db/instances/web-0/" + id + "?token=env://" + tokenVariable, `CONFLICT: .*another\s+pool`},
		"another scheme":   {"acme-cloud://root/main/web/instances/web-0", `INVALID_INPUT: .*acme-cloud`},
		"a literal secret": {"hetzner-cloud://root/main/web/instances/web-0?token=literal-secret-value", `INVALID_INPUT: `},
	} {
		t.Run(name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{{
					Config: w.instance(), ResourceName: instanceResource, ImportState: true, ImportStateId: test.id,
					ExpectError: regexp.MustCompile(`(?s)` + test.want),
				}},
			})
		})
	}
}

func TestAccountChangeFollowsInPlace(t *testing.T) {
	w := newWorld(t)
	t.Setenv("BETTERCOMPUTE_TEST_TOKEN_2", token)
	moved := strings.ReplaceAll(w.instance(), "env://"+tokenVariable, "env://BETTERCOMPUTE_TEST_TOKEN_2")
	var before hetzneremulator.Server
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance()},
			check(func() { before = w.only(); w.forgetCalls() }),
			{
				Config: moved,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(instanceResource, tfjsonpath.New("uri"),
						knownvalue.StringRegexp(regexp.MustCompile(`token=env://BETTERCOMPUTE_TEST_TOKEN_2$`))),
				}},
			},
			check(func() {
				if after := w.only(); after.ID != before.ID {
					t.Errorf("before %+v, after %+v", before, after)
				}
				for _, c := range w.calls() {
					if !strings.HasPrefix(c, "GET ") {
						t.Errorf("following the account cost %s", c)
					}
				}
			}),
		},
	})
}

func TestRefreshWithoutItsSecretKeepsTheState(t *testing.T) {
	w := newWorld(t)
	const variable = "BETTERCOMPUTE_TEST_TOKEN_GONE"
	t.Setenv(variable, token)
	old := strings.ReplaceAll(w.instance(), "env://"+tokenVariable, "env://"+variable)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: old},
			// The variable is gone; the plan that names another one must run.
			{
				PreConfig:        func() { t.Setenv(variable, "") },
				Config:           w.instance(),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			check(func() { w.only() }),
		},
	})
}

func TestPoolAndAccountInUseRefuseToGo(t *testing.T) {
	w := newWorld(t)
	w.makeMachine(poolURI, "web-0")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			{Config: w.pool(), Destroy: true, ExpectError: regexp.MustCompile(`(?s)INVALID_STATE: .*web-0.*removed \{`)},
			{Config: w.account(), ExpectError: regexp.MustCompile(`INVALID_STATE: `)},
			checkPending(w.deleteMachines),
		},
	})
}

func TestImportByIdentity(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(), ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectIdentityValueMatchesState(instanceResource, tfjsonpath.New("uri")),
			}},
			{
				ResourceName: instanceResource, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
				ExpectNonEmptyPlan: true, ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionUpdate),
				}},
			},
		},
	})
}
