// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// others are a state's objects without the thing.
func (p *surprised) others(now state) state {
	out := maps.Clone(now)
	delete(out, p.block().address)
	return out
}

// ran is the state after a run that must go well.
func (p *surprised) ran(t *testing.T, s *stage, now state, pool string, config blocks, replace ...string) state {
	t.Helper()
	c := newCore(s.process(), now, pool, config)
	for _, address := range replace {
		c.replace[address] = true
	}
	c.run(t.Context())
	p.sound(t, s, c, "another state's run")
	if problems := c.problems(); problems != "" {
		t.Fatalf("another state's run: %s", problems)
	}
	return c.state
}

// importedInto is a state into which the thing's uri was pasted, before any apply.
func (p *surprised) importedInto(t *testing.T, s *stage, now state) state {
	t.Helper()
	c := newCore(s.process(), p.others(now), p.pools[0], p.thing.to)
	c.importObject(t.Context(), p.block(), len(p.thing.to)-1, p.record(now).attribute("uri"))
	if problems := c.problems(); problems != "" {
		t.Fatalf("importing: %s", problems)
	}
	return c.state
}

// TestSurprisedByACopy: a state is a copy from before another one took the object.
func TestSurprisedByACopy(t *testing.T) {
	// What happens to the copy, by what the other state did; and then to the other state.
	type outcome struct{ copy, edited, other string }
	taken := outcome{theirs, theirsToChange, unmoved}
	wanted := map[string]map[string]outcome{
		"instance": {
			"adopted": taken, "imported": taken, "imported twice": taken,
			"pasted": {unmoved, recordedAnew, madeAnew},
			"replaced": {
				"plan create [CONFLICT: the machine exists, NOT_FOUND]; apply [!CONFLICT, CONFLICT: the machine exists]; another; again create; gone",
				"plan create [CONFLICT: the machine exists, NOT_FOUND]; apply [!CONFLICT, CONFLICT: the machine exists]; another; again create; gone", unmoved,
			},
			"destroyed": {madeAnew, madeAnew, "plan create; apply ok; another; gone"},
		},
		"volume": {
			"adopted": taken, "imported": taken, "imported twice": taken,
			"pasted":    {unmoved, recordedAnew, lostData},
			"replaced":  {lostData, lostData, unmoved},
			"destroyed": {lostData, lostData, "plan create; apply ok; another; gone"},
		},
	}
	wanted["snapshot"] = maps.Clone(wanted["volume"])
	wanted["share"] = maps.Clone(wanted["volume"])
	for _, what := range []string{"adopted", "imported", "imported twice"} {
		// Marks that can't be rewritten are shared: what one state destroys the other has
		// lost (DESIGN.md §6).
		wanted["share"][what] = outcome{unmoved, recordedAnew, lostData}
	}
	wanted["share-snapshot"] = wanted["share"]
	for what, take := range map[string]func(t *testing.T, p *surprised, s *stage, now state) state{
		// Its state was lost, and adopt = true took the object over.
		"adopted": func(t *testing.T, p *surprised, s *stage, now state) state {
			return p.ran(t, s, p.others(now), p.pools[1], p.thing.to)
		},
		// Its uri was pasted into another state, and applied there.
		"imported": func(t *testing.T, p *surprised, s *stage, now state) state {
			return p.ran(t, s, p.importedInto(t, s, now), p.pools[0], p.thing.to)
		},
		// It was pasted, and not applied.
		"pasted": func(t *testing.T, p *surprised, s *stage, now state) state {
			return p.importedInto(t, s, now)
		},
		// Two states pasted it, and both applied: the later one has it.
		"imported twice": func(t *testing.T, p *surprised, s *stage, now state) state {
			first, second := p.importedInto(t, s, now), p.importedInto(t, s, now)
			p.ran(t, s, first, p.pools[0], p.thing.to)
			return p.ran(t, s, second, p.pools[0], p.thing.to)
		},
		// The original of the copy replaced it.
		"replaced": func(t *testing.T, p *surprised, s *stage, now state) state {
			return p.ran(t, s, now, p.pools[0], p.thing.to, p.block().address)
		},
		// The original of the copy destroyed it.
		"destroyed": func(t *testing.T, p *surprised, s *stage, now state) state {
			config := slices.DeleteFunc(slices.Clone(p.thing.to), func(b block) bool { return b.address == p.block().address })
			return p.ran(t, s, now, p.pools[0], config)
		},
	} {
		t.Run(what, func(t *testing.T) {
			everyThing(t, func(t *testing.T, p *surprised) {
				var got outcome
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					other := take(t, p, s, now)
					got.copy = p.meets(t, s, now, p.pools[0], p.thing.to)
					got.other = p.meets(t, s, other, p.pools[0], p.thing.to)
				})
				if p.change != nil {
					synctest.Test(t, func(t *testing.T) {
						s, now := p.later(t)
						take(t, p, s, now)
						got.edited = p.meets(t, s, now, p.pools[0], p.edited(p.change))
					})
				}
				want := wanted[p.thing.name][what]
				switch {
				case p.matrixCloud.name == "proxmox" && what == "replaced":
					want = taken // the new VM has the old one's VMID
				case p.matrixCloud.name == "proxmox":
					want.copy = strings.Replace(want.copy, "; another", "", 1)
					want.edited = strings.Replace(want.edited, "; another", "", 1)
					if what == "pasted" {
						want.other = strings.Replace(want.other, "; another", "", 1)
					}
				case p.thing.name == "volume" && what == "pasted":
					want.other = "plan update [NOT_FOUND]; apply ok; again none [NOT_FOUND]; gone" // what an import lacks is recorded
				}
				if p.change == nil {
					want.edited = ""
				}
				expect(t, got.copy, want.copy)
				expect(t, got.edited, want.edited)
				expect(t, got.other, want.other)
			})
		})
	}
}
