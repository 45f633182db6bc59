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

// TestPrivilegesInThePlan: what the token lacks is known before anything is made, and
// only what the wish needs; what it may not read says nothing.
func TestPrivilegesInThePlan(t *testing.T) {
	pool := backends.Values{"pool": "tofu"}
	for name, test := range map[string]struct {
		account backends.Values
		denials emulated.Denials
		grants  []emulated.Grant
		change  func(*backends.MachineSpec)
		want    []string
	}{
		"all":        {},
		"clone":      {denials: emulated.Denials{{Path: "/vms/9000", Privilege: "VM.Clone"}}, want: []string{"VM.Clone on /vms/9000"}},
		"another's":  {denials: emulated.Denials{{Path: "/vms/9001", Privilege: "VM.Clone"}}},
		"CPU, start": {denials: emulated.Denials{{Path: "/", Privilege: "VM.Config.CPU"}, {Path: "/", Privilege: "VM.PowerMgmt"}}, want: []string{"VM.Config.CPU, VM.PowerMgmt on /vms"}},
		"CPU as it is": {
			denials: emulated.Denials{{Path: "/", Privilege: "VM.Config.CPU"}, {Path: "/", Privilege: "VM.Config.Memory"}},
			change:  func(s *backends.MachineSpec) { s.Offer = "1c-1g" },
		},
		"disk":         {denials: emulated.Denials{{Path: "/", Privilege: "VM.Config.Disk"}}, change: func(s *backends.MachineSpec) { s.Offer = "2c-4g-9d" }, want: []string{"VM.Config.Disk on /vms"}},
		"no disk":      {denials: emulated.Denials{{Path: "/", Privilege: "VM.Config.Disk"}}},
		"space":        {denials: emulated.Denials{{Path: "/storage/shared", Privilege: "Datastore.AllocateSpace"}}, want: []string{"Datastore.AllocateSpace on /storage/shared"}},
		"rights, pool": {account: pool, denials: emulated.Denials{{Path: "/vms", Privilege: "VM.Allocate"}}},
		"rights, none": {account: pool, denials: emulated.Denials{{Path: "/", Privilege: "VM.Allocate"}}, want: []string{"VM.Allocate on /pool/tofu"}},
		"hidden pool":  {account: backends.Values{"pool": "nosuch"}, denials: emulated.Denials{{Path: "/pool", Privilege: "Pool.Audit"}}},
		"no bridges": {
			denials: emulated.Denials{{Path: "/sdn", Privilege: "SDN.Use"}, {Path: "/sdn", Privilege: "SDN.Audit"}},
			change:  func(s *backends.MachineSpec) { s.Network = "vmbr7" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{Denials: test.denials, Grants: test.grants}, test.account)
				spec := testSpec()
				if test.change != nil {
					test.change(&spec)
				}
				for range 3 {
					_, issues, err := c.CheckMachine(t.Context(), spec)
					var got []string
					for _, e := range issues {
						said, _ := strings.CutPrefix(strings.TrimSuffix(e.Message, "."), "The account's token lacks ")
						got = append(got, said)
						if e.Reason != backends.ReasonPermission {
							t.Errorf("%v", e)
						}
					}
					if err != nil || !slices.Equal(got, test.want) {
						t.Errorf("%q, %v", got, err)
					}
				}
				asked := map[string]int{}
				for _, call := range calls(cluster) {
					if asked[call]++; asked[call] > 4 { // paths of permissions
						t.Errorf("%s: %d times", call, asked[call])
					}
				}
			})
		})
	}
}

// TestNothingIsMadeWithoutSnippets: a place for user data that can't be written to is
// found out before the clone.
func TestNothingIsMadeWithoutSnippets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{}, backends.Values{"snippets": backends.Values{"storage": "local", "directory": "/nosuch"}})
		spec := testSpec()
		withUserData(&spec)
		_, err := c.MakeMachine(t.Context(), spec)
		wantCode(t, err, backends.InvalidConfig)
		if n := len(cluster.Machines()); n > 0 || slices.ContainsFunc(calls(cluster), func(call string) bool { return strings.HasPrefix(call, "POST") }) {
			t.Errorf("%d VMs, %v", n, calls(cluster))
		}
	})
}

// TestHasOptions: an imported VM is compared with the options of a wish.
func TestHasOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := emulate(t, emulated.Options{})
		spec := testSpec()
		spec.Options = backends.Values{
			"node": "pve2", "cpu_type": "host", "tags": []any{"blue"}, "ip_config": []any{backends.Values{"ipv4": "10.0.0.5/24", "gateway": "10.0.0.1"}},
			"network_devices": []any{backends.Values{"model": "virtio", "vlan_id": int64(5)}},
		}
		m := mustCreate(t, c, spec)
		for name, test := range map[string]struct {
			options backends.Values
			want    bool
		}{
			"the same":        {spec.Options, true},
			"none":            {nil, true},
			"fewer":           {backends.Values{"cpu_type": "host"}, true},
			"another CPU":     {backends.Values{"cpu_type": "kvm64"}, false},
			"another tag":     {backends.Values{"tags": []any{"blue", "green"}}, false},
			"another address": {backends.Values{"ip_config": []any{backends.Values{"ipv4": "10.0.0.6/24"}}}, false},
			"another VLAN":    {backends.Values{"network_devices": []any{backends.Values{"model": "virtio", "vlan_id": int64(6)}}}, false},
		} {
			other := spec
			other.Options, other.Offer = test.options, "8c-8g"
			if has, err := c.HasOptions(t.Context(), m.ID, other); has != test.want || err != nil {
				t.Errorf("%s: %v, %v", name, has, err)
			}
		}
		if has, err := c.HasOptions(t.Context(), "150", spec); has || err != nil {
			t.Errorf("a container: %v, %v", has, err)
		}
	})
}
