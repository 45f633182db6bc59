// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// aDay is longer than anything that a run remembers or a cloud takes.
const aDay = 25 * time.Hour

// TestSurprisedByADeadRun: a run died while it made the object, more than a day ago, and
// recorded nothing.
func TestSurprisedByADeadRun(t *testing.T) {
	everyThing(t, func(t *testing.T, p *surprised) {
		without := slices.DeleteFunc(slices.Clone(p.thing.to), func(b block) bool { return b.address == p.block().address })
		noun := "volume"
		if strings.HasSuffix(p.thing.name, "snapshot") {
			noun = "snapshot"
		}
		var before moment
		var held map[string]string
		var made []emulator.Call
		synctest.Test(t, func(t *testing.T) {
			s, now := p.later(t)
			before, held = s.moment(p.ran(t, s, now, p.pools[0], without)), s.holds()
		})
		synctest.Test(t, func(t *testing.T) {
			s := p.at(t, before)
			p.ran(t, s, before.state, p.pools[0], p.thing.to)
			made = s.service.Gate().Calls()
		})
		first := slices.IndexFunc(made, func(c emulator.Call) bool { return c.Method == http.MethodPost })
		if first < 0 {
			t.Fatal("nothing was made")
		}
		last := len(made) - 1
		for last > first && made[last].Method == http.MethodGet {
			last--
		}
		for _, dies := range slices.Compact([]int{first + 1, (first + 1 + last) / 2, last}) {
			// dead is the cloud a day after a run that died behind some of its calls.
			dead := func(t *testing.T) *stage {
				s := p.at(t, before)
				rule := emulator.Rule{Kind: emulator.KindReset, Nth: dies + 1, Times: emulator.Forever}
				if err := s.service.Gate().AddFault(rule); err != nil {
					t.Fatal(err)
				}
				newCore(s.process(), before.state, p.pools[0], p.thing.to).run(t.Context())
				s.service.Gate().ClearFaults()
				hand{s, ""}.wait(aDay)
				return s
			}
			t.Run(fmt.Sprintf("behind %d of %d calls", dies, len(made)), func(t *testing.T) {
				for _, what := range []string{"again", "with other inputs", "adopting"} {
					t.Run(what, func(t *testing.T) {
						config, pool := p.thing.to, p.pools[0]
						switch {
						case what == "adopting":
							pool = p.pools[1]
						case what == "with other inputs" && p.otherwise == nil:
							return
						case what == "with other inputs":
							config = p.edited(p.otherwise)
						}
						synctest.Test(t, func(t *testing.T) {
							s := dead(t)
							want := "plan create; apply ok; another; gone"
							if p.fixed && len(s.holds()) > len(held) {
								// It is there, and nothing in the cloud tells whose it is, or that it
								// wasn't finished: it is there to be adopted or imported.
								want = "plan create [CONFLICT: the " + noun + " exists]; apply [!CONFLICT, CONFLICT: the " + noun + " exists]; again create; gone"
								if what == "adopting" {
									want = "plan create [The " + noun + " exists]; apply ok [The " + noun + " exists]; another; gone"
								}
							}
							expect(t, p.meets(t, s, before.state, pool, config), want)
							if now := s.holds(); !strings.Contains(want, "CONFLICT") && !maps.Equal(now, held) {
								t.Errorf("before there was %v, and afterwards %v", held, now)
							}
						})
					})
				}
				// Whoever doesn't want it any more is told where it is.
				synctest.Test(t, func(t *testing.T) {
					s := dead(t)
					c := newCore(s.process(), before.state, p.pools[0], without)
					c.run(t.Context())
					p.sound(t, s, c, "a run without it")
					_, diags := c.destroy(poolType, p.parents[0].object)
					if text := errorsOf(diags); !strings.HasPrefix(text, "INVALID_STATE: ") || !strings.Contains(text, p.block().given["name"].(string)) {
						t.Errorf("destroying the pool: %s", text)
					}
				})
			})
		}
	})
}
