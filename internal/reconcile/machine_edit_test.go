// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// editable is a cloud that changes machines in place. Its option "off" is changed with
// the machine off.
type editable struct {
	*cloud
	editErr, resizeErr error  // of the next edit or resize, once the machine is off
	lateEdit           error  // of the next edit, once it is done
	during             func() // called in an edit, once the machine is off
	starts             bool   // a resize starts the machine
}

func newEditable() *editable {
	e := &editable{cloud: newCloud()}
	e.as = e
	return e
}

func (e *editable) PlanEdit(from, to backends.MachineSpec) (out []backends.Effect) {
	for _, p := range backends.Differing(from, to, "test_cloud", []backends.Field{{Name: "off", Type: backends.TypeString}}) {
		out = append(out, backends.Effect{Path: p})
	}
	return out
}

func (e *editable) CheckEdit(context.Context, backends.Machine, backends.MachineSpec, backends.MachineSpec) ([]string, []*backends.Error, error) {
	return nil, nil, nil
}

func (e *editable) Shown(_ context.Context, _ backends.Machine, to backends.MachineSpec) (backends.MachineSpec, error) {
	return to, nil
}

func (e *editable) Edit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec, off backends.PowerDown) (backends.Machine, error) {
	e.mu.Lock()
	e.count("edit")
	have := e.show(m.ID)
	e.mu.Unlock()
	want := to.Options.String("off")
	if want != "" && have.Labels["off"] != want {
		if err := off(ctx); err != nil {
			return *have, err
		}
		if e.during != nil {
			e.during()
		}
		if err := e.editErr; err != nil {
			e.editErr = nil
			return *have, err
		}
	}
	e.change(m.ID, func(c *cloudMachine) {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		if to.Labels != nil {
			for k := range from.Labels {
				if _, stays := to.Labels[k]; !stays {
					delete(c.Labels, k)
				}
			}
			maps.Copy(c.Labels, to.Labels)
		}
		if want != "" {
			c.Labels["off"] = want
		}
		c.Name, c.Marks = to.Name, to.Marks
	})
	if err := e.lateEdit; err != nil {
		e.lateEdit = nil
		return *have, err
	}
	return e.GetMachine(ctx, m.ID)
}

func (e *editable) CheckResize(context.Context, backends.Machine, backends.MachineSpec, bool) ([]string, []*backends.Error, error) {
	return nil, nil, nil
}

func (e *editable) Resize(ctx context.Context, m backends.Machine, to backends.MachineSpec, _ bool, off backends.PowerDown) (backends.Machine, error) {
	e.mu.Lock()
	e.count("resize")
	have := e.show(m.ID)
	e.mu.Unlock()
	if have.Offer == to.Offer {
		return *have, nil
	}
	if err := off(ctx); err != nil {
		return *have, err
	}
	if e.resizeErr != nil {
		return *have, e.resizeErr
	}
	e.change(m.ID, func(c *cloudMachine) {
		if c.on {
			panic("resized while it runs")
		}
		c.Offer, c.on = to.Offer, e.starts
	})
	return e.GetMachine(ctx, m.ID)
}

// renamed is an update that gives the machine another name.
func renamed(pool reference.Reference, owned Owned, from, to string) Change {
	return Change{
		Owned: owned, Spec: wish(pool, to).Spec,
		Edits: Edits{From: []backends.MachineSpec{wish(pool, from).Spec}},
	}
}

func (c *cloud) machine(t *testing.T, id string) backends.Machine {
	t.Helper()
	m, err := c.GetMachine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRenameKeepsTheMachineAndItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		change := renamed(pool, owned, "web-0", "web-1")
		out, err := account.Update(t.Context(), change)
		if err != nil || !out.Edited || out.Claim != owned.Claim {
			t.Fatalf("%+v, %v", out, err)
		}
		m := c.machine(t, owned.ID)
		marks := change.Spec.Marks
		if m.Name != "web-1" || m.Marks.Key != marks.Key || m.Marks.Claim != owned.Claim || m.Marks.Digest != marks.Digest || !m.Marks.Complete {
			t.Errorf("%+v", m)
		}
		if c.called("make") != 1 || c.called("delete") != 0 || c.called("off")+c.called("graceful-off") != 0 {
			t.Errorf("calls %v", c.calls)
		}
		// A state that doesn't know yet is still the owner, also to delete it.
		if left, err := account.Delete(t.Context(), owned); left || err != nil || len(c.all()) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

func TestRenameThatWasCutOffIsFinishedOrTakenBack(t *testing.T) {
	for _, next := range []string{"web-1", "web-0", "web-2"} {
		synctest.Test(t, func(t *testing.T) {
			c := newEditable()
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			c.lateEdit = lost
			out, err := account.Update(t.Context(), renamed(pool, owned, "web-0", "web-1"))
			if err == nil || out.Edited {
				t.Fatalf("%+v, %v", out, err)
			}
			change := renamed(pool, owned, "web-0", next)
			if next == "web-0" {
				change.From = nil // the plan shows no change: the cloud does
			}
			if _, err = account.Update(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if m := c.machine(t, owned.ID); m.Name != next || m.Marks.Key != change.Spec.Marks.Key || m.Marks.Claim != owned.Claim {
				t.Errorf("%s: %+v", next, m)
			}
		})
	}
}

func TestRenameToATakenNameChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		if _, err := account.Create(t.Context(), wish(pool, "web-1")); err != nil {
			t.Fatal(err)
		}
		marks := c.called("mark")
		_, err := account.Update(t.Context(), renamed(pool, owned, "web-0", "web-1"))
		if !backends.HasCode(err, backends.Conflict) || c.called("edit") != 0 || c.called("mark") != marks {
			t.Errorf("%v, calls %v", err, c.calls)
		}
	})
}

