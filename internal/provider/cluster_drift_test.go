// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const clusterPool = "proxmox://root/main/web?token=env://PROXMOX_TOKEN&url=https://pve.test:8006"

// said are diagnostics as a text.
func said(diags []*tfprotov6.Diagnostic) string {
	var out strings.Builder
	for _, d := range diags {
		out.WriteString(d.Severity.String() + " " + d.Summary + ": " + d.Detail + "\n")
	}
	return out.String()
}

// TestChangedOnTheCluster: what someone changes at a VM by hand shows at the next
// refresh, and a VM whose marks were taken away is neither made anew nor touched.
func TestChangedOnTheCluster(t *testing.T) {
	const name = "bettercompute_instance"
	str := func(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	for what, test := range map[string]struct {
		change func(c *cluster, vmid int)
		says   []string // by the refresh
		silent []string
		gone   bool // planned anew
		plan   string
	}{
		"nothing": {change: func(*cluster, int) {}, silent: []string{"WARNING"}},
		"cores":   {change: func(c *cluster, vmid int) { c.pve.SetOption(vmid, "cores", "4") }, says: []string{`Changed outside`, `offer was "1c-2g-20d" and is "4c-2g-20d"`}},
		"disk": {change: func(c *cluster, vmid int) { c.pve.SetOption(vmid, "scsi0", "shared:vm-1-disk-0,size=30G") },
			says: []string{`offer was "1c-2g-20d" and is "1c-2g-30d"`}},
		"a label": {
			change: func(c *cluster, vmid int) {
				for _, v := range c.pve.VMs() {
					if v.ID == vmid {
						c.pve.SetOption(vmid, "tags", strings.ReplaceAll(v.Config["tags"], "role.x", "site.y"))
					}
				}
			},
			says: []string{`the label role was "x" and is gone`}, silent: []string{"site"},
		},
		"all tags": {change: func(c *cluster, vmid int) { c.pve.SetOption(vmid, "tags", "mine") }, says: []string{"Changed outside", "some of the provider's own labels or tags", `the label role was "x" and is gone`}},
		"the marks": {
			change: func(c *cluster, vmid int) {
				c.pve.SetOption(vmid, "tags", "mine")
				c.pve.SetOption(vmid, "description", "hello")
			},
			says: []string{"ACCESS_DENIED: the marks are gone"},
		},
		"the marks and the name": {
			change: func(c *cluster, vmid int) {
				c.pve.SetOption(vmid, "tags", "mine")
				c.pve.SetOption(vmid, "description", "hello")
				c.pve.SetOption(vmid, "name", "stranger")
			},
			says: []string{"NOT_FOUND: the machine is gone"}, gone: true,
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t)
			w := c.wire()
			config := w.config(name, map[string]tftypes.Value{
				"name": str("web-0"), "pool": str(clusterPool), "offer": str("1c-2g-20d"), "image": str("debian-13"), "power": str("off"),
				"on_image_change": str("replace"), "on_user_data_change": str("replace"),
				"labels": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"role": str("x")}),
			})
			made, diags := w.apply(t.Context(), name, w.none(name), config)
			if len(diags) > 0 {
				t.Fatal(said(diags))
			}
			vmid, _ := c.own()
			test.change(c, vmid)
			next := c.wire() // another process
			read, diags := next.read(name, made)
			text := said(diags)
			for _, want := range test.says {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			for _, not := range test.silent {
				if strings.Contains(text, not) {
					t.Errorf("%q in %s", not, text)
				}
			}
			if test.gone != read.value.IsNull() {
				t.Fatalf("gone: %v, %s", read.value.IsNull(), text)
			}
			if what != "the marks" {
				return
			}
			// Neither an apply nor a destroy touches it, and with the state lost none is made.
			if _, diags := next.destroy(name, read); !strings.Contains(said(diags), "ACCESS_DENIED") {
				t.Errorf("destroy: %s", said(diags))
			}
			if _, diags := next.apply(t.Context(), name, next.none(name), config); !strings.Contains(said(diags), "ACCESS_DENIED: The marks are gone") {
				t.Errorf("create: %s", said(diags))
			}
			c.own()
		})
	}
}
