// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const (
	instanceResource = "bettercompute_instance.web"
	testSSHKey       = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJlUXHyB6Lyr1pVd0N4t8kFqeXGbXFZ6VbQkYjWQ0z5t me@example.com"
)

// instance is the configuration of an account, a pool and the instance web-0 in
// it. Lines are put into the instance.
func (w *world) instance(lines ...string) string {
	return w.pool() + instanceBlock("web", "web-0", lines...)
}

// instanceBlock is one instance of the pool; lines replace those with the same
// attribute.
func instanceBlock(label, name string, lines ...string) string {
	attributes := []string{
		fmt.Sprintf("name = %q", name), `pool = bettercompute_pool.web.uri`, `offer = "cx23"`, `image = "ubuntu-24.04"`,
	}
	for _, line := range lines {
		key, _, _ := strings.Cut(line, " ")
		for i, a := range attributes {
			if strings.HasPrefix(a, key+" ") {
				attributes[i] = ""
			}
		}
		attributes = append(attributes, line)
	}
	return fmt.Sprintf("\nresource \"bettercompute_instance\" %q {\n  %s\n}\n", label, strings.Join(attributes, "\n  "))
}

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(instanceResource, a)}}
}

func has(name string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(instanceResource, tfjsonpath.New(name), value)
}

func text(s string) knownvalue.Check { return knownvalue.StringExact(s) }

// only is the one server of the cloud.
func (w *world) only() hetzneremulator.Server {
	w.t.Helper()
	servers := w.hetzner.Servers()
	if len(servers) != 1 {
		w.t.Fatalf("the cloud has %d servers: %+v", len(servers), servers)
	}
	return servers[0]
}

// check runs outside of a plan, after an apply.
func check(do func()) resource.TestStep {
	return resource.TestStep{PreConfig: do, RefreshState: true}
}

// checkPending is [check] where the apply before it failed, so that something is
// left to plan.
func checkPending(do func()) resource.TestStep {
	return resource.TestStep{PreConfig: do, RefreshState: true, ExpectNonEmptyPlan: true}
}

func TestInstanceFromFirstPlanToDestroy(t *testing.T) {
	w := newWorldWith(t, hetzneremulator.Options{Boot: 50 * time.Millisecond})
	poolID := reference.PoolID(reference.AccountID("root", "hetzner-cloud", "main"), "web")
	id := reference.InstanceID(poolID, "web-0")
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{
				Config: w.instance(`ssh_keys = ["`+testSSHKey+`"]`, `labels = { role = "web" }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(instanceResource, plancheck.ResourceActionCreate),
						plancheck.ExpectKnownValue(instanceResource, tfjsonpath.New("id"), text(id)),
						plancheck.ExpectKnownValue(instanceResource, tfjsonpath.New("region"), text("fsn1")),
						plancheck.ExpectUnknownValue(instanceResource, tfjsonpath.New("uri")),
						plancheck.ExpectUnknownValue(instanceResource, tfjsonpath.New("price_per_hour")),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					has("id", text(id)), has("state", text("running")), has("power", text("on")), has("region", text("fsn1")),
					has("machine_id", knownvalue.NotNull()), has("claim", knownvalue.NotNull()), has("image_id", knownvalue.NotNull()),
					has("ipv4", knownvalue.NotNull()), has("ipv6", knownvalue.StringRegexp(regexp.MustCompile(`^2001:db8:.*::1$`))),
					has("private_ipv4", knownvalue.Null()), has("address", knownvalue.NotNull()), has("currency", text("EUR")),
					has("price_per_hour", knownvalue.NotNull()), has("message", knownvalue.Null()),
					has("uri", knownvalue.StringRegexp(regexp.MustCompile(`^hetzner-cloud://root/main/web/instances/web-0/\d+\?token=env://`))),
				},
			},
			check(func() {
				s := w.only()
				if s.Name != "web-0" || s.Labels["role"] != "web" || s.Labels["better-compute.io/complete"] != "true" || s.Labels["better-compute.io/idempotency-key"] != id {
					t.Errorf("the server is %+v", s)
				}
				if !strings.Contains(s.UserData, "hostname: \"web-0\"") || !strings.Contains(s.UserData, testSSHKey) {
					t.Errorf("user data %q", s.UserData)
				}
			}),
			{
				ResourceName: instanceResource, ImportState: true, ImportStateVerify: true,
				ImportStateId:           "hetzner-cloud://root/main/web/instances/web-0?token=env://" + tokenVariable,
				ImportStateVerifyIgnore: []string{"claim", "image", "labels", "ssh_keys", "price_per_hour", "currency"},
			},
		},
	})
}