// TestSwapOfTwoNamesChangesNothing: both run at once, as a core has them.
func TestSwapOfTwoNamesChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		account, pool := c.account(t)
		_, first := created(t, account, pool)
		w := wish(pool, "web-1")
		made, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		second := Owned{Pool: first.Pool, ID: made.Machine.ID, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim}
		var group sync.WaitGroup
		for _, change := range []Change{renamed(pool, first, "web-0", "web-1"), renamed(pool, second, "web-1", "web-0")} {
			group.Go(func() {
				if _, err := account.Update(t.Context(), change); !backends.HasCode(err, backends.Conflict) {
					t.Errorf("%s: %v", change.Spec.Name, err)
				}
			})
		}
		group.Wait()
		if c.machine(t, first.ID).Name != "web-0" || c.machine(t, second.ID).Name != "web-1" {
			t.Errorf("%+v", c.all())
		}
	})
}

// TestTwoMachinesNeverGetOneName: two resources that are given the same new name.
func TestTwoMachinesNeverGetOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		account, pool := c.account(t)
		_, first := created(t, account, pool)
		w := wish(pool, "web-1")
		made, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		second := Owned{Pool: first.Pool, ID: made.Machine.ID, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim}
		var group sync.WaitGroup
		var mu sync.Mutex
		conflicts := 0
		for _, change := range []Change{renamed(pool, first, "web-0", "web-2"), renamed(pool, second, "web-1", "web-2")} {
			group.Go(func() {
				_, err := account.Update(t.Context(), change)
				mu.Lock()
				defer mu.Unlock()
				if backends.HasCode(err, backends.Conflict) {
					conflicts++
				}
			})
		}
		group.Wait()
		if conflicts != 1 || c.machine(t, first.ID).Name == c.machine(t, second.ID).Name {
			t.Errorf("%d conflicts, %+v", conflicts, c.all())
		}
	})
}

func resizing(pool reference.Reference, owned Owned, off string) Change {
	change := Change{Owned: owned, Spec: wish(pool, "web-0").Spec}
	change.KeptDigest = change.Spec.Marks.Digest
	change.Spec.Offer, change.Resize = "large", true
	change.Spec.Marks.Digest = backends.Digest(owned.Key, map[backends.DigestField]string{backends.DigestOffer: "large", backends.DigestImage: "debian"})
	if off != "" {
		change.Spec.Options = backends.Values{"off": off}
		change.From = []backends.MachineSpec{wish(pool, "web-0").Spec}
	}
	return change
}

func TestResizeRestartsTheMachineOnce(t *testing.T) {
	for _, starts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newEditable()
			c.starts = starts
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			change := resizing(pool, owned, "new")
			out, err := account.Update(t.Context(), change)
			if err != nil || !out.Resized || !out.Edited {
				t.Fatalf("%+v, %v", out, err)
			}
			m := c.machine(t, owned.ID)
			if m.Offer != "large" || m.State != backends.StateRunning || m.Labels["off"] != "new" || m.Marks.Digest != change.Spec.Marks.Digest {
				t.Errorf("%+v", m)
			}
			if c.called("graceful-off") != 1 || c.called("off") != 0 {
				t.Errorf("calls %v", c.calls)
			}
			// The same again costs no restart: the answer may have been lost.
			if _, err := account.Update(t.Context(), change); err != nil || c.called("graceful-off") != 1 {
				t.Errorf("%v, calls %v", err, c.calls)
			}
		})
	}
}

func TestFailedResizePutsThePowerBack(t *testing.T) {
	for name, failure := range map[string]error{"refused": noRoom("large"), "lost": lost} {
		synctest.Test(t, func(t *testing.T) {
			c := newEditable()
			c.resizeErr = failure
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			change := resizing(pool, owned, "new")
			out, err := account.Update(t.Context(), change)
			if err == nil || out.Resized || !out.Edited || out.Machine.State != backends.StateRunning {
				t.Fatalf("%s: %+v, %v", name, out, err)
			}
			m := c.machine(t, owned.ID)
			if m.Offer != "small" || m.State != backends.StateRunning || m.Marks.Digest != change.KeptDigest {
				t.Errorf("%s: %+v", name, m)
			}
		})
	}
}

