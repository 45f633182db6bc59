// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"

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
	m, err := a.await(grace, pool, m, func(m backends.Machine, missing bool) (bool, error) {
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
	if m.State == backends.StateRunning || m.State == backends.StateStopped {
		return m, nil
	}
	return a.await(ctx, pool, m, func(m backends.Machine, missing bool) (bool, error) {
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
