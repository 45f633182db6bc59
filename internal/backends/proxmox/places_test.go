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
