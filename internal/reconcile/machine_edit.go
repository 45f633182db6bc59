// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Edits is what a change does to a machine by a [backends.Editor] and a
// [backends.Resizer].
type Edits struct {
	// From are the wishes that the machine may come from: the one that a state records
	// and, before it, those whose edit failed after the machine may have been changed.
	// Without any the machine isn't edited.
	From []backends.MachineSpec
	// Resize gives the machine the offer of the change, with its disk if GrowDisk.
	Resize, GrowDisk bool
	// Limits is the pool with its limits, and Offer the offer in the catalog, where the
	// machine becomes dearer by its resize; nil where it doesn't.
	Limits reference.Reference
	Offer  *backends.Offer
	// HadOffer is the offer that the machine has before it is resized, and goes back to
	// where it can't be started with the other one; "" for none.
	HadOffer string
	// KeptDigest is the digest of the change's wish with the offer that the machine has
	// before it is resized; "" without Resize.
	KeptDigest string
}

func (c Change) renames() bool { return c.Key != c.Spec.Marks.Key }

// NameIsFree fails with a CONFLICT where another machine than the one with that id
// carries the key of a name that it is to get. A list may be old, so who acts on it
// asks for the object itself.
func (a *Account) NameIsFree(ctx context.Context, pool, key, name, id string) error {
	holder, err := a.machines.recent(ctx, pool, key)
	if err != nil || holder == nil || holder.ID == id {
		return err
	}
	m, err := a.machines.ask(ctx, holder.ID)
	switch {
	case backends.HasCode(err, backends.NotFound):
		return nil
	case err != nil:
		return err
	case !m.Marks.Carries(key) || m.About().Going():
		return nil
	}
	e := backends.Errorf(backends.Conflict, "The name %q can't be given to the machine %s: it is that of the machine %q (%s) of the same pool.", name, id, m.Name, m.ID).
		WithRemedy("Choose another name. If this configuration renames or removes the other machine, apply that first: " +
			"two machines swap names in two applies, with a third name in between.").At("name")
	e.Details = map[string]any{"machine_id": m.ID}
	return e
}

// rework edits and resizes a machine. What needs it off switches it off, and at the
// end, whatever became of it, it runs again if it did before.
func (a *Account) rework(ctx context.Context, out *Updated, c Change) error {
	// The cloud may show a rename that was cut off and that the configuration has taken
	// back since.
	from := c.From
	if m := out.Machine.Marks; len(from) == 0 && (m.Key != c.Spec.Marks.Key || m.OtherKey != "") {
		from = []backends.MachineSpec{c.Spec}
	}
	if len(from) == 0 && !c.Resize {
		return nil
	}
	if c.Resize && c.Offer != nil && out.Machine.Offer != c.Spec.Offer {
		release, err := a.ReserveResize(ctx, c.Limits, out.Machine.Marks.Key, c.Offer)
		if err != nil {
			return err
		}
		defer release() // from then on the pool's list tells
	}
	w := &reworking{account: a, ctx: ctx, out: out, change: c}
	err := w.edit(ctx, from)
	if err == nil && c.Resize {
		err = w.resize(ctx)
	}
	if err != nil {
		w.lookAgain(ctx)
	}
	return errors.Join(err, w.powerAgain(ctx, err != nil))
}

// reworking is one run of [Account.rework].
type reworking struct {
	account *Account
	// ctx is the update's: the wait for the guest ends with it, while the call that is
	// being prepared for has some time to end.
	ctx    context.Context
	out    *Updated
	change Change
	// was is running or stopped, as the machine was before it was switched off for the
	// change; "" where that didn't come to pass.
	was backends.State
}

func (w *reworking) edit(ctx context.Context, from []backends.MachineSpec) error {
	if len(from) == 0 {
		return nil
	}
	e, ok := w.account.Backend.(backends.Editor)
	if !ok {
		return backends.Errorf(backends.Unsupported, "%s can't change a machine in place.", w.account.Definition.Title)
	}
	to := w.change.Spec
	to.Marks.Claim, to.Marks.Complete, to.Marks.Doubled = w.out.Claim, true, false
	if w.change.Resize {
		to.Marks.Digest = w.change.KeptDigest
	}
	w.out.Tried = true
	for _, from := range from {
		err := w.call(ctx, func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
			return e.Edit(ctx, m, from, to, w.powerDown)
		})
		if err != nil {
			return err
		}
	}
	w.out.Edited = true
	return nil
}

