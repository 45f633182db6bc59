// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestCreateMakesOneMachineAndMarksItLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		c.beforeMark = func(m backends.Machine, marks backends.Marks) {
			if marks.Complete && m.State != backends.StateRunning {
				t.Errorf("marked complete while %s", m.State)
			}
		}
		created, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if m := created.Machine; m.State != backends.StateRunning || !m.Marks.Complete || m.Marks.Claim != w.Spec.Marks.Claim || created.Adopted {
			t.Errorf("created %+v", created)
		}
		if made, marked := c.called("make"), c.called("mark"); made != 1 || marked != 1 {
			t.Errorf("%d makes, %d marks; want one of each", made, marked)
		}
	})
}

func TestCreateAgainWithTheSameClaimIsARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		first, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		again, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if first.Machine.ID != again.Machine.ID || c.called("make") != 1 {
			t.Errorf("made %d machines: %s and %s", c.called("make"), first.Machine.ID, again.Machine.ID)
		}
	})
}

func TestLostAnswerMakesNoSecondMachine(t *testing.T) {
	for _, unique := range []bool{false, true} {
		for _, lag := range []time.Duration{0, 8 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.loseMakes, c.listLag, c.unique = 1, lag, unique
				account, pool := c.account(t)
				created, err := account.Create(t.Context(), wish(pool, "web-0"))
				if err != nil {
					t.Fatal(err)
				}
				if all := c.all(); len(all) != 1 || all[0].ID != created.Machine.ID || !all[0].Marks.Complete {
					t.Errorf("unique %v, lag %s: the cloud has %+v", unique, lag, all)
				}
			})
		}
	}
}

func TestExistingMachineIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		if _, err := account.Create(t.Context(), wish(pool, "web-0")); err != nil {
			t.Fatal(err)
		}
		before := c.all()
		other, _ := c.account(t)
		_, err := other.Create(t.Context(), wish(pool, "web-0"))
		var exists *ExistsError
		if !errors.As(err, &exists) || !backends.HasCode(err, backends.Conflict) || exists.Object.ID != before[0].ID {
			t.Fatalf("got %v", err)
		}
		if after := c.all(); len(after) != 1 || after[0].Marks != before[0].Marks {
			t.Errorf("the machine changed: %+v", after)
		}
	})
}

func TestAdoptTakesOverWhatWasMadeFromTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		if _, err := account.Create(t.Context(), wish(pool, "web-0")); err != nil {
			t.Fatal(err)
		}
		pool.Adopt = true
		other, _ := c.account(t)
		w := wish(pool, "web-0")
		created, err := other.Create(t.Context(), w)
		if err != nil || !created.Adopted || created.Machine.Marks.Claim != w.Spec.Marks.Claim || c.called("make") != 1 {
			t.Fatalf("created %+v, %v", created, err)
		}

		// The old state's copy can no longer delete it, nor change it.
		old := wish(pool, "web-0").Spec.Marks
		owned := Owned{Pool: old.Pool, ID: created.Machine.ID, Key: old.Key, Claim: old.Claim}
		left, err := account.Delete(t.Context(), owned)
		if !left || err != nil || len(c.all()) != 1 {
			t.Errorf("delete by the old claim: left %v, %v", left, err)
		}
		if _, err := account.Update(t.Context(), Change{Owned: owned}); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("update by the old claim: %v", err)
		}
	})
}

func TestAdoptRefusesWhatWasMadeFromSomethingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		if _, err := account.Create(t.Context(), wish(pool, "web-0")); err != nil {
			t.Fatal(err)
		}
		pool.Adopt = true
		w := wish(pool, "web-0")
		w.Spec.Marks.Digest = backends.Digest(w.Spec.Marks.Key, map[backends.DigestField]string{backends.DigestOffer: "large", backends.DigestImage: "debian"})
		other, _ := c.account(t)
		_, err := other.Create(t.Context(), w)
		var exists *ExistsError
		if !errors.As(err, &exists) || !slices.Equal(exists.Differs, []backends.DigestField{backends.DigestOffer}) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestHalfMadeMachineOfADeadRunIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		dead := wish(pool, "web-0")
		id := c.put(backends.Machine{Name: "web-0", Marks: dead.Spec.Marks})
		w := wish(pool, "web-0")
		begun := time.Now()
		created, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if created.Machine.ID != id || !created.Machine.Marks.Complete || created.Machine.Marks.Claim != w.Spec.Marks.Claim || c.called("make") != 0 {
			t.Errorf("created %+v", created)
		}
		if waited := time.Since(begun); waited < watchWindow {
			t.Errorf("taken over after %s: the other run had no chance", waited)
		}
	})
}

func TestHalfMadeMachineOfSomethingElseIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		dead := wish(pool, "web-0")
		dead.Spec.Marks.Digest = "o000000"
		id := c.put(backends.Machine{Name: "web-0", Marks: dead.Spec.Marks})
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err != nil {
			t.Fatal(err)
		}
		if all := c.all(); len(all) != 1 || all[0].ID == id || all[0].ID != created.Machine.ID {
			t.Errorf("the cloud has %+v", all)
		}
	})
}

func TestHalfMadeMachineWhoseMakingFailedIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		c.stuck = c.put(backends.Machine{Name: "web-0", Marks: wish(pool, "web-0").Spec.Marks})
		c.machines[c.stuck].made = time.Now().Add(100 * time.Hour) // it never runs
		c.actionFailed = &backends.Error{Code: backends.ProviderError, Reason: backends.ReasonAction, Message: "no room"}
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err != nil {
			t.Fatal(err)
		}
		if all := c.all(); len(all) != 1 || all[0].ID == c.stuck || all[0].ID != created.Machine.ID || !all[0].Marks.Complete {
			t.Errorf("the cloud has %+v", all)
		}
	})
}

func TestHalfMadeMachineOfALiveRunIsLeftToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		live := wish(pool, "web-0")
		id := c.put(backends.Machine{Name: "web-0", Marks: live.Spec.Marks})
		go func() {
			time.Sleep(watchWindow / 2)
			c.change(id, func(m *cloudMachine) { m.Marks.Complete = true })
		}()
		_, err := account.Create(t.Context(), wish(pool, "web-0"))
		if _, ok := errors.AsType[*ExistsError](err); !ok {
			t.Fatalf("got %v", err)
		}
		if m := c.all()[0]; m.Marks.Claim != live.Spec.Marks.Claim {
			t.Errorf("its claim was overwritten: %+v", m)
		}
	})
}

func TestMakerWhoseClaimWasReplacedReportsConflict(t *testing.T) {
	for _, when := range []string{"before the mark", "after the mark"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			account, pool := c.account(t)
			usurp := func() {
				c.change("1", func(m *cloudMachine) { m.Marks.Claim = "usurper" })
			}
			if when == "before the mark" {
				go func() { time.Sleep(c.boot / 2); usurp() }()
			} else {
				c.beforeMark = func(_ backends.Machine, marks backends.Marks) {
					if marks.Complete {
						time.AfterFunc(time.Nanosecond, usurp)
					}
				}
			}
			_, err := account.Create(t.Context(), wish(pool, "web-0"))
			if when == "before the mark" && !backends.HasCode(err, backends.Conflict) {
				t.Errorf("%s: got %v", when, err)
			}
			if len(c.all()) != 1 {
				t.Errorf("%s: the cloud has %+v", when, c.all())
			}
		})
	}
}

func TestTwoStatesCreatingTheSameMachineNeverShareIt(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.unique = true
			c.boot = time.Duration(seed*4) * time.Second
			var wg sync.WaitGroup
			claims := make([]string, 2)
			for i := range claims {
				account, pool := c.account(t)
				wg.Go(func() {
					time.Sleep(time.Duration(i*seed) * 300 * time.Millisecond)
					if created, err := account.Create(t.Context(), wish(pool, "web-0")); err == nil {
						claims[i] = created.Machine.Marks.Claim
					} else if !backends.HasCode(err, backends.Conflict) {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
			wg.Wait()
			all := c.all()
			if len(all) != 1 || !all[0].Marks.Complete {
				t.Fatalf("seed %d: the cloud has %+v", seed, all)
			}
			owners := slices.DeleteFunc(claims, func(s string) bool { return s == "" })
			if len(owners) != 1 || owners[0] != all[0].Marks.Claim {
				t.Errorf("seed %d: owners %v, the machine carries %s", seed, owners, all[0].Marks.Claim)
			}
		})
	}
}

func TestNameOfAStrangerIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.unique = true
		account, pool := c.account(t)
		c.put(backends.Machine{Name: "web-0"})
		_, err := account.Create(t.Context(), wish(pool, "web-0"))
		if !backends.HasCode(err, backends.Conflict) || c.called("mark") != 0 || len(c.all()) != 1 {
			t.Errorf("got %v, %d marks", err, c.called("mark"))
		}
	})
}

func TestCreateWaitsForADeletionOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.deleting = 20 * time.Second
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		created, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		c.change(created.Machine.ID, func(m *cloudMachine) { m.deleted = time.Now() })
		again, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err != nil || again.Machine.ID == created.Machine.ID {
			t.Errorf("created %+v, %v", again, err)
		}
	})
}

func TestInterruptEndsTheWaitAtOnceAndKeepsTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.boot = time.Hour
		account, pool := c.account(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second, cancel)
		begun := time.Now()
		created, err := account.Create(ctx, wish(pool, "web-0"))
		if !Interrupted(err) || created.Machine.ID == "" {
			t.Fatalf("created %+v, %v", created, err)
		}
		if d := time.Since(begun) - 30*time.Second; d != 0 {
			t.Errorf("it took %s to stop", d)
		}
	})
}

func TestTimeoutKeepsTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.boot = time.Hour
		account, pool := c.account(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		created, err := account.Create(ctx, wish(pool, "web-0"))
		if !errors.Is(err, context.DeadlineExceeded) || Interrupted(err) || created.Machine.ID == "" {
			t.Errorf("created %+v, %v", created, err)
		}
	})
}

func TestFailedActionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.boot = time.Hour
		c.actionFailed = &backends.Error{Code: backends.ProviderError, Reason: backends.ReasonAction, Message: "no power"}
		account, pool := c.account(t)
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if !backends.HasReason(err, backends.ReasonAction) || created.Machine.ID == "" {
			t.Errorf("created %+v, %v", created, err)
		}
	})
}

func TestManyCreatesShareTheirPolls(t *testing.T) {
	polls := func(t *testing.T, n int) int {
		t.Helper()
		c := newCloud()
		account, pool := c.account(t)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := account.Create(t.Context(), wish(pool, "web-"+strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if made, marked := c.called("make"), c.called("mark"); made != n || marked != n {
			t.Errorf("%d makes, %d marks for %d machines", made, marked, n)
		}
		return c.called("list") + c.called("get")
	}
	var one, many int
	synctest.Test(t, func(t *testing.T) { one = polls(t, 1) })
	synctest.Test(t, func(t *testing.T) { many = polls(t, 100) })
	if many > one+2 {
		t.Errorf("%d reads for 1 machine, %d for 100", one, many)
	}
}

func TestLimitsHoldAcrossConcurrentCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		limit := int64(3)
		pool.Limits.Instances = &limit
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for i := range 8 {
			wg.Go(func() {
				_, err := account.Create(t.Context(), wish(pool, "web-"+strconv.Itoa(i)))
				if backends.HasCode(err, backends.QuotaExceeded) {
					mu.Lock()
					refused++
					mu.Unlock()
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if refused != 5 || c.called("make") != 3 {
			t.Errorf("%d refused, %d made", refused, c.called("make"))
		}
	})
}

func TestPriceLimitCountsWhatRunsAndWhatIsBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		pool.Limits.PricePerHour = "1.25" // two of a half each, and no third
		offers, err := c.Offers(t.Context(), backends.OfferQuery{})
		if err != nil {
			t.Fatal(err)
		}
		var refused error
		for i := range 3 {
			w := wish(pool, "web-"+strconv.Itoa(i))
			w.Offer = &offers[0]
			_, err := account.Create(t.Context(), w)
			if (err != nil) != (i == 2) {
				t.Errorf("machine %d: %v", i, err)
			}
			refused = err
		}
		if !backends.HasCode(refused, backends.QuotaExceeded) || !strings.Contains(refused.Error(), "costs 1,") || !strings.Contains(refused.Error(), "adds 0.5") {
			t.Errorf("got %v", refused)
		}
	})
}
