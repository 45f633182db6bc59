// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func (a *Account) power(ctx context.Context, m backends.Machine, action backends.PowerAction) error {
	p, ok := a.Backend.(backends.Powerer)
	if !ok {
		return backends.Errorf(backends.Unsupported, "%s can't change the power of a machine.", a.Definition.Title)
	}
	return p.Power(ctx, m, action)
}

// powerTo switches a machine on, or off: gracefully first, hard when the guest
// hasn't shut down within the grace window. A machine that someone else claims
// meanwhile is left as it is.
func (a *Account) powerTo(ctx context.Context, pool, claim string, m backends.Machine, want backends.State) (backends.Machine, error) {
	if want == backends.StateRunning {
		if err := a.power(ctx, m, backends.PowerOn); err != nil {
			return m, err
		}
		return a.awaitState(ctx, pool, claim, m, want)
	}
	if err := a.power(ctx, m, backends.PowerGracefulOff); err != nil {
		return m, err
	}
	grace, cancel := context.WithTimeoutCause(ctx, backends.Scale(graceWindow), errGraceOver)
	m, err := a.machines.await(grace, pool, m, func(m backends.Machine, missing bool) (bool, error) {
		return m.State == backends.StateStopped, stillOurs(m, missing, claim)
	})
	cancel()
	if err == nil || !errors.Is(err, errGraceOver) || ctx.Err() != nil {
		return m, err
	}
	if err := a.power(ctx, m, backends.PowerOff); err != nil {
		return m, err
	}
	return a.awaitState(ctx, pool, claim, m, want)
}

// settle waits until a machine is neither on its way up nor down.
func (a *Account) settle(ctx context.Context, pool, claim string, m backends.Machine) (backends.Machine, error) {
	if m.State != backends.StatePending {
		return m, nil
	}
	return a.machines.await(ctx, pool, m, func(m backends.Machine, missing bool) (bool, error) {
		return m.State != backends.StatePending, stillOurs(m, missing, claim)
	})
}

var errGraceOver = errors.New("the guest didn't shut down in time")

// wantedState is the state that a wish for power asks for.
func wantedState(on bool) backends.State {
	if on {
		return backends.StateRunning
	}
	return backends.StateStopped
}

// settleTime is how long an object must show the wrong state before we act: between
// two actions of a cloud it may show it for a moment.
const settleTime = 5 * time.Second

// awaitState waits until a machine is running or stopped. A machine that settles
// on the other one is told again; a cloud that can say why it doesn't get there
// is asked from time to time.
func (a *Account) awaitState(ctx context.Context, pool, claim string, m backends.Machine, want backends.State) (backends.Machine, error) {
	var settled time.Time
	diagnosed := time.Now()
	why := a.machines.why
	return a.machines.await(ctx, pool, m, func(m backends.Machine, missing bool) (bool, error) {
		if err := stillOurs(m, missing, claim); err != nil {
			return false, err
		}
		switch {
		case m.State == want:
			return true, nil
		case m.State == backends.StateError:
			return false, why(ctx, m, inError(m))
		case m.State != backends.StateRunning && m.State != backends.StateStopped:
			settled = time.Time{}
		case settled.IsZero():
			settled = time.Now()
		case time.Since(settled) >= backends.Scale(settleTime):
			if err := why(ctx, m, nil); err != nil {
				return false, err
			}
			settled, diagnosed = time.Now(), time.Now()
			return false, a.power(ctx, m, powerFor(want))
		}
		if time.Since(diagnosed) >= backends.Scale(diagnoseEvery) {
			diagnosed = time.Now()
			return false, why(ctx, m, nil)
		}
		return false, nil
	})
}

func powerFor(want backends.State) backends.PowerAction {
	if want == backends.StateRunning {
		return backends.PowerOn
	}
	return backends.PowerOff
}
