// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Delete deletes a machine, and the volumes that go with it, and waits until they
// are gone; one that is gone already is a success. One that someone else has claimed
// is left alone: then left is true. One without our marks is ACCESS_DENIED.
func (a *Account) Delete(ctx context.Context, o Owned) (left bool, err error) {
	ctx = backends.Operation(ctx)
	unlock, err := a.shared.keys.lock(ctx, o.Key)
	if err != nil {
		return false, err
	}
	defer unlock()
	m, left, err := a.machines.ownToDelete(ctx, o)
	if m == nil || left || err != nil {
		return left, err
	}
	if m.Protected && !m.Marks.Complete { // it was never what it should be, and whoever made it gives it up
		lifted, err := a.protect(ctx, *m, false)
		if err != nil {
			return false, err
		}
		m = &lifted
	}
	going, err := a.deleteMachine(ctx, o.Pool, *m)
	if err != nil {
		return false, err
	}
	for _, v := range going {
		if err := a.deleteGone(ctx, m.ID, v); err != nil {
			return false, fmt.Errorf("deleting the volume %q (%s), which goes with the machine: %w", v.Name, v.ID, err)
		}
	}
	return false, nil
}

// deleteMachine deletes a machine, and returns the volumes that go with it: where the
// cloud can, they were named in the one call. What attaches and detaches its volumes
// waits until it is gone.
func (a *Account) deleteMachine(ctx context.Context, pool string, m backends.Machine) (going []backends.Volume, err error) {
	unlock, err := a.machines.lock(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m.Protected && !m.Marks.Complete {
		// Its making never came to its end, and the protection is a part of that.
		if m, err = a.protect(ctx, m, false); err != nil {
			return nil, err
		}
	}
	d, selective := a.Backend.(backends.SelectiveDestroyer)
	for try := 0; ; try++ {
		if going, err = a.confirmGoing(ctx, m.ID); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(going, func(v backends.Volume) bool { return v.Protected }); i >= 0 {
			return nil, GoesProtected(m, going[i])
		}
		call := a.Backend.DeleteMachine
		if selective && len(going) > 0 {
			call = func(ctx context.Context, m backends.Machine) error { return d.DeleteMachineWith(ctx, m, going) }
		}
		err = a.machines.erase(ctx, pool, m, call)
		if selective && len(going) > 0 && try < goingTries && backends.HasReason(err, backends.ReasonInvalid) {
			// One was detached by someone else meanwhile: it doesn't go.
			continue
		}
		return going, err
	}
}

// GoesProtected refuses to delete a machine together with a volume that has deletion
// protection.
func GoesProtected(m backends.Machine, v backends.Volume) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The machine %q (%s) isn't deleted: the volume %q (%s), which goes with it (delete_with_instance), has deletion protection.",
		m.Name, m.ID, v.Name, v.ID).
		WithRemedy("To keep the volume, set its delete_with_instance = false and apply that first; to let it go, set its deletion_protection = false and apply that first.")
	e.Reason = backends.ReasonProtected
	e.Details = map[string]any{"machine_id": m.ID, "volume_id": v.ID}
	return e
}

// goingTries bounds how often the volumes that go with a machine are looked up anew.
const goingTries = 3

// GoingWith are the volumes that are deleted with a machine, as a recent list shows
// them.
func (a *Account) GoingWith(ctx context.Context, machine string) ([]backends.Volume, error) {
	if a.volumes == nil {
		return nil, nil
	}
	// They may be of another pool of the account.
	return a.volumes.reader.list(ctx, backends.Filter{Account: a.id}, time.Now().Add(-lookUpAge),
		func(v backends.Volume) bool { return goesWith(v, machine) })
}

func goesWith(v backends.Volume, machine string) bool {
	return v.Marks.Managed && v.Marks.GoesWithMachine && v.AttachedTo(machine) && !v.About().Going()
}

// confirmGoing asks the cloud about each volume that is to go with a machine, since
// a list may be old and its data would be lost.
func (a *Account) confirmGoing(ctx context.Context, machine string) ([]backends.Volume, error) {
	listed, err := a.GoingWith(ctx, machine)
	if err != nil {
		return nil, err
	}
	var out []backends.Volume
	for _, v := range listed {
		v, err := a.volumes.ask(ctx, v.ID)
		switch {
		case backends.HasCode(err, backends.NotFound):
		case err != nil:
			return nil, err
		case goesWith(v, machine):
			out = append(out, v)
		}
	}
	return out, nil
}

// deleteGone deletes a volume whose machine is gone, unless the cloud deletes it with
// the machine. One that hangs on another machine by now stays.
func (a *Account) deleteGone(ctx context.Context, machine string, v backends.Volume) error {
	_, selective := a.Backend.(backends.SelectiveDestroyer)
	begun := time.Now()
	gone := false
	v, err := a.volumes.await(ctx, v.Marks.Pool, v, func(v backends.Volume, missing bool) (bool, error) {
		gone = missing || v.State == backends.StateDeleted
		waited := !selective || time.Since(begun) > backends.Scale(goingWindow)
		return gone || attachedElsewhere(v, machine) || v.State != backends.StateDeleting && len(v.Machines) == 0 && waited, nil
	})
	switch {
	case err != nil:
		return err
	case gone:
		a.volumes.reader.deleted(v.ID)
		a.volumes.forget(ctx, v.Marks.Pool, v.Marks)
		return nil
	case attachedElsewhere(v, machine):
		return nil
	default:
		return a.volumes.remove(ctx, v.Marks.Pool, v)
	}
}

func attachedElsewhere(v backends.Volume, machine string) bool {
	return len(v.Machines) > 0 && !v.AttachedTo(machine)
}
