// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Restart is a way to restart a machine.
type Restart string

// The ways. What a guest does with a request to restart can't be seen, so a graceful
// restart of a guest that ignores it is none; a reboot is one in any case.
const (
	// Reboot asks the guest to shut down, pulls the plug after the grace window, and
	// powers the machine on.
	Reboot Restart = "reboot"
	// GracefulRestart asks the guest to restart.
	GracefulRestart Restart = Restart(backends.PowerGracefulRestart)
	// Reset presses the reset button.
	Reset Restart = Restart(backends.PowerReset)
	// Cycle pulls the plug and powers the machine on.
	Cycle Restart = Restart(backends.PowerCycle)
)

// Restart restarts a machine that runs, and waits until it runs again. o names it by its
// id or, without one, by its key; whose claim it carries is not asked, since who names a
// machine of ours holds no state of it. One that carries no marks of ours is refused, and
// so is one that doesn't run: restarting would switch it on.
func (a *Account) Restart(ctx context.Context, o Owned, how Restart) (backends.Machine, error) {
	ctx = backends.Operation(ctx)
	id, err := a.restartable(ctx, o)
	if err != nil {
		return backends.Machine{}, err
	}
	unlock, err := a.machines.lock(ctx, id)
	if err != nil {
		return backends.Machine{}, err
	}
	defer unlock()
	m, err := a.machines.current(ctx, o.Pool, id)
	if err != nil {
		return m, err
	}
	if m, err = a.machines.whole(ctx, o.Pool, m); err != nil {
		return m, err
	}
	switch Own(m.Marks, o.Key, "") {
	case Unmarked:
		return m, backends.Errorf(backends.AccessDenied, "The machine %q (%s) carries none of our marks, so nothing is done to it.", m.Name, m.ID).
			WithRemedy("Import it and apply, which marks it; then restart it.")
	case Foreign:
		return m, anothers(m)
	case Ours, Unclaimed, Theirs:
	}
	claim := m.Marks.Claim
	if m, err = a.settle(ctx, o.Pool, claim, m); err != nil {
		return m, err
	}
	if m.State != backends.StateRunning {
		return m, backends.Errorf(backends.InvalidState, "The machine %q (%s) is %s, so it can't be restarted.", m.Name, m.ID, m.State).
			WithRemedy("To switch a machine on, set power = \"on\" on its resource and apply.")
	}
	if how != Reboot {
		if err := a.power(ctx, m, backends.PowerAction(how)); err != nil {
			return m, err
		}
		return a.awaitState(ctx, o.Pool, claim, m, backends.StateRunning)
	}
	if m, err = a.powerTo(ctx, o.Pool, claim, m, backends.StateStopped); err != nil {
		return m, err
	}
	return a.powerTo(ctx, o.Pool, claim, m, backends.StateRunning)
}

// restartable is the id of the machine that is named; NOT_FOUND without one.
func (a *Account) restartable(ctx context.Context, o Owned) (string, error) {
	if o.ID != "" {
		return o.ID, nil
	}
	m, err := a.machines.recent(ctx, o.Pool, o.Key)
	switch {
	case err != nil:
		return "", err
	case m == nil:
		return "", backends.Errorf(backends.NotFound, "No machine carries the id of %q in this pool.", o.Name).
			WithRemedy("Check the names in the uri.")
	}
	return m.ID, nil
}
