// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestCheckEdit: what a plan says of an edit that can't be made.
func TestCheckEdit(t *testing.T) {
	deny := func(path, privilege string) emulated.Denials {
		return emulated.Denials{{Path: path, Privilege: privilege}}
	}
	bridge := func(name string) backends.MachineSpec {
		s := testSpec()
		s.Network = name
		return s
	}
	for name, test := range map[string]struct {
		image string
		to    backends.MachineSpec
		deny  emulated.Denials
		want  []string
		says  string
	}{
		"nothing":            {"debian-13", testSpec(), deny("/", "VM.Config.Options"), nil, ""},
		"all of it":          {"debian-13", with(testSpec(), backends.Values{"cpu_type": "host", "pool_id": "tofu", "tags": []any{"a"}, "ip_config": static(1)["ip_config"]}), nil, nil, ""},
		"no cloud-init":      {"alpine-3.22", with(testSpec(), static(1)), nil, []string{"INVALID_INPUT proxmox.ip_config"}, "no cloud-init drive"},
		"no such bridge":     {"debian-13", bridge("vmbr9"), nil, []string{"INVALID_INPUT network_id"}, "vmbr9"},
		"no right to tags":   {"debian-13", with(testSpec(), backends.Values{"tags": []any{"a"}}), deny("/vms", "VM.Config.Options"), []string{"PROVIDER_ERROR "}, "VM.Config.Options"},
		"no right to CPUs":   {"debian-13", with(testSpec(), backends.Values{"cpu_type": "host"}), deny("/vms", "VM.Config.CPU"), []string{"PROVIDER_ERROR "}, "VM.Config.CPU"},
		"no right to power":  {"debian-13", with(testSpec(), backends.Values{"cpu_type": "host"}), deny("/vms", "VM.PowerMgmt"), []string{"PROVIDER_ERROR "}, "VM.PowerMgmt"},
		"no power needed":    {"debian-13", with(testSpec(), backends.Values{"on_boot": true}), deny("/vms", "VM.PowerMgmt"), nil, ""},
		"no right to a pool": {"debian-13", with(testSpec(), backends.Values{"pool_id": "tofu"}), deny("/pool", "Pool.Allocate"), []string{"PROVIDER_ERROR "}, "Pool.Allocate on /pool/tofu"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{})
				from := testSpec()
				from.Image = test.image
				m := mustCreate(t, c, from)
				cluster.SetDenials(test.deny)
				cluster.ClearCalls()
				to := test.to
				to.Marks.Complete = true
				warnings, issues, err := c.CheckEdit(t.Context(), m, from, to)
				if err != nil || len(warnings) > 0 || !slices.Equal(paths(issues), test.want) {
					t.Fatalf("%v, %v, %v", warnings, issues, err)
				}
				for _, e := range issues {
					if !strings.Contains(e.Message, test.says) || e.Remedy == "" {
						t.Errorf("%+v", e)
					}
				}
				if made := slices.DeleteFunc(calls(cluster), func(call string) bool { return strings.HasPrefix(call, "GET") }); len(made) > 0 {
					t.Errorf("a check made %v", made)
				}
			})
		})
	}
}
