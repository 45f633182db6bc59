// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Names aren't unique and lists lag: neither of two runs can see what the other made
// before both have made one.
func TestOfTwoMadeAtTheSameTimeTheOlderWins(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.listLag = 5 * time.Second
			c.boot = time.Duration(seed%4) * 3 * time.Second
			var wg sync.WaitGroup
			claims, conflicts := make([]string, 2), make([]error, 2)
			for i := range claims {
				account, pool := c.account(t)
				wg.Go(func() {
					time.Sleep(time.Duration(i*seed) * 300 * time.Millisecond)
					created, err := account.Create(t.Context(), wish(pool, "web-0"))
					if err == nil {
						claims[i] = created.Machine.Marks.Claim
					}
					conflicts[i] = err
				})
			}
			wg.Wait()
			all := c.all()
			if len(all) != 1 || all[0].ID != "1" || !all[0].Marks.Complete {
				t.Fatalf("seed %d: the cloud has %+v", seed, all)
			}
			owners := slices.DeleteFunc(claims, func(s string) bool { return s == "" })
			if len(owners) != 1 || owners[0] != all[0].Marks.Claim {
				t.Errorf("seed %d: owners %v, the machine carries %s; %v", seed, owners, all[0].Marks.Claim, conflicts)
			}
			if !slices.ContainsFunc(conflicts, func(err error) bool { return backends.HasCode(err, backends.Conflict) }) {
				t.Errorf("seed %d: nobody was told of a CONFLICT: %v", seed, conflicts)
			}
		})
	}
}

// The first answer is lost, and lists lag longer than they may: the second look finds
// nothing, so that a second machine is made. It is deleted once the first one shows.
func TestDuplicateThatALostAnswerLeftIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.listLag = 2 * defaultListLag
		c.boot = 30 * time.Second
		c.loseMakes = 1
		account, pool := c.account(t)
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err != nil {
			t.Fatal(err)
		}
		if c.called("make") != 2 {
			t.Fatalf("the case needs a second make; there were %d", c.called("make"))
		}
		all := c.all()
		if len(all) != 1 || all[0].ID != created.Machine.ID {
			t.Errorf("created %s, the cloud has %+v", created.Machine.ID, all)
		}
	})
}

func TestYoungerOneThatADeadRunLeftIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.boot = 30 * time.Second
		account, pool := c.account(t)
		mine, dead := wish(pool, "web-0"), wish(pool, "web-0")
		done := make(chan error)
		go func() {
			_, err := account.Create(t.Context(), mine)
			done <- err
		}()
		time.Sleep(time.Second)
		if _, err := c.MakeMachine(t.Context(), dead.Spec); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if all := c.all(); len(all) != 1 || all[0].Marks.Claim != mine.Spec.Marks.Claim {
			t.Errorf("the cloud has %+v", all)
		}
	})
}

func TestLoserThatCannotDeleteItsOwnSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.listLag = 5 * time.Second
		account, pool := c.account(t)
		other := wish(pool, "web-0")
		if _, err := c.MakeMachine(t.Context(), other.Spec); err != nil {
			t.Fatal(err)
		}
		c.deleteErr = backends.Errorf(backends.ProviderError, "not now")
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if !backends.HasCode(err, backends.Conflict) || !strings.Contains(err.Error(), created.Machine.ID) || !strings.Contains(err.Error(), "not now") {
			t.Errorf("created %+v, %v", created, err)
		}
	})
}

// A new machine may be unknown by its id for a while where lists lag.
func TestNewMachineThatTheCloudDoesNotKnowYetIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		c.afterMake = func() { c.hidden = true }
		go func() {
			time.Sleep(6 * time.Second)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.hidden = false
		}()
		if _, err := account.Create(t.Context(), wish(pool, "web-0")); err != nil {
			t.Error(err)
		}
		if all := c.all(); len(all) != 1 || !all[0].Marks.Complete {
			t.Errorf("the cloud has %+v", all)
		}
	})
}

func TestMachineThatVanishedAfterItWasMadeIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		c.afterMake = func() { c.hidden = true }
		if _, err := account.Create(t.Context(), wish(pool, "web-0")); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}
