// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestAddresses: an agent that comes late, isn't there, or may not be asked.
func TestAddresses(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			options := slow()
			options.AgentDelay = 20 * time.Second
			c, cluster := emulate(t, options)
			m := mustCreate(t, c, testSpec())
			again, err := c.ReadAddresses(t.Context(), m)
			if n := asked(cluster); n != 5 || err != nil || !slices.Equal(again, m.Addresses) { // at 1, 3, 7, 15, 30 s
				t.Errorf("asked %d times, %v, %v", n, again, err)
			}
			if _, err := c.ReadAddresses(t.Context(), m); err != nil || asked(cluster) != 6 {
				t.Errorf("a later question isn't asked: %v", err)
			}
			if len(m.Addresses) != 1 || m.Addresses[0].Family != backends.IPv4 || m.Addresses[0].Scope != backends.Private {
				t.Errorf("%+v", m.Addresses)
			}
		})
	})
	t.Run("never", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			options := slow()
			options.AgentDelay = time.Hour
			c, _ := emulate(t, options)
			spec := testSpec()
			m, err := c.MakeMachine(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			m, err = c.FinishMachine(t.Context(), m, spec)
			if took := time.Since(begun); err != nil || len(m.Addresses) > 0 || took < agentWindow || took > 2*agentWindow {
				t.Errorf("%s, %v, %v", took, m.Addresses, err)
			}
		})
	})
	t.Run("forbidden", func(t *testing.T) {
		for _, version := range []int{8, 9} {
			synctest.Test(t, func(t *testing.T) {
				options := slow()
				options.Version = version
				options.Denials = emulated.Denials{
					{Path: "/vms", Privilege: "VM.Monitor"}, {Path: "/vms", Privilege: "VM.GuestAgent.Audit"}, {Path: "/vms", Privilege: "VM.GuestAgent.Unrestricted"},
				}
				c, _ := emulate(t, options)
				var said []string
				ctx := backends.WithWarnings(t.Context(), func(text string) { said = append(said, text) })
				for i := range 2 {
					m, err := create(ctx, c, specOf(i))
					if err != nil || len(m.Addresses) > 0 {
						t.Error(m.Addresses, err)
					}
				}
				want := map[int]string{8: "VM.Monitor", 9: "VM.GuestAgent.Audit or VM.GuestAgent.Unrestricted"}[version]
				if len(said) != 1 || !strings.Contains(said[0], want) {
					t.Errorf("%q", said)
				}
			})
		}
	})
	t.Run("static", func(t *testing.T) {
		spec := testSpec()
		spec.Options = backends.Values{"ip_config": []any{
			backends.Values{"ipv4": "203.0.113.5/24", "gateway": "203.0.113.1", "ipv6": "auto"},
			backends.Values{"ipv4": "dhcp", "ipv6": "fd00::5/64"},
		}}
		got := new(Client).PlannedAddresses(spec)
		want := []backends.Address{
			{Address: "203.0.113.5", Family: backends.IPv4, Scope: backends.Public},
			{Address: "fd00::5", Family: backends.IPv6, Scope: backends.Private},
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	})
}

// asked is how often guest agents were asked.
func asked(cluster *emulated.Service) int {
	n := 0
	for _, call := range calls(cluster) {
		if strings.Contains(call, "/agent/") {
			n++
		}
	}
	return n
}
