// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestBegunIsReturned ends the wait for a clone in every way: the machine comes beside
// the error, is shown as being made while nothing says whose it is, and the next run
// finishes it, or deletes it.
func TestBegunIsReturned(t *testing.T) {
	lose := emulator.Rule{Method: "POST", Path: "*/9000/clone", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer}
	unknown := emulator.Rule{Method: "GET", Path: "*/tasks*", Nth: 1, Times: emulator.Forever, Kind: emulator.KindStatus, Status: 500}
	for name, test := range map[string]struct {
		after time.Duration // until the run ends; 0: it doesn't
		rule  *emulator.Rule
		want  error // in its chain
	}{
		"interrupted":              {after: 3 * time.Second, want: context.Canceled},
		"in its last phase":        {after: 18 * time.Second, want: context.Canceled},
		"interrupted, answer lost": {after: 3 * time.Second, rule: &lose, want: context.Canceled},
		"interrupted, task lost":   {after: 3 * time.Second, rule: &unknown, want: context.Canceled},
		"task_timeout":             {want: errSlow},
	} {
		for _, then := range []string{"finish", "delete"} {
			t.Run(name+", "+then, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, cluster := emulate(t, slow(), backends.Values{"task_timeout": "5s"})
					if test.rule != nil {
						if err := cluster.AddFault(*test.rule); err != nil {
							t.Fatal(err)
						}
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if test.after > 0 {
						c.account.timeout = time.Hour
						time.AfterFunc(test.after, cancel)
					}
					m, err := c.MakeMachine(ctx, testSpec())
					if !errors.Is(err, test.want) {
						t.Fatal(err)
					}
					if m.ID != fmt.Sprint(slots(testKey, 100_000_000, 999_999_999)[0]) || m.State != backends.StatePending ||
						m.Marks != testSpec().Marks {
						t.Errorf("%+v", m)
					}
					cluster.ClearFaults()
					next := clientOf(t, emulator.Transport(cluster))
					seen, err := next.GetMachine(t.Context(), m.ID)
					if err != nil || seen.State != backends.StatePending || !seen.Partial && seen.Marks.Claim != testClaim ||
						seen.Partial && seen.Marks.Managed {
						t.Errorf("shown as %+v, %v", seen, err)
					}
					if then == "delete" {
						if err := next.DeleteMachine(t.Context(), m); err != nil || len(cluster.Machines()) != 0 {
							t.Errorf("%v, %+v", err, cluster.Machines())
						}
						return
					}
					if _, err := complete(t.Context(), next, m, testSpec()); err != nil {
						t.Fatal(err)
					}
					if all := cluster.Machines(); len(all) != 1 || !all[0].Running {
						t.Errorf("%+v", all)
					}
				})
			})
		}
	}
}

// TestNotBegunIsNotReturned: a clone that failed has left nothing to record.
func TestNotBegunIsNotReturned(t *testing.T) {
	for _, kind := range []emulator.Kind{emulator.KindCapacity, emulator.KindStatus} {
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, slow())
			rule := emulator.Rule{Method: "POST", Path: "*/9000/clone", Nth: 1, Times: emulator.Forever, Kind: kind}
			if kind == emulator.KindStatus {
				rule.Status = 403
			}
			if err := cluster.AddFault(rule); err != nil {
				t.Fatal(err)
			}
			if m, err := c.MakeMachine(t.Context(), testSpec()); err == nil || m.ID != "" || len(cluster.Machines()) != 0 {
				t.Errorf("%s: %+v, %v", kind, m, err)
			}
		})
	}
}

// TestStuckIsPartial: what a node left that crashed is shown with what removes it.
func TestStuckIsPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		cluster.PutStranger(4711, "pve2", "", temporary, "")
		cluster.SetOption(4711, "lock", "clone")
		m, err := c.GetMachine(t.Context(), "4711")
		if err != nil || !m.Partial || m.Marks.Managed || m.State != backends.StatePending || !strings.Contains(m.Message, "qm unlock 4711") {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// TestHalfMadeOnANodeThatIsDown: a VM without tags is shown partly all the same, with
// its marks where this process has seen them.
func TestHalfMadeOnANodeThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		m, err := c.MakeMachine(t.Context(), testSpec())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetMachine(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
		if err := cluster.AddFault(emulator.Rule{Path: "/api2/json/nodes/pve1/*", Nth: 1, Times: emulator.Forever, Kind: emulator.KindNodeDown}); err != nil {
			t.Fatal(err)
		}
		next := clientOf(t, emulator.Transport(cluster))
		for who, want := range map[*Client]backends.Marks{c: testSpec().Marks, next: {}} {
			got, err := who.GetMachine(t.Context(), m.ID)
			if err != nil || !got.Partial || got.State != backends.StateUnknown || got.Marks != want || !strings.Contains(got.Message, "pve1") {
				t.Errorf("%+v, %v", got, err)
			}
		}
		listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: testSpec().Marks.Pool})
		if err != nil || len(listed) != 1 || !listed[0].Partial {
			t.Errorf("%+v, %v", listed, err)
		}
		// Whether the key has one already can't be told: that is no "no".
		_, err = next.FindMachines(t.Context(), testKey)
		if e := wantError(t, err); e.Reason != backends.ReasonUnreachable {
			t.Error(err)
		}
	})
}
