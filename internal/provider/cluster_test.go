// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	clusteremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// cluster is a provider with an emulated Proxmox VE cluster.
type cluster struct {
	*world
	pve *clusteremulator.Service
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Setenv("PROXMOX_TOKEN", "root@pam!tofu=secret")
	pve, err := clusteremulator.New(clusteremulator.Options{PlainHTTP: true, Boot: 50 * time.Millisecond, Scale: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	clouds, err := backends.NewRegistry(proxmox.New(proxmox.Options{Transport: emulator.Transport(pve)}))
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{world: &world{t: t, clouds: clouds}, pve: pve}
}

// vm is the configuration of an account, a pool and an instance with these lines.
func (c *cluster) vm(lines string) string {
	return fmt.Sprintf(`
resource "bettercompute_provider_account" "main" {
  name = "main"
  proxmox = {
    url   = "https://pve.test:8006"
    token = "env://PROXMOX_TOKEN"
  }
}
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
}
resource "bettercompute_instance" "web" {
  name  = "web-0"
  pool  = bettercompute_pool.web.uri
  offer = "1c-2g"
  image = "debian-13"
  %s
}
`, lines)
}

func (c *cluster) empty(*terraform.State) error {
	for _, m := range c.pve.Machines() {
		if m.Name != "stranger" {
			return fmt.Errorf("the cluster still has %+v", m)
		}
	}
	return nil
}

// own is the VMID of the one VM that the provider made.
func (c *cluster) own() (int, string) {
	c.t.Helper()
	all := c.pve.Machines()
	if len(all) != 1 {
		c.t.Fatalf("the cluster has %+v", all)
	}
	return all[0].ID, all[0].Node
}

const aVM = "bettercompute_instance.web"

// TestStaticAddressIsKnownInThePlan: an address that the configuration fixes needs no
// agent, and no second apply.
func TestStaticAddressIsKnownInThePlan(t *testing.T) {
	c := newCluster(t)
	config := c.vm(`proxmox = { ip_config = [{ ipv4 = "10.0.0.5/24", gateway = "10.0.0.1" }] }`)
	address := tfjsonpath.New("private_ipv4")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: c.factories(),
		CheckDestroy:             c.empty,
		Steps: []resource.TestStep{{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue(aVM, address, knownvalue.StringExact("10.0.0.5"))},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(aVM, address, knownvalue.StringExact("10.0.0.5"))},
		}},
	})
}

// TestStrangerInTheVMIDIsLeftAlone: the VM was removed by hand and its VMID taken by
// another, so a new one is planned, and the stranger is untouched.
func TestStrangerInTheVMIDIsLeftAlone(t *testing.T) {
	c := newCluster(t)
	var vmid int
	stranger := func(*terraform.State) error {
		for _, m := range c.pve.VMs() {
			if m.ID == vmid && m.Name == "stranger" && m.Config["cores"] == "2" {
				return nil
			}
		}
		return fmt.Errorf("the stranger %d isn't what it was: %+v", vmid, c.pve.VMs())
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: c.factories(),
		CheckDestroy:             resource.ComposeTestCheckFunc(c.empty, stranger),
		Steps: []resource.TestStep{
			{Config: c.vm("")},
			{
				PreConfig: func() {
					var node string
					vmid, node = c.own()
					c.pve.PutStranger(vmid, node, "stranger", "", "")
				},
				Config: c.vm(""),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(aVM, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				Check: resource.ComposeTestCheckFunc(stranger, resource.TestCheckResourceAttrWith(aVM, "machine_id", func(id string) error {
					if id == strconv.Itoa(vmid) {
						return fmt.Errorf("the instance has the stranger's VMID %s", id)
					}
					return nil
				})),
			},
		},
	})
}

// TestNodeThatIsDownKeepsWhatIsRecorded: plans still work, and change nothing.
func TestNodeThatIsDownKeepsWhatIsRecorded(t *testing.T) {
	c := newCluster(t)
	var node string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: c.factories(),
		CheckDestroy:             c.empty,
		Steps: []resource.TestStep{
			{Config: c.vm("")},
			{
				PreConfig: func() { _, node = c.own(); c.pve.SetNode(node, false) },
				Config:    c.vm(""),
				PlanOnly:  true,
			},
			{
				// It comes back without what ran on it: that is mended.
				PreConfig: func() { c.pve.SetNode(node, true) },
				Config:    c.vm(""),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(aVM, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
			},
		},
	})
}

// TestVolumesOfProxmoxAreUnsupported: a plan says so.
func TestVolumesOfProxmoxAreUnsupported(t *testing.T) {
	c := newCluster(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: c.factories(),
		CheckDestroy:             c.empty,
		Steps: []resource.TestStep{{
			Config: c.vm("") + `
resource "bettercompute_provider_volume" "data" {
  name     = "data"
  pool     = bettercompute_pool.web.uri
  size_gib = 10
}
`,
			ExpectError: regexp.MustCompile(`UNSUPPORTED: Proxmox VE has no volumes`),
		}},
	})
}
