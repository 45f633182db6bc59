// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"fmt"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Owned names an object by what a state knows of it.
type Owned struct {
	Pool  string // the pool's id
	ID    string // the cloud's id
	Key   string
	Claim string // "" when the state never took it: an import
	// Name is the object's in the cloud. Where ids are reused it tells one of ours whose
	// marks were taken away from a stranger's; "" where it doesn't matter.
	Name string
}

// ownToDelete is the object that a state may delete; nil when it is gone already,
// or, with left, when someone else has claimed it. One without our marks is
// ACCESS_DENIED. One that is being made, and doesn't say yet whose it is, is waited for.
func (k *kind[T]) ownToDelete(ctx context.Context, o Owned) (object *T, left bool, err error) {
	seen, err := k.current(ctx, o.Pool, o.ID)
	if err == nil {
		seen, err = k.whole(ctx, o.Pool, seen)
	}
	switch {
	case backends.HasCode(err, backends.NotFound):
		k.sweep(ctx, o)
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	a := seen.About()
	switch own := Own(a.Marks, o.Key, o.Claim); {
	case a.State == backends.StateDeleted || k.isStrangers(a, o):
		k.sweep(ctx, o)
		return nil, false, nil
	case own == Unmarked:
		return nil, false, backends.Errorf(backends.AccessDenied, "The %s %q (%s) carries none of our marks, so it is not deleted.", a.Noun, a.Name, a.ID).
			WithRemedy("If it is this resource's %s, import it again and apply, which marks it; to let it go, use a removed block with destroy = false.", a.Noun)
	case own != Ours && o.Claim == "":
		return nil, false, backends.Errorf(backends.InvalidState, "The %s %q (%s) was imported and never taken over, so it is not deleted.", a.Noun, a.Name, a.ID).
			WithRemedy("Apply once, which takes it over, then destroy it; to let it go, use a removed block with destroy = false.")
	case own == Theirs || own == Foreign:
		return nil, true, nil
	}
	return &seen, false, nil
}

// sweep removes what the cloud keeps for an object that was ours, and that someone else
// deleted. What can't be removed is a warning: nothing needs it.
func (k *kind[T]) sweep(ctx context.Context, o Owned) {
	var none T
	s, ok := k.account.Backend.(backends.Sweeper)
	if _, isMachine := any(none).(backends.Machine); !ok || !isMachine || o.Claim == "" {
		return // an import that was never taken is nobody's
	}
	if err := s.SweepMachine(ctx, o.Key); err != nil {
		backends.Warn(ctx, fmt.Sprintf("The %s %s is gone, but not all that was kept for it could be removed: %v", k.noun, o.ID, err))
	}
}

// remove deletes an object of ours and waits until it is gone.
func (k *kind[T]) remove(ctx context.Context, pool string, object T) error {
	unlock, err := k.lock(ctx, object.About().ID)
	if err != nil {
		return err
	}
	defer unlock()
	return k.erase(ctx, pool, object, k.delete)
}

// erase deletes an object, which is locked, by a call that deletes it, and waits
// until it is gone.
func (k *kind[T]) erase(ctx context.Context, pool string, object T, call func(context.Context, T) error) error {
	a := object.About()
	if a.State != backends.StateDeleting {
		if a.Protected {
			return protected(object)
		}
		grace, cancel := backends.Grace(ctx)
		err := call(grace, object)
		cancel()
		switch {
		case backends.HasCode(err, backends.NotFound):
			if err := k.confirmGone(ctx, object); err != nil {
				return err
			}
			k.forget(ctx, pool, a.Marks)
			return nil
		case err != nil:
			return err
		}
		k.reader.going(a.ID)
	}
	if err := k.awaitGone(ctx, pool, object); err != nil {
		return err
	}
	k.forget(ctx, pool, a.Marks)
	return nil
}

// protected refuses to delete what has deletion protection.
func protected(object backends.Object) *backends.Error {
	a := object.About()
	e := backends.Errorf(backends.InvalidState, "The %s %q (%s) has deletion protection.", a.Noun, a.Name, a.ID).
		WithRemedy("Lift the protection, then destroy it: set deletion_protection = false and apply. A resource that is tainted is untainted first.")
	e.Reason = backends.ReasonProtected
	e.Details = map[string]any{a.Noun + "_id": a.ID}
	return e
}

// confirmGone asks for the object itself, since "not found" to a deletion may come
// from something in between.
func (k *kind[T]) confirmGone(ctx context.Context, object T) error {
	a := object.About()
	_, err := k.get(ctx, a.ID)
	switch {
	case backends.HasCode(err, backends.NotFound):
		k.reader.deleted(a.ID)
		return nil
	case err != nil:
		return err
	}
	e := backends.Errorf(backends.ProviderError, "The cloud answered the deletion of the %s %q (%s) with \"not found\", but the %s is there.", a.Noun, a.Name, a.ID, a.Noun)
	e.Retryable = true
	return e.WithRemedy("Run again.")
}

// forget drops what an object that is gone had: its place in the pool's limits, and
// what the cloud keeps of its marks.
func (k *kind[T]) forget(ctx context.Context, pool string, m backends.Marks) {
	k.account.shared.booked.drop(pool, m.Key)
	if !m.Fixed {
		k.account.Tidy(ctx, backends.Marks{Key: m.Key, Claim: m.Claim, Digest: m.Digest, Volume: m.Volume})
	}
}

// Tidy removes what the cloud keeps of marks that nothing carries any more: those of
// an object, a pool or an account that is gone. What can't be removed costs nothing
// but its place in a list, so that it is only logged.
func (a *Account) Tidy(ctx context.Context, marks backends.Marks) {
	t, ok := a.Backend.(backends.Tidier)
	if !ok {
		return
	}
	if err := t.Tidy(ctx, marks); err != nil {
		a.log.WarnContext(ctx, "could not remove what is left of deleted objects", "error", err.Error())
	}
}
