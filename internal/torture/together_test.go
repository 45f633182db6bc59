// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// TestTwoStatesAtOnce: two states apply the same names in one account at the same
// time. One of them makes each object, the other reports a conflict or, with adopt,
// takes it over: no object is there twice, and none has two owners.
func TestTwoStatesAtOnce(t *testing.T) {
	needsCLI(t)
	type pair struct {
		cloud
		adopt bool
		round int
	}
	var pairs []pair
	for _, c := range clouds() {
		for round := range 8 {
			pairs = append(pairs, pair{c, false, round}, pair{c, true, round})
		}
	}
	for _, p := range sample(t, pairs, 1, func(p pair) string { return p.Name }) {
		name := p.Name + "/" + string(rune('a'+p.round))
		if p.adopt {
			name += "-adopt"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule(t)
			w := p.serve(t)
			one, two := w.workspace(t, p.machines, p.adopt), w.workspace(t, p.machines, p.adopt)
			first, second := one.start(t, "apply", "-auto-approve"), two.start(t, "apply", "-auto-approve")
			for _, r := range []result{first.wait(t), second.wait(t)} {
				if r.err != nil {
					t.Fatal(r.problem(0))
				}
				for _, d := range r.diagnostics {
					if d.Severity == "error" && !strings.HasPrefix(d.Summary, "CONFLICT: ") {
						t.Errorf("an apply: %s", d)
					}
				}
			}
			objects := w.Objects()
			once(t, objects.Machines, p.machines)
			once(t, objects.Volumes, p.volumes)
			ofOne, ofTwo := one.owned(t), two.owned(t)
			for _, r := range ofOne {
				if slices.ContainsFunc(ofTwo, func(o record) bool { return o.claim == r.claim || !p.adopt && o.id == r.id }) {
					t.Errorf("both states have %+v", r)
				}
			}

			// What isn't one's own outlives one's destroy.
			for _, d := range one.destroy(t).diagnostics {
				// The pool is the other's too.
				if d.Severity == "error" && !strings.HasPrefix(d.Summary, "INVALID_STATE: The pool ") {
					t.Errorf("the first destroy: %s", d)
				}
			}
			left := w.Objects()
			for _, r := range ofTwo {
				if slices.ContainsFunc(ofOne, func(o record) bool { return o.id == r.id }) {
					continue // with adopt, the one who claimed it last has it
				}
				if !slices.ContainsFunc(append(left.Machines, left.Volumes...), func(o emulator.Object) bool { return o.ID == r.id }) {
					t.Errorf("the first state's destroy took %+v from the second", r)
				}
			}
			two.destroys(t)
			one.destroys(t)
		})
	}
}

// owned are the machines and volumes that a state has.
func (s *workspace) owned(t *testing.T) []record {
	t.Helper()
	machines, volumes := s.recorded(t)
	return append(machines, volumes...)
}

// once checks that there are no more objects than wanted, and no name twice.
func once(t *testing.T, objects []emulator.Object, most int) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range objects {
		if seen[o.Name] {
			t.Errorf("%s is there twice", o.Name)
		}
		seen[o.Name] = true
	}
	if len(objects) > most {
		t.Errorf("the cloud has %d objects, want at most %d", len(objects), most)
	}
}

// TestFiftyAtOnce: fifty machines, all at the same time.
func TestFiftyAtOnce(t *testing.T) {
	needsCLI(t)
	for _, c := range sample(t, clouds(), 1, func(c cloud) string { return c.Name }) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			schedule(t)
			const machines = 50
			s := c.serve(t).workspace(t, machines, false)
			if problem := s.run(t, "apply", "-auto-approve", "-parallelism=50").problem(0); problem != "" {
				t.Errorf("the apply: %s", problem)
			}
			s.holds(t, machines)
			if problem := s.run(t, "destroy", "-auto-approve", "-parallelism=50").problem(0); problem != "" {
				t.Errorf("the destroy: %s", problem)
			}
			s.nothingLeft(t)
		})
	}
}

// TestPlanDuringApply: a plan of the same state ends while an apply is under way, and
// the apply ends as if there had been none.
func TestPlanDuringApply(t *testing.T) {
	needsCLI(t)
	type point struct {
		cloud
		death
	}
	var points []point
	for _, c := range clouds() {
		for at := len(c.template(t).applyCalls); at > 0; at -= 5 {
			points = append(points, point{c, death{victim: victim{name: "plan"}, at: at, after: at%2 == 0}})
		}
	}
	for _, p := range sample(t, points, 1, func(p point) string { return p.Name }) {
		t.Run(p.Name+"/"+p.death.String(), func(t *testing.T) {
			t.Parallel()
			schedule(t)
			s := p.serve(t).workspace(t, p.machines, false)
			tally.points.Add(1)
			stop := s.set(p.at, p.after)
			apply := s.start(t, "apply", "-auto-approve")
			select {
			case <-stop.reached:
				tally.reached.Add(1)
				r := s.run(t, "plan", "-lock=false", "-detailed-exitcode")
				if r.problem(0) != "" && r.problem(2) != "" {
					t.Errorf("the plan: %s", r.problem(2))
				}
			case <-apply.ended:
			}
			stop.release()
			if problem := apply.wait(t).problem(0); problem != "" {
				t.Errorf("the apply: %s", problem)
			}
			s.set(0, false)
			s.holds(t, p.machines)
			s.destroys(t)
		})
	}
}
