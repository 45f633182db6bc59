// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	clusteremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// starts is how often VMs were started.
func (c *cluster) starts() int {
	return len(slices.DeleteFunc(c.pve.Tasks(), func(task clusteremulator.Task) bool { return task.Type != "qmstart" }))
}

// TestEditsOnTheCluster: each edit is made on the same VM, restarts it only where it has
// to, and leaves nothing to do, which a plan after each step shows.
func TestEditsOnTheCluster(t *testing.T) {
	c := newCluster(t)
	edits := []struct {
		name, offer, lines string
		restarts           int
		want               map[string]string
		tags               string // besides ours and the template's
	}{
		{"web-0", "1c-2g", `
  labels  = { role = "web" }
  proxmox = { node = "pve1", ip_config = [{ ipv4 = "10.0.0.5/24" }], tags = ["blue"] }`, 1, nil, "blue role.web"},
		{"web-0", "1c-2g", `
  labels  = { role = "db", tier = "" }
  proxmox = { node = "pve1", ip_config = [{ ipv4 = "10.0.0.5/24" }], tags = ["green"], on_boot = true, pool_id = "tofu" }`, 0,
			map[string]string{"onboot": "1"}, "green role.db tier"},
		{"web-0", "2c-4g", `
  labels  = { role = "db" }
  proxmox = { node = "pve1", ip_config = [{ ipv4 = "10.0.0.5/24" }], on_boot = true }`, 1, map[string]string{"cores": "2", "memory": "4096"}, "green role.db"},
		{"db-0", "2c-4g", `
  labels  = { role = "db" }
  proxmox = { node = "pve1", ip_config = [{ ipv4 = "10.0.0.5/24" }], on_boot = true }`, 0, map[string]string{"name": "db-0"}, "green role.db"},
		{"db-0", "2c-4g-10d", `
  resize_disk = true
  labels      = { role = "db" }
  proxmox     = { node = "pve1", ip_config = [{ ipv4 = "10.0.0.6/24", gateway = "10.0.0.1" }], on_boot = true, cpu_type = "host" }`, 1,
			map[string]string{"ipconfig0": "ip=10.0.0.6/24,gw=10.0.0.1", "cpu": "host"}, "green role.db"},
		{"db-0", "2c-4g-10d", `
  labels  = { role = "db" }
  proxmox = { node = "pve2", network_devices = [{ vlan_id = 7 }] }`, 0, map[string]string{"ipconfig0": "ip=10.0.0.6/24,gw=10.0.0.1", "onboot": "1"}, "green role.db"},
		{"web-0", "1c-2g", ``, 1, map[string]string{"name": "web-0", "cores": "1"}, "green role.db"},
	}
	vmid, before := 0, 0
	var steps []resource.TestStep
	for i, e := range edits {
		config := strings.Replace(c.vm(e.lines), `"web-0"`, fmt.Sprintf("%q", e.name), 1)
		step := resource.TestStep{
			Config: strings.Replace(config, `"1c-2g"`, fmt.Sprintf("%q", e.offer), 1),
			Check: func(*terraform.State) error {
				id, _ := c.own()
				if vmid == 0 {
					vmid = id
				}
				restarts := c.starts() - before
				before = c.starts()
				m := c.pve.Machines()[0]
				if id != vmid || restarts != e.restarts || !m.Running || len(m.Pending) > 0 {
					return fmt.Errorf("edit %d: %d is now %d, %d starts, %+v", i, vmid, id, restarts, m)
				}
				for option, want := range e.want {
					if m.Config[option] != want {
						return fmt.Errorf("edit %d: %s is %q", i, option, m.Config[option])
					}
				}
				tags := slices.DeleteFunc(m.Tags, func(tag string) bool {
					return strings.HasPrefix(tag, "bc-") || slices.Contains([]string{"better-compute", "debian", "template"}, tag)
				})
				if got := strings.Join(tags, " "); got != e.tags {
					return fmt.Errorf("edit %d: the tags are %q", i, got)
				}
				return nil
			},
		}
		if i > 0 {
			step.ConfigPlanChecks.PreApply = []plancheck.PlanCheck{plancheck.ExpectResourceAction(aVM, plancheck.ResourceActionUpdate)}
		}
		if i == 4 {
			step.ConfigPlanChecks.PreApply = append(step.ConfigPlanChecks.PreApply,
				plancheck.ExpectKnownValue(aVM, tfjsonpath.New("private_ipv4"), knownvalue.StringExact("10.0.0.6")))
		}
		steps = append(steps, step)
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: c.factories(), CheckDestroy: c.empty, Steps: steps})
}