func TestResizeOfAStoppedMachineLeavesItOff(t *testing.T) {
	for _, starts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newEditable()
			c.starts = starts
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			c.change(owned.ID, func(m *cloudMachine) { m.on = false })
			time.Sleep(time.Minute)
			change := resizing(pool, owned, "")
			change.Spec.Start = false
			if _, err := account.Update(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if m := c.machine(t, owned.ID); m.Offer != "large" || m.State != backends.StateStopped {
				t.Errorf("starts %v: %+v", starts, m)
			}
			if c.called("on") != 0 {
				t.Errorf("calls %v", c.calls)
			}
		})
	}
}

func TestMachineThatIsToBeOffStaysOffAfterItsResize(t *testing.T) {
	for _, failure := range []error{nil, lost} {
		synctest.Test(t, func(t *testing.T) {
			c := newEditable()
			c.resizeErr = failure
			account, pool := c.account(t)
			_, owned := created(t, account, pool)
			change := resizing(pool, owned, "")
			change.Spec.Start, change.Power = false, true
			_, err := account.Update(t.Context(), change)
			if (err == nil) != (failure == nil) {
				t.Fatal(err)
			}
			if m := c.machine(t, owned.ID); m.State != backends.StateStopped || c.called("on") != 0 {
				t.Errorf("%+v, calls %v", m, c.calls)
			}
		})
	}
}

// TestInterruptedEditPutsThePowerBack: Ctrl-C ends the waits, not the machine.
func TestInterruptedEditPutsThePowerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		account, pool := c.account(t)
		_, owned := created(t, account, pool)
		ctx, interrupt := context.WithCancel(t.Context())
		c.during, c.editErr = interrupt, context.Canceled
		change := resizing(pool, owned, "new")
		out, err := account.Update(ctx, change)
		if !Interrupted(err) || out.Edited || out.Resized {
			t.Fatalf("%+v, %v", out, err)
		}
		if m := c.machine(t, owned.ID); m.State != backends.StateRunning || m.Offer != "small" {
			t.Errorf("%+v", m)
		}
	})
}

func TestGuestThatDoesNotShutDownIsNotResizedForSomeoneElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		c.deafToACPI = true
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		time.AfterFunc(graceWindow/2, func() { c.usurp(m.ID) })
		_, err := account.Update(t.Context(), resizing(pool, owned, ""))
		if have := c.machine(t, m.ID); !backends.HasCode(err, backends.Conflict) || have.Offer != "small" || c.called("off") != 0 || c.called("on") != 0 {
			t.Errorf("%+v, %v, calls %v", have, err, c.calls)
		}
	})
}

func TestLabelsOfAFailedEditAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable()
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		c.change(m.ID, func(have *cloudMachine) { have.Labels = map[string]string{"theirs": "stays"} })
		labelled := func(labels map[string]string) backends.MachineSpec {
			spec := wish(pool, "web-0").Spec
			spec.Labels = labels
			return spec
		}
		none, failed, next := labelled(map[string]string{}), labelled(map[string]string{"a": "1"}), labelled(map[string]string{"b": "2"})
		c.lateEdit = lost
		if _, err := account.Update(t.Context(), Change{Owned: owned, Spec: failed, Edits: Edits{From: []backends.MachineSpec{none}}}); err == nil {
			t.Fatal("no error")
		}
		if _, err := account.Update(t.Context(), Change{Owned: owned, Spec: next, Edits: Edits{From: []backends.MachineSpec{failed, none}}}); err != nil {
			t.Fatal(err)
		}
		if have := c.machine(t, m.ID).Labels; !maps.Equal(have, map[string]string{"theirs": "stays", "b": "2"}) {
			t.Errorf("%v", have)
		}
	})
}

func TestFallbackIsMadeWhereTheOfferIsSoldOut(t *testing.T) {
	for name, test := range map[string]struct {
		soldOut []string
		want    string
	}{
		"to be had":    {nil, "small"},
		"sold out":     {[]string{"small"}, "medium"},
		"twice":        {[]string{"small", "medium"}, "large"},
		"nothing left": {[]string{"small", "medium", "large"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.soldOut = test.soldOut
			account, pool := c.account(t)
			w := wish(pool, "web-0")
			w.Fallbacks = []string{"medium", "large"}
			out, err := account.Create(t.Context(), w)
			if out.Machine.Offer != test.want || (err == nil) != (test.want != "") {
				t.Fatalf("%s: %+v, %v", name, out.Machine, err)
			}
			if err != nil {
				if !backends.HasReason(err, backends.ReasonCapacity) {
					t.Error(err)
				}
				return
			}
			// A lost state is recovered: the machine is one of those that are wanted.
			time.Sleep(time.Minute)
			other, pool := c.account(t)
			pool.Adopt = true
			again := wish(pool, "web-0")
			again.Fallbacks = w.Fallbacks
			if out, err := other.Create(t.Context(), again); err != nil || !out.Adopted {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		})
	}
}

func TestLostAnswerIsNoReasonForAFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.loseMakes = 1
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		w.Fallbacks = []string{"medium"}
		out, err := account.Create(t.Context(), w)
		if err != nil || out.Machine.Offer != "small" || len(c.all()) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
