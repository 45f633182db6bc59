// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// usurp writes another state's claim.
func (c *cloud) usurp(id string) {
	c.change(id, func(m *cloudMachine) { m.Marks.Claim = "usurper" })
}

func TestFailedTakeOverRecordsNobodysClaim(t *testing.T) {
	for name, failure := range map[string]*backends.Error{
		"refused":     {Code: backends.ProviderError, Message: "no"},
		"unreachable": {Code: backends.ProviderError, Ambiguous: true, Message: "down"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			importing, _ := c.account(t)
			c.markErr = failure
			theirs := owned
			theirs.Claim = "" // an import
			updated, err := importing.Update(t.Context(), Change{Owned: theirs, Spec: wish(pool, "web-0").Spec})
			if err == nil || updated.Claim != "" {
				t.Errorf("%s: recorded the claim %q, %v", name, updated.Claim, err)
			}
			if left, err := importing.Delete(t.Context(), theirs); err == nil || left || len(c.all()) != 1 {
				t.Errorf("%s: the import deleted the machine: %v", name, err)
			}
		})
	}
}

func TestClaimLostDuringAnUpdateIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.deafToACPI = true
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		time.AfterFunc(graceWindow/2, func() { c.usurp(m.ID) })
		spec := wish(pool, "web-0").Spec
		spec.Start = false
		updated, err := account.Update(t.Context(), Change{Owned: owned, Spec: spec, Power: true})
		if !backends.HasCode(err, backends.Conflict) || updated.Claim != owned.Claim {
			t.Errorf("recorded %q, %v", updated.Claim, err)
		}
		if c.called("off") != 0 {
			t.Error("another's machine was powered off")
		}
	})
}

func TestClaimLostDuringAnAdoptionIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, _ := created(t, account, pool)
		c.change(m.ID, func(have *cloudMachine) { have.on = false })
		time.Sleep(time.Minute)
		pool.Adopt = true
		other, _ := c.account(t)
		go func() {
			for c.called("on") == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			c.usurp(m.ID)
			c.change(m.ID, func(have *cloudMachine) { have.on = false })
		}()
		if _, err := other.Create(t.Context(), wish(pool, "web-0")); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("got %v", err)
		}
	})
}

func TestClaimLabelThatSomeoneRemovedIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		c.change(m.ID, func(have *cloudMachine) { have.Marks.Claim = "" })
		time.Sleep(time.Minute)
		updated, err := account.Update(t.Context(), Change{Owned: owned, Spec: wish(pool, "web-0").Spec})
		if err != nil || updated.Claim != owned.Claim || c.all()[0].Marks.Claim != owned.Claim {
			t.Errorf("recorded %q, the machine carries %q, %v", updated.Claim, c.all()[0].Marks.Claim, err)
		}
	})
}

func TestTakeOverDoesNotChangeWhatTheMachineWasMadeFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		owned.Claim = ""
		spec := wish(pool, "web-0").Spec
		spec.Marks.Digest = backends.Digest(spec.Marks.Key, map[backends.DigestField]string{backends.DigestImage: "ubuntu"})
		c.deafToACPI = true
		spec.Start = false
		time.AfterFunc(readBackDelay+time.Second, func() { c.usurp(m.ID) })
		if _, err := account.Update(t.Context(), Change{Owned: owned, Spec: spec, Power: true}); err == nil {
			t.Fatal("the update was to fail")
		}
		if have := c.all()[0].Marks.Digest; have != m.Marks.Digest {
			t.Errorf("digest %q, made from %q", have, m.Marks.Digest)
		}
	})
}

func TestReinstalledMachineSaysSoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		spec := wish(pool, "web-0").Spec
		spec.Marks.Digest = backends.Digest(spec.Marks.Key, map[backends.DigestField]string{backends.DigestImage: "ubuntu"})
		time.AfterFunc(c.boot/2, func() { c.usurp(m.ID) })
		updated, err := account.Update(t.Context(), Change{Owned: owned, Spec: spec, Reinstall: true})
		if err == nil || !updated.Reinstalled {
			t.Errorf("%+v, %v", updated, err)
		}
		if have := c.all()[0].Marks.Digest; have != spec.Marks.Digest {
			t.Errorf("digest %q: the next update would wipe the disk again", have)
		}
	})
}

func TestProtectedMachineIsReinstalledBeforeItIsProtected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		on := true
		updated, err := account.Update(t.Context(), Change{Owned: owned, Spec: wish(pool, "web-0").Spec, Reinstall: true, Protect: &on})
		if err != nil || !updated.Machine.Protected || c.reinstalled != 1 {
			t.Errorf("%+v, %v", updated, err)
		}
	})
}

func TestListThatIsNotFoundDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		time.Sleep(2 * refreshAge)
		c.listErr = backends.Errorf(backends.NotFound, "no such list")
		if _, err := account.Read(t.Context(), owned.Pool, m.ID); err == nil || backends.HasCode(err, backends.NotFound) {
			t.Errorf("read: %v", err)
		}
		if _, err := account.Delete(t.Context(), owned); err == nil {
			t.Error("delete: no error, and the machine is there")
		}
	})
}

func TestDeletionThatFindsNothingIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		c.deleteErr = backends.Errorf(backends.NotFound, "a proxy says so")
		if _, err := account.Delete(t.Context(), owned); err == nil || len(c.all()) != 1 {
			t.Errorf("got %v", err)
		}
	})
}

func TestHalfMadeProtectedMachineOfSomethingElseIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		dead := wish(pool, "web-0")
		dead.Spec.Marks.Digest = "o000000"
		id := c.put(backends.Machine{Name: "web-0", Marks: dead.Spec.Marks, Protected: true})
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err != nil || created.Machine.ID == id || len(c.all()) != 1 {
			t.Errorf("%+v, %v; the cloud has %+v", created, err, c.all())
		}
	})
}

func TestSecondBlockIsNoReasonToAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		pool.Adopt = true
		var wg sync.WaitGroup
		results := make([]error, 2)
		for i := range results {
			wg.Go(func() { _, results[i] = account.Create(t.Context(), wish(pool, "web-0")) })
		}
		wg.Wait()
		conflicts := 0
		for _, err := range results {
			if _, ok := errors.AsType[*ExistsError](err); ok {
				conflicts++
			} else if err != nil {
				t.Error(err)
			}
		}
		if conflicts != 1 || len(c.all()) != 1 {
			t.Errorf("%v; the cloud has %+v", results, c.all())
		}
	})
}

func TestResizedMachineIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, _ := created(t, account, pool)
		c.change(m.ID, func(have *cloudMachine) { have.Offer = "large" })
		pool.Adopt = true
		other, _ := c.account(t)
		_, err := other.Create(t.Context(), wish(pool, "web-0"))
		if exists, ok := errors.AsType[*ExistsError](err); !ok || len(exists.Differs) != 1 || exists.Differs[0] != backends.DigestOffer {
			t.Errorf("got %v", err)
		}
	})
}

func TestAdoptionFollowsTheWishForProtection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		created(t, account, pool)
		pool.Adopt = true
		other, _ := c.account(t)
		w := wish(pool, "web-0")
		on := true
		w.Protect = &on
		if out, err := other.Create(t.Context(), w); err != nil || !out.Machine.Protected || !c.all()[0].Protected {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestLostAnswersDoNotPassTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.loseMakes, c.listLag = 2, 8*time.Second
		account, pool := c.account(t)
		limit := int64(2)
		pool.Limits.Instances = &limit
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				_, err := account.Create(t.Context(), wish(pool, "web-"+strconv.Itoa(i)))
				if err != nil && !backends.HasCode(err, backends.QuotaExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(c.all()); n != 2 {
			t.Errorf("%d machines, the limit is 2", n)
		}
	})
}

func TestMachineThatCannotBeMarkedIsAsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.markErr = lost
		account, pool := c.account(t)
		out, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err == nil || !out.AsWanted || out.Machine.ID == "" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestRefusalKeepsNothingThatExistsFromBeingFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		refusal := backends.Errorf(backends.CapacityUnavailable, "sold out")
		w := wish(pool, "web-0")
		w.Refusal = refusal
		if _, err := account.Create(t.Context(), w); !backends.HasCode(err, backends.CapacityUnavailable) || len(c.all()) != 0 {
			t.Errorf("nothing there: %v", err)
		}
		c.put(backends.Machine{Name: "web-0", Marks: wish(pool, "web-0").Spec.Marks})
		time.Sleep(time.Minute)
		if out, err := account.Create(t.Context(), w); err != nil || !out.Machine.Marks.Complete {
			t.Errorf("half made: %+v, %v", out, err)
		}
	})
}

func TestNameOfAMachineThatTheCloudDoesNotShowEndsInAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.unique = true
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		c.put(backends.Machine{Name: "web-0", Marks: wish(pool, "web-0").Spec.Marks})
		c.hidden = true
		begun := time.Now()
		if _, err := account.Create(t.Context(), w); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("got %v", err)
		}
		if n, took := c.called("make"), time.Since(begun); n > 50 || took == 0 {
			t.Errorf("%d calls in %s", n, took)
		}
	})
}
