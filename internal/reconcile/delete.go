// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Owned names an object by what a state knows of it.
type Owned struct {
	Pool  string // the pool's id
	ID    string // the cloud's id
	Key   string
	Claim string // "" when the state never took it: an import
}

// Delete deletes a machine and waits until it is gone; one that is gone already
// is a success. One that someone else has claimed is left alone: then left is
// true. One without our marks is ACCESS_DENIED.
func (a *Account) Delete(ctx context.Context, o Owned) (left bool, err error) {
	unlock, err := a.shared.keys.lock(ctx, o.Key)
	if err != nil {
		return false, err
	}
	defer unlock()
	m, _, err := a.reader.get(ctx, backends.Filter{Pool: o.Pool}, o.ID, time.Now())
	switch {
	case backends.HasCode(err, backends.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	switch own := Own(m.Marks, o.Key, o.Claim); {
	case m.State == backends.StateDeleted:
		return false, nil
	case own == Unmarked:
		return false, backends.Errorf(backends.AccessDenied, "The machine %q (%s) carries none of our marks, so it is not deleted.", m.Name, m.ID).
			WithRemedy("If it is this resource's machine, import it again and apply, which marks it; to let it go, use a removed block with destroy = false.")
	case own != Ours && o.Claim == "":
		return false, backends.Errorf(backends.InvalidState, "The machine %q (%s) was imported and never taken over, so it is not deleted.", m.Name, m.ID).
			WithRemedy("Apply once, which takes it over, then destroy it; to let it go, use a removed block with destroy = false.")
	case own == Theirs || own == Foreign:
		return true, nil
	}
	return false, a.remove(ctx, o.Pool, m)
}

// remove deletes a machine of ours and waits until it is gone.
func (a *Account) remove(ctx context.Context, pool string, m backends.Machine) error {
	unlock, err := a.lockMachine(ctx, m.ID)
	if err != nil {
		return err
	}
	defer unlock()
	if m.State != backends.StateDeleting {
		if m.Protected {
			e := backends.Errorf(backends.InvalidState, "The machine %q (%s) has deletion protection.", m.Name, m.ID).
				WithRemedy("Set deletion_protection = false and apply, then destroy it.")
			e.Reason = backends.ReasonProtected
			return e
		}
		call, cancel := backends.Grace(ctx)
		err = a.Backend.DeleteMachine(call, m)
		cancel()
		switch {
		case backends.HasCode(err, backends.NotFound):
			return a.confirmGone(ctx, m)
		case err != nil:
			return err
		}
	}
	return a.awaitGone(ctx, pool, m)
}

// confirmGone asks for the machine itself, since "not found" to a deletion may come
// from something in between.
func (a *Account) confirmGone(ctx context.Context, m backends.Machine) error {
	_, err := a.Backend.GetMachine(ctx, m.ID)
	switch {
	case backends.HasCode(err, backends.NotFound):
		a.reader.deleted(m.ID)
		return nil
	case err != nil:
		return err
	}
	e := backends.Errorf(backends.ProviderError, "The cloud answered the deletion of the machine %q (%s) with \"not found\", but the machine is there.", m.Name, m.ID)
	e.Retryable = true
	return e.WithRemedy("Run again.")
}
