// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestPower(t *testing.T) {
	for _, ha := range []string{"", "started"} {
		t.Run("ha "+ha, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, slow())
				m := mustCreate(t, c, testSpec())
				cluster.SetHA(atoi(t, m.ID), ha)
				state := func() backends.State {
					t.Helper()
					got, err := c.GetMachine(t.Context(), m.ID)
					if err != nil {
						t.Fatal(err)
					}
					return got.State
				}
				for _, step := range []struct {
					action backends.PowerAction
					want   backends.State
				}{
					{backends.PowerOff, backends.StateStopped}, {backends.PowerOff, backends.StateStopped},
					{backends.PowerOn, backends.StateRunning}, {backends.PowerOn, backends.StateRunning},
					{backends.PowerCycle, backends.StateRunning}, {backends.PowerReset, backends.StateRunning},
					{backends.PowerGracefulRestart, backends.StateRunning}, {backends.PowerOff, backends.StateStopped},
					{backends.PowerCycle, backends.StateRunning},
				} {
					if err := c.Power(t.Context(), m, step.action); err != nil {
						t.Fatalf("%s: %v", step.action, err)
					}
					if got := state(); got != step.want {
						t.Errorf("after %s: %s", step.action, got)
					}
				}
				if err := c.Power(t.Context(), m, backends.PowerGracefulOff); err != nil {
					t.Fatal(err)
				}
				if err := backends.Sleep(t.Context(), time.Minute); err != nil {
					t.Fatal(err)
				}
				if got := state(); got != backends.StateStopped {
					t.Errorf("after graceful-off: %s", got)
				}
				wantCode(t, c.Power(t.Context(), m, backends.PowerReset), backends.InvalidState)
				wantCode(t, c.Power(t.Context(), m, backends.PowerNMI), backends.Unsupported)
			})
		})
	}
}

// TestOffOverrulesShutdown pulls the plug of a guest that doesn't shut down, without
// waiting for the shutdown to give up.
func TestOffOverrulesShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := slow()
		options.IgnoreShutdown = true
		c, _ := emulate(t, options)
		m := mustCreate(t, c, testSpec())
		if err := c.Power(t.Context(), m, backends.PowerGracefulOff); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := c.Power(t.Context(), m, backends.PowerOff); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
