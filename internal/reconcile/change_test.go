// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// created is a machine of ours, and what a state knows of it.
func created(t *testing.T, account *Account, pool reference.Reference) (backends.Machine, Owned) {
	t.Helper()
	w := wish(pool, "web-0")
	out, err := account.Create(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return out.Machine, Owned{Pool: w.Spec.Marks.Pool, ID: out.Machine.ID, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim}
}

func TestDeleteWaitsUntilTheMachineIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.deleting = 40 * time.Second
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		if left, err := account.Delete(t.Context(), owned); left || err != nil {
			t.Fatalf("left %v, %v", left, err)
		}
		if all := c.all(); len(all) != 0 {
			t.Errorf("the cloud has %+v", all)
		}
		if left, err := account.Delete(t.Context(), owned); left || err != nil {
			t.Errorf("a machine that is gone: left %v, %v", left, err)
		}
	})
}

func TestDeleteTouchesNothingThatIsNotOurs(t *testing.T) {
	for name, test := range map[string]struct {
		marks func(*backends.Marks)
		claim string
		code  backends.Code
		left  bool
	}{
		"unmarked":                  {marks: func(m *backends.Marks) { *m = backends.Marks{} }, code: backends.AccessDenied},
		"claimed anew":              {marks: func(m *backends.Marks) { m.Claim = "other" }, left: true},
		"another resource's":        {marks: func(m *backends.Marks) { m.Key, m.Claim = "inst_other", "other" }, left: true},
		"imported, never taken":     {marks: func(*backends.Marks) {}, claim: "none", code: backends.InvalidState},
		"imported another's, again": {marks: func(m *backends.Marks) { m.Claim = "other" }, claim: "none", code: backends.InvalidState},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			account, pool := c.account(t)
			m, owned := created(t, account, pool)
			c.change(m.ID, func(have *cloudMachine) { test.marks(&have.Marks) })
			if test.claim == "none" {
				owned.Claim = ""
			}
			time.Sleep(time.Minute)
			left, err := account.Delete(t.Context(), owned)
			if left != test.left || (err == nil) != (test.code == "") || (test.code != "" && !backends.HasCode(err, test.code)) {
				t.Errorf("%s: left %v, %v", name, left, err)
			}
			if c.called("delete") != 0 || len(c.all()) != 1 {
				t.Errorf("%s: it was deleted", name)
			}
		})
	}
}

func TestDeleteOfAProtectedMachineIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		c.change(m.ID, func(have *cloudMachine) { have.Protected = true })
		time.Sleep(time.Minute)
		if _, err := account.Delete(t.Context(), owned); !backends.HasReason(err, backends.ReasonProtected) || c.called("delete") != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestPowerOffAsksTheGuestFirst(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.deafToACPI = deaf
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			begun := time.Now()
			spec := wish(pool, "web-0").Spec
			spec.Start = false
			updated, err := account.Update(t.Context(), Change{Owned: owned, Spec: spec, Power: true})
			m := updated.Machine
			if err != nil || m.State != backends.StateStopped {
				t.Fatalf("deaf %v: %+v, %v", deaf, m, err)
			}
			if hard := c.called("off"); (hard == 1) != deaf {
				t.Errorf("deaf %v: powered off hard %d times", deaf, hard)
			}
			if took := time.Since(begun); deaf && took < graceWindow {
				t.Errorf("the guest had %s only", took)
			}
		})
	}
}

func TestUpdateOfAnImportClaimsTheMachine(t *testing.T) {
	for name, marks := range map[string]func(backends.Marks) backends.Marks{
		"unmarked": func(backends.Marks) backends.Marks { return backends.Marks{} },
		"marked":   func(m backends.Marks) backends.Marks { m.Complete = true; return m },
		"unclaimed": func(m backends.Marks) backends.Marks {
			m.Complete, m.Claim = true, ""
			return m
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			account, pool := c.account(t)
			w := wish(pool, "web-0")
			id := c.put(backends.Machine{Name: "web-0", Marks: marks(w.Spec.Marks)})
			spec := wish(pool, "web-0").Spec
			spec.Marks.Claim = ""
			updated, err := account.Update(t.Context(), Change{Owned: Owned{Pool: spec.Marks.Pool, ID: id, Key: spec.Marks.Key}, Spec: spec})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			m := updated.Machine
			if updated.Claim != m.Marks.Claim {
				t.Errorf("%s: recorded %q", name, updated.Claim)
			}
			if m.Marks.Claim == "" || m.Marks.Claim == w.Spec.Marks.Claim || !m.Marks.Complete || m.Marks.Digest != spec.Marks.Digest {
				t.Errorf("%s: %+v", name, m.Marks)
			}
		})
	}
}

func TestUpdateFinishesAnInterruptedCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		id := c.put(backends.Machine{Name: "web-0", Marks: w.Spec.Marks})
		updated, err := account.Update(t.Context(), Change{
			Owned: Owned{Pool: w.Spec.Marks.Pool, ID: id, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim}, Spec: w.Spec,
		})
		m := updated.Machine
		if err != nil || !m.Marks.Complete || m.Marks.Claim != w.Spec.Marks.Claim {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func TestUpdateWithNothingToDoCostsOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		lists, gets, marks := c.called("list"), c.called("get"), c.called("mark")
		time.Sleep(time.Minute)
		if _, err := account.Update(t.Context(), Change{Owned: owned, Spec: wish(pool, "web-0").Spec}); err != nil {
			t.Fatal(err)
		}
		if l, g, m := c.called("list")-lists, c.called("get")-gets, c.called("mark")-marks; l != 1 || g != 0 || m != 0 {
			t.Errorf("%d lists, %d gets, %d marks", l, g, m)
		}
	})
}
