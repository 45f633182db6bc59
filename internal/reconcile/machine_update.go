// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Change is what an update brings a machine to.
type Change struct {
	Owned
	// Spec is the machine as it is wanted; its marks are all set but for Claim and
	// Complete. Start says whether it should run.
	Spec backends.MachineSpec
	// Protect switches deletion protection; nil leaves it alone.
	Protect *bool
	// Power makes the machine run or stop as Spec.Start says.
	Power bool
	// Reinstall puts Spec.Image on the machine and wipes its disk; with
	// ReinstallUserData the guest also gets Spec's user data.
	Reinstall, ReinstallUserData bool
	// Edits is what is changed in place besides. Another key in Spec is a rename, which
	// an edit carries out.
	Edits
}

// Updated is what became of a change, also when only a part succeeded.
type Updated struct {
	// Machine is as last seen; without an ID it could not even be read.
	Machine backends.Machine
	// Claim is the one that the state holds from now on, whoever's the machine
	// carries: the state's own, or the one that was written where it had none.
	Claim string
	// Reinstalled: the disk was wiped, so the new image and user data must be
	// recorded, or the next update would wipe it again.
	Reinstalled bool
	// Edited: the name, labels, network and options are those of the change; Resized:
	// so is the offer.
	Edited, Resized bool
	// Begun: the machine is ours and complete, and something was to be done to it. With an
	// error the rest has yet to be.
	Begun bool
	// Tried: an edit was begun, so that the machine may have something of it.
	Tried bool
}

// Update brings a machine to what a change wants, in place. A machine that a state
// has imported is claimed first. One that is to be reinstalled, and is gone since its
// own reinstallation destroyed it, is made again where it was (see remake).
func (a *Account) Update(ctx context.Context, c Change) (Updated, error) {
	ctx = backends.Operation(ctx)
	unlockKeys, err := a.shared.keys.lockBoth(ctx, c.Key, c.Spec.Marks.Key)
	if err != nil {
		return Updated{Claim: c.Claim}, err
	}
	defer unlockKeys()
	unlock, err := a.machines.lock(ctx, c.ID)
	if err != nil {
		return Updated{Claim: c.Claim}, err
	}
	defer unlock()
	if c.Claim != "" {
		a.shared.claims.Store(c.Claim, true)
	}
	out, err := a.update(ctx, c)
	if c.Reinstall && backends.HasCode(err, backends.NotFound) {
		return a.remake(ctx, c, out, err)
	}
	return out, err
}

// update is Update of a machine that is there. It is locked by the caller.
func (a *Account) update(ctx context.Context, c Change) (out Updated, err error) {
	out.Claim = c.Claim
	if out.Machine, err = a.machines.current(ctx, c.Pool, c.ID); err != nil {
		return Updated{Claim: c.Claim}, err
	}
	marks := c.Spec.Marks
	if c.renames() {
		if err := a.NameIsFree(ctx, c.Pool, marks.Key, c.Spec.Name, c.ID); err != nil {
			return out, err
		}
		marks.Key = c.Key // until it has the name
	}
	if out.Machine, out.Claim, err = a.machines.own(ctx, out.Machine, c.Owned, marks); err != nil {
		return out, err
	}
	if !out.Machine.Marks.Complete {
		if out.Machine, _, err = a.machines.finish(ctx, c.Pool, out.Machine, a.prepareMachine(c.Pool, c.Spec)); err != nil {
			return out, err
		}
	}
	out.Begun = true
	err = a.converge(ctx, &out, c)
	return out, err
}

// converge does what differs, one after the other.
func (a *Account) converge(ctx context.Context, out *Updated, c Change) (err error) {
	protect := func(on bool) error {
		if c.Protect == nil || *c.Protect != on || out.Machine.Protected == on {
			return nil
		}
		out.Machine, err = a.protect(ctx, out.Machine, on)
		return err
	}
	// A cloud's protection may also refuse a reinstallation: lift it before, set it after.
	if err := protect(false); err != nil {
		return err
	}
	if c.Reinstall {
		if err := a.reinstall(ctx, out, c); err != nil {
			return err
		}
	}
	if err := a.rework(ctx, out, c); err != nil {
		return err
	}
	if err := protect(true); err != nil {
		return err
	}
	// A resize that an earlier run began may start the machine whenever it ends.
	if c.Power || c.Resize {
		if out.Machine, err = a.settle(ctx, c.Pool, out.Claim, out.Machine); err != nil {
			return err
		}
		if want := wantedState(c.Spec.Start); out.Machine.State != want {
			if out.Machine, err = a.powerTo(ctx, c.Pool, out.Claim, out.Machine, want); err != nil {
				return err
			}
		}
	}
	return a.redigest(ctx, out, c)
}

// redigest writes what the machine is made from by now.
func (a *Account) redigest(ctx context.Context, out *Updated, c Change) (err error) {
	switch m := out.Machine; {
	case m.Marks.Digest == c.Spec.Marks.Digest && !m.Marks.Doubled:
		return nil
	case m.Marks.Claim != out.Claim:
		return claimedAnew(m)
	default:
		marks := m.Marks
		marks.Digest = c.Spec.Marks.Digest
		out.Machine, err = a.machines.write(ctx, m, marks)
		return err
	}
}

// reinstall installs the image, says so in the digest at once, and waits until the
// machine runs again, if it is to run.
func (a *Account) reinstall(ctx context.Context, out *Updated, c Change) error {
	var err error
	switch r := a.Backend.(type) {
	case backends.UserDataReinstaller:
		if c.ReinstallUserData {
			err = r.ReinstallWithUserData(ctx, out.Machine, c.Spec)
		} else {
			err = r.Reinstall(ctx, out.Machine, c.Spec)
		}
	case backends.Reinstaller:
		if c.ReinstallUserData {
			return backends.Errorf(backends.Unsupported, "%s can't give a reinstalled machine new user data.", a.Definition.Title)
		}
		err = r.Reinstall(ctx, out.Machine, c.Spec)
	default:
		return backends.Errorf(backends.Unsupported, "%s can't reinstall a machine.", a.Definition.Title)
	}
	if err != nil {
		return err
	}
	out.Reinstalled = true
	if err := a.redigest(ctx, out, c); err != nil {
		return err
	}
	if c.Spec.Start {
		out.Machine, err = a.awaitState(ctx, c.Pool, out.Claim, out.Machine, backends.StateRunning)
		return err
	}
	// Some clouds start it all the same: what follows switches it off.
	out.Machine, err = a.machines.await(ctx, c.Pool, out.Machine, func(m backends.Machine, missing bool) (bool, error) {
		return m.State == backends.StateRunning || m.State == backends.StateStopped, stillOurs(m, missing, out.Claim)
	})
	return err
}
