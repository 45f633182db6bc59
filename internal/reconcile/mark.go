// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// mark writes marks and folds the answer in. An interrupt lets the call end.
func (a *Account) mark(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	if ctx.Err() != nil {
		return m, context.Cause(ctx)
	}
	call, cancel := backends.Grace(ctx)
	defer cancel()
	out, err := a.Backend.MarkMachine(call, m, marks)
	if err != nil {
		return m, err
	}
	a.reader.wrote(out)
	return out, nil
}

// writeClaim writes marks with a new claim and reads it back after a while: of
// two who take over at the same time, only the one whose claim stayed goes on.
func (a *Account) writeClaim(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	m, err := a.mark(ctx, m, marks)
	if err != nil {
		return m, err
	}
	if err := backends.Sleep(ctx, backends.Scale(readBackDelay)); err != nil {
		return m, err
	}
	back, err := a.Backend.GetMachine(ctx, m.ID)
	if err != nil {
		return m, err
	}
	a.reader.wrote(back)
	if back.Marks.Claim != marks.Claim {
		return back, claimedAnew(back)
	}
	return back, nil
}

// finish brings a machine that carries our claim to completion: what making left
// to do, the wait, protection, and the completion mark, which comes last. The
// machine is locked by the caller.
// asWanted: all of it is done but the mark.
func (a *Account) finish(ctx context.Context, pool string, m backends.Machine, spec backends.MachineSpec) (
	out backends.Machine, asWanted bool, err error) {
	claim := m.Marks.Claim
	if f, ok := a.Backend.(backends.Finisher); ok {
		done, err := f.FinishMachine(ctx, m, spec)
		if done.ID != "" {
			m = done
		}
		if err != nil {
			return m, false, err
		}
		a.reader.wrote(m)
	}
	if m, err = a.awaitState(ctx, pool, claim, m, wantedState(spec.Start)); err != nil {
		return m, false, err
	}
	if spec.Protected && !m.Protected {
		if m, err = a.protect(ctx, m, true); err != nil {
			return m, false, err
		}
	}
	m, err = a.complete(ctx, pool, m)
	return m, true, err
}

// completionTime bounds one try at writing the completion mark. It is well below
// the watch window: after a longer wait (for a rate limit, say) another run may
// have taken over, so the claim is read again before the next try.
const completionTime = watchWindow / 2

// complete writes the completion mark on a machine as it was just seen, and reads
// the claim once more: who finds another's has lost the machine.
func (a *Account) complete(ctx context.Context, pool string, m backends.Machine) (backends.Machine, error) {
	claim := m.Marks.Claim
	for {
		marks := m.Marks
		marks.Complete = true
		try, cancel := context.WithTimeout(ctx, completionTime)
		marked, err := a.mark(try, m, marks)
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			m = marked
			break
		}
		if !late {
			return m, err
		}
		if m, err = a.Backend.GetMachine(ctx, m.ID); err != nil {
			return m, err
		}
		if m.Marks.Claim != claim {
			return m, claimedAnew(m)
		}
	}
	return a.await(ctx, pool, m, func(m backends.Machine, missing bool) (bool, error) {
		return true, stillOurs(m, missing, claim)
	})
}

func (a *Account) protect(ctx context.Context, m backends.Machine, on bool) (backends.Machine, error) {
	p, ok := a.Backend.(backends.Protector)
	if !ok {
		return m, backends.Errorf(backends.Unsupported, "%s has no deletion protection.", a.Definition.Title)
	}
	if err := p.Protect(ctx, m, on); err != nil {
		return m, err
	}
	m.Protected = on
	a.reader.wrote(m)
	return m, nil
}