func TestInstancePowerDriftIsMended(t *testing.T) {
	w := newWorld(t)
	same := statecheck.CompareValue(compare.ValuesSame())
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(), ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(instanceResource, tfjsonpath.New("machine_id"))}},
			{
				PreConfig:        func() { w.hetzner.SetPower(w.only().ID, false) },
				Config:           w.instance(),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{
					has("state", text("running")), has("power", text("on")), same.AddStateValue(instanceResource, tfjsonpath.New("machine_id")),
				},
			},
			{
				Config:            w.instance(`power = "off"`),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{has("state", text("stopped"))},
			},
			check(func() {
				if s := w.only(); s.Status != "off" {
					t.Errorf("the server is %s", s.Status)
				}
			}),
		},
	})
}

func TestInstanceCreatedOff(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance(`power = "off"`), ConfigStateChecks: []statecheck.StateCheck{has("state", text("stopped"))}},
		},
	})
}

func TestInstanceGoneOutsideIsPlannedAnew(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance()},
			{
				PreConfig:        w.deleteMachines,
				Config:           w.instance(),
				ConfigPlanChecks: action(plancheck.ResourceActionCreate),
			},
		},
	})
}

func TestInstanceImageChange(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance()},
			check(func() { before = w.only() }),
			{
				Config:           w.instance(`image = "debian-12"`, `on_image_change = "reinstall"`),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			check(func() {
				if after := w.only(); after.ID != before.ID || after.Image == before.Image || after.Status != "running" {
					t.Errorf("before %+v, after %+v", before, after)
				}
			}),
			{
				Config:           w.instance(`image = "ubuntu-24.04"`, `on_image_change = "ignore"`),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			{
				Config:           w.instance(`image = "debian-12"`),
				ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			},
			check(func() {
				if after := w.only(); after.ID == before.ID {
					t.Errorf("not replaced: %+v", after)
				}
			}),
		},
	})
}

func TestInstanceUserData(t *testing.T) {
	w := newWorld(t)
	var before hetzneremulator.Server
	const first, second = "#!/bin/sh\necho ünïcode 'first'\n", "#!/bin/sh\necho second\n"
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(fmt.Sprintf("user_data = %q", first))},
			check(func() {
				if before = w.only(); before.UserData != first {
					t.Errorf("user data %q", before.UserData)
				}
			}),
			{
				Config:           w.instance(fmt.Sprintf("user_data = %q", second)),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			check(func() {
				if s := w.only(); s.ID != before.ID || s.UserData != first {
					t.Errorf("the machine was touched: %+v", s)
				}
			}),
			{
				Config:           w.instance(fmt.Sprintf("user_data = %q", first), `on_user_data_change = "reinstall"`),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			{
				Config:           w.instance(fmt.Sprintf("user_data_wo = %q", second), "user_data_wo_version = 1", `on_user_data_change = "reinstall"`),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{
					has("user_data", knownvalue.Null()), has("user_data_wo", knownvalue.Null()),
				},
			},
			check(func() {
				if s := w.only(); s.ID != before.ID || s.UserData != second {
					t.Errorf("the machine is %+v", s)
				}
			}),
			{
				Config:           w.instance(fmt.Sprintf("user_data_wo = %q", first), "user_data_wo_version = 2", `on_user_data_change = "replace"`),
				ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			},
			check(func() {
				if s := w.only(); s.ID == before.ID || s.UserData != first {
					t.Errorf("the machine is %+v", s)
				}
			}),
		},
	})
}

