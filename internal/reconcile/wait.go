// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// patient tells whether a wait goes on after an error of a poll: the machine is
// still there, only the answer is missing.
func patient(err error) bool {
	e := backends.AsError(err)
	return e != nil && (e.Ambiguous || e.Retryable)
}

// await polls a machine until done says so, or fails, or ctx ends. Polls of many
// machines share lists: a waiter takes any list begun after the one it saw last.
// done is also told when the machine is gone. The machine returned is the last
// one seen.
func (a *Account) await(ctx context.Context, pool string, last backends.Machine,
	done func(m backends.Machine, gone bool) (bool, error)) (backends.Machine, error) {
	since := time.Now()
	var failure error
	for n := 0; ; n++ {
		if n > 0 {
			if err := backends.Sleep(ctx, poll(n-1)); err != nil {
				return last, waitEnded(last, err, failure)
			}
		}
		m, begun, err := a.reader.get(ctx, backends.Filter{Pool: pool}, last.ID, since)
		missing := backends.HasCode(err, backends.NotFound)
		switch {
		case err == nil:
			last, since, failure = m, begun.Add(1), nil
		case missing:
			since = time.Now()
		case ctx.Err() != nil:
			return last, waitEnded(last, context.Cause(ctx), failure)
		case patient(err):
			failure, since = err, time.Now()
			continue
		default:
			return last, err
		}
		if ok, err := done(last, missing); ok || err != nil {
			return last, err
		}
	}
}

// waitEnded says what a wait that ended too early was waiting for.
func waitEnded(m backends.Machine, cause, failure error) error {
	ended := "it took longer than its timeout"
	if errors.Is(cause, context.Canceled) {
		ended = "it was interrupted"
	}
	e := backends.Errorf(backends.ProviderError, "The wait for the machine %q (%s), last seen %s, ended early: %s.", m.Name, m.ID, m.State, ended)
	e.Remedy = "Run again: it goes on where it ended. If the cloud is that slow, give it more time in the resource's timeouts."
	if failure != nil {
		e.Message += fmt.Sprintf(" The last poll failed: %v", failure)
	}
	e.Err = cause
	return e
}

// Interrupted tells whether an operation ended because it was told to stop
// (Ctrl-C), not because it failed or its time was up.
func Interrupted(err error) bool { return errors.Is(err, context.Canceled) }

// stillOurs fails when a machine that we work on went away, or was claimed by
// someone else meanwhile: every wait ends then.
func stillOurs(m backends.Machine, missing bool, claim string) error {
	switch {
	case missing:
		return backends.Errorf(backends.NotFound, "The machine %q (%s) vanished: someone else deleted it.", m.Name, m.ID).
			WithRemedy("Plan again: a new one is planned.")
	case m.Marks.Claim != claim:
		return claimedAnew(m)
	}
	return nil
}

// settleTime is how long a machine must show the wrong power state before we act:
// between two actions of a cloud it may show it for a moment.
const settleTime = 5 * time.Second

// awaitState waits until a machine is running or stopped. A machine that settles
// on the other one is told again; a cloud that can say why it doesn't get there
// is asked from time to time.
func (a *Account) awaitState(ctx context.Context, pool, claim string, m backends.Machine, want backends.State) (backends.Machine, error) {
	var settled time.Time
	diagnosed := time.Now()
	return a.await(ctx, pool, m, func(m backends.Machine, missing bool) (bool, error) {
		if err := stillOurs(m, missing, claim); err != nil {
			return false, err
		}
		switch {
		case m.State == want:
			return true, nil
		case m.State == backends.StateError:
			return false, a.why(ctx, m, backends.Errorf(backends.ProviderError, "The machine %s is in error: %s", m.ID, m.Message))
		case m.State != backends.StateRunning && m.State != backends.StateStopped:
			settled = time.Time{}
		case settled.IsZero():
			settled = time.Now()
		case time.Since(settled) >= backends.Scale(settleTime):
			if err := a.why(ctx, m, nil); err != nil {
				return false, err
			}
			settled, diagnosed = time.Now(), time.Now()
			return false, a.power(ctx, m, powerFor(want))
		}
		if time.Since(diagnosed) >= backends.Scale(diagnoseEvery) {
			diagnosed = time.Now()
			return false, a.why(ctx, m, nil)
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

// why is the cloud's own explanation where it has one, else otherwise. That it
// can't be asked is no failure of the machine.
func (a *Account) why(ctx context.Context, m backends.Machine, otherwise error) error {
	d, ok := a.Backend.(backends.Diagnoser)
	if !ok {
		return otherwise
	}
	if err := d.Diagnose(ctx, m); err != nil && backends.HasReason(err, backends.ReasonAction) {
		return err
	}
	return otherwise
}

// awaitGone waits until a machine is gone.
func (a *Account) awaitGone(ctx context.Context, pool string, m backends.Machine) error {
	diagnosed := time.Now()
	_, err := a.await(ctx, pool, m, func(m backends.Machine, missing bool) (bool, error) {
		if missing || m.State == backends.StateDeleted {
			a.reader.deleted(m.ID)
			return true, nil
		}
		if time.Since(diagnosed) >= backends.Scale(diagnoseEvery) {
			diagnosed = time.Now()
			return false, a.why(ctx, m, nil)
		}
		return false, nil
	})
	return err
}
