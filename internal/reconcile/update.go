// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"time"

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
}

// Update brings a machine to what a change wants, in place, and returns it as it
// is then, also when only a part succeeded. A machine that a state has imported,
// or that lost its claim, is claimed first: its Marks.Claim is then new.
func (a *Account) Update(ctx context.Context, c Change) (backends.Machine, error) {
	unlock, err := a.machines.lock(ctx, c.ID)
	if err != nil {
		return backends.Machine{}, err
	}
	m, _, err := a.reader.get(ctx, backends.Filter{Pool: c.Pool}, c.ID, time.Now())
	if err == nil {
		m, err = a.own(ctx, m, c)
	}
	unlock()
	if err != nil {
		return m, err
	}
	if !m.Marks.Complete {
		if m, err = a.finish(ctx, c.Pool, m, c.Spec); err != nil {
			return m, err
		}
	}
	if unlock, err = a.machines.lock(ctx, c.ID); err != nil {
		return m, err
	}
	defer unlock()
	return a.converge(ctx, m, c)
}

// own makes sure that a machine is ours to change, claiming it where the state
// never did.
func (a *Account) own(ctx context.Context, m backends.Machine, c Change) (backends.Machine, error) {
	own := Own(m.Marks, c.Key, c.Claim)
	switch {
	case own == Ours:
		return m, nil
	case own == Foreign:
		return m, nameTaken(m)
	case own == Theirs && c.Claim != "":
		return m, claimedAnew(m)
	case own == Unmarked && c.Claim != "":
		return m, backends.Errorf(backends.AccessDenied, "The machine %q (%s) carries none of our marks any more, so it is not changed.", m.Name, m.ID).
			WithRemedy("If it is this resource's machine, remove it from the state, import it again and apply, which marks it.")
	}
	marks := c.Spec.Marks
	marks.Managed = true
	marks.Claim = NewClaim()
	// An unmarked machine is not half made: nobody but its owner knows how it was made.
	marks.Complete = m.Marks.Complete || own == Unmarked
	return a.writeClaim(ctx, m, marks)
}

func (a *Account) converge(ctx context.Context, m backends.Machine, c Change) (backends.Machine, error) {
	claim := m.Marks.Claim
	var err error
	if c.Protect != nil && *c.Protect != m.Protected {
		if m, err = a.protect(ctx, m, *c.Protect); err != nil {
			return m, err
		}
	}
	if c.Reinstall {
		if m, err = a.reinstall(ctx, m, c); err != nil {
			return m, err
		}
	}
	if want := wantedState(c.Spec.Start); c.Power && m.State != want {
		if m, err = a.powerTo(ctx, c.Pool, claim, m, want); err != nil {
			return m, err
		}
	}
	if d := c.Spec.Marks.Digest; d != m.Marks.Digest {
		marks := m.Marks
		marks.Digest = d
		if m, err = a.mark(ctx, m, marks); err != nil {
			return m, err
		}
	}
	return m, nil
}

// reinstall installs the image and waits until the machine runs again.
func (a *Account) reinstall(ctx context.Context, m backends.Machine, c Change) (backends.Machine, error) {
	var err error
	switch r := a.Backend.(type) {
	case backends.UserDataReinstaller:
		if c.ReinstallUserData {
			err = r.ReinstallWithUserData(ctx, m, c.Spec)
		} else {
			err = r.Reinstall(ctx, m, c.Spec)
		}
	case backends.Reinstaller:
		if c.ReinstallUserData {
			return m, backends.Errorf(backends.Unsupported, "%s can't give a reinstalled machine new user data.", a.Definition.Title)
		}
		err = r.Reinstall(ctx, m, c.Spec)
	default:
		return m, backends.Errorf(backends.Unsupported, "%s can't reinstall a machine.", a.Definition.Title)
	}
	if err != nil {
		return m, err
	}
	return a.awaitState(ctx, c.Pool, m.Marks.Claim, m, backends.StateRunning)
}
