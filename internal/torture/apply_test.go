// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import "testing"

// killedApply is a schedule of [TestKilledApply].
type killedApply struct {
	cloud
	death
	adopt, lost bool
}

// String is the last part of the test's name.
func (k killedApply) String() string {
	name := k.death.String()
	if k.lost {
		name += "-lost"
	}
	if k.adopt {
		name += "-adopt"
	}
	return name
}

// TestKilledApply: an apply dies at each of its calls; the next one, with the state as
// it is or with none, mends all.
func TestKilledApply(t *testing.T) {
	needsCLI(t)
	var schedules []killedApply
	for _, c := range clouds() {
		calls := c.template(t).applyCalls
		t.Logf("%s: an apply makes %d calls", c.Title, len(calls))
		for i, d := range deaths(calls) {
			for condition := range 4 {
				// In turn, and at the next point another one for the same victim.
				if amount() != "points" || condition == (i%len(victims)+i/len(victims))%4 {
					schedules = append(schedules, killedApply{c, d, condition%2 == 1, condition >= 2})
				}
			}
		}
	}
	for _, k := range sample(t, schedules, 6, func(k killedApply) string { return k.Name + k.victim.name }) {
		t.Run(k.Name+"/"+k.String(), func(t *testing.T) {
			t.Parallel()
			schedule(t)
			s := k.serve(t).workspace(t, k.machines, k.adopt)
			k.strike(t, s, "apply", "-auto-approve")
			if k.lost {
				s.loseState(t)
			}
			// Who was asked to end has recorded all that it made.
			s.heal(t, !k.adopt && (k.lost || !k.gently))
			s.holds(t, k.machines)
			s.destroys(t)
		})
	}
}