func (w *reworking) resize(ctx context.Context) error {
	r, ok := w.account.Backend.(backends.Resizer)
	if !ok {
		return backends.Errorf(backends.Unsupported, "%s can't give a machine another offer in place.", w.account.Definition.Title)
	}
	err := w.call(ctx, func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
		return r.Resize(ctx, m, w.change.Spec, w.change.GrowDisk, w.powerDown)
	})
	w.out.Resized = err == nil
	return err
}

// call is one call of the backend, with what it shows folded in.
func (w *reworking) call(ctx context.Context, do func(context.Context, backends.Machine) (backends.Machine, error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	machines := w.account.machines
	return machines.change(ctx, w.out.Machine.ID, func(ctx context.Context) error {
		m, err := do(ctx, w.out.Machine)
		if err == nil {
			machines.reader.wrote(m)
			w.out.Machine = m
		}
		return err
	})
}

// powerDown is the [backends.PowerDown] of a run.
func (w *reworking) powerDown(context.Context) error {
	a, c := w.account, w.change
	m, err := a.machines.ask(w.ctx, w.out.Machine.ID)
	if err != nil {
		return err
	}
	if err := stillOurs(m, false, w.out.Claim); err != nil {
		return err
	}
	if m, err = a.settle(w.ctx, c.Pool, w.out.Claim, m); err != nil {
		return err
	}
	if w.was == "" {
		w.was = m.State
	}
	if m.State == backends.StateStopped {
		return nil
	}
	_, err = a.powerTo(w.ctx, c.Pool, w.out.Claim, m, backends.StateStopped)
	return err
}

// lookAgain takes in what the machine is after an error, if it can be told.
func (w *reworking) lookAgain(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	if m, err := w.account.machines.ask(ctx, w.out.Machine.ID); err == nil {
		w.out.Machine = m
	}
}

// powerAgain gives a machine that was switched off for the change the power that it
// had: some clouds also start one that was off. What the change itself wants of the
// power comes later, unless it has failed. After an interrupt the machine is told, and
// not waited for.
func (w *reworking) powerAgain(ctx context.Context, failed bool) error {
	a, c, want := w.account, w.change, w.was
	switch {
	case want == "", c.Power && !failed:
		return nil
	case failed && (want == backends.StateStopped || c.Power && !c.Spec.Start):
		return nil
	}
	if ctx.Err() != nil && want == backends.StateStopped {
		return context.Cause(ctx) // the next apply stops what the cloud has started
	}
	if ctx.Err() != nil {
		grace, cancel := backends.Grace(ctx)
		defer cancel()
		if err := a.power(grace, w.out.Machine, powerFor(want)); err != nil {
			return w.stays(err)
		}
		return context.Cause(ctx)
	}
	m, err := a.machines.ask(ctx, w.out.Machine.ID)
	if err == nil {
		err = stillOurs(m, false, w.out.Claim)
	}
	if err == nil {
		m, err = a.settle(ctx, c.Pool, w.out.Claim, m)
	}
	if err == nil && m.State != want {
		m, err = a.powerTo(ctx, c.Pool, w.out.Claim, m, want)
	}
	if w.out.Resized && c.HadOffer != "" && backends.HasReason(err, backends.ReasonCapacity) {
		// There is no room to run it as what it was made: it runs again as what it was.
		return errors.Join(err, w.resizeBack(ctx))
	}
	if m.ID != "" {
		w.out.Machine = m
	}
	return w.stays(err)
}

// resizeBack gives the machine the offer that it had, and starts it.
func (w *reworking) resizeBack(ctx context.Context) error {
	a, c := w.account, w.change
	r, ok := a.Backend.(backends.Resizer)
	if !ok {
		return nil
	}
	to := c.Spec
	to.Offer = c.HadOffer
	err := w.call(ctx, func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
		return r.Resize(ctx, m, to, false, w.powerDown)
	})
	if err != nil {
		return w.stays(err)
	}
	w.out.Resized = false
	m, err := a.powerTo(ctx, c.Pool, w.out.Claim, w.out.Machine, w.was)
	if m.ID != "" {
		w.out.Machine = m
	}
	return w.stays(err)
}

// stays says of an error that it keeps the machine from being as it was.
func (w *reworking) stays(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("giving the machine %s back its power (%s), which was switched off for the change: %w", w.out.Machine.ID, w.was, err)
}