// TestInstanceOptionsAndLabelsChangeInPlace: keys that changed are recorded only.
func TestInstanceOptionsAndLabelsChangeInPlace(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.instance(`labels = { role = "web" }`, `ssh_keys = ["`+testSSHKey+`"]`)},
			{
				PreConfig:        w.forgetCalls,
				Config:           w.instance(`labels = { role = "db" }`, `hetzner_cloud = { public_ipv4 = true }`),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			check(func() {
				s := w.only()
				if s.Labels["role"] != "db" {
					t.Errorf("labels %v", s.Labels)
				}
				for _, c := range w.hetzner.Calls() {
					if c.Method == http.MethodPost {
						t.Errorf("%s %s: the server has what the options say", c.Method, c.Path)
					}
				}
			}),
		},
	})
}

func TestInstanceIsReplacedForItsRegionOnly(t *testing.T) {
	w := newWorld(t)
	different := statecheck.CompareValue(compare.ValuesDiffer())
	same := statecheck.CompareValue(compare.ValuesSame())
	type ids interface {
		AddStateValue(address string, path tfjsonpath.Path) statecheck.StateCheck
	}
	step := func(how plancheck.ResourceActionType, ids ids, lines ...string) resource.TestStep {
		return resource.TestStep{
			Config: w.instance(lines...), ConfigPlanChecks: action(how),
			ConfigStateChecks: []statecheck.StateCheck{ids.AddStateValue(instanceResource, tfjsonpath.New("machine_id"))},
		}
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(), ConfigStateChecks: []statecheck.StateCheck{
				same.AddStateValue(instanceResource, tfjsonpath.New("machine_id")), different.AddStateValue(instanceResource, tfjsonpath.New("machine_id")),
			}},
			step(plancheck.ResourceActionUpdate, same, `name = "web-1"`),
			step(plancheck.ResourceActionUpdate, same, `name = "web-1"`, `offer = "cx33"`),
			step(plancheck.ResourceActionReplace, different, `name = "web-1"`, `offer = "cx33"`, `region = "hel1"`),
			// Unset keeps the recorded region.
			{Config: w.instance(`name = "web-1"`, `offer = "cx33"`), PlanOnly: true},
		},
	})
}

func TestInstanceDeletionProtection(t *testing.T) {
	w := newWorld(t)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{Config: w.instance(`deletion_protection = true`)},
			check(func() {
				if s := w.only(); !s.Protected {
					t.Errorf("not protected: %+v", s)
				}
			}),
			{Config: w.instance(`deletion_protection = true`), Destroy: true, ExpectError: regexp.MustCompile(`INVALID_STATE: .*deletion\s+protection`)},
			{
				Config:      w.instance(`deletion_protection = true`, `region = "nbg1"`),
				ExpectError: regexp.MustCompile(`INVALID_STATE: .*deletion\s+protection`),
			},
			{Config: w.instance(`deletion_protection = false`), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		},
	})
}

func TestTwentyInstances(t *testing.T) {
	w := newWorldWith(t, hetzneremulator.Options{Boot: 100 * time.Millisecond})
	config := w.pool() + strings.Replace(instanceBlock("web", "", `name = "web-${count.index}"`), "{\n", "{\n  count = 20\n", 1)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		CheckDestroy:             w.empty,
		Steps: []resource.TestStep{
			{
				Config:           config,
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			check(func() {
				if n := len(w.hetzner.Servers()); n != 20 {
					t.Errorf("%d servers", n)
				}
			}),
		},
	})
}
