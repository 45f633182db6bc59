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

// patient tells whether a wait goes on after an error of a poll: the object is
// still there, only the answer is missing.
func patient(err error) bool {
	e := backends.AsError(err)
	return e != nil && (e.Ambiguous || e.Retryable)
}

// await polls an object until done says so, or fails, or ctx ends. Polls of many
// objects share lists: a waiter takes any list begun after the one it saw last.
// done is also told when the object is gone. The object returned is the last one
// seen.
func (k *kind[T]) await(ctx context.Context, pool string, last T, done func(o T, gone bool) (bool, error)) (T, error) {
	phase := backends.Phase("")
	if !last.About().Marks.Complete {
		phase = backends.PhaseMaking
	}
	return k.awaitPhase(ctx, pool, phase, last, done)
}

// awaitPhase is await for objects that are in a phase for as long as they are waited
// for. One that leaves it is asked for by its id.
func (k *kind[T]) awaitPhase(ctx context.Context, pool string, phase backends.Phase, last T,
	done func(o T, gone bool) (bool, error)) (T, error) {
	filter := backends.Filter{Pool: pool}
	if k.reader.phased {
		filter.Phase = phase
	}
	defer k.reader.watching(filter)()
	if err := backends.Sleep(ctx, k.headStart(phase, last.About().ID)); err != nil {
		return last, waitEnded(last, err, nil)
	}
	since := time.Now()
	var failure error
	for n := 0; ; n++ {
		if n > 0 {
			if err := backends.Sleep(ctx, poll(n-1)); err != nil {
				return last, waitEnded(last, err, failure)
			}
		}
		o, begun, err := k.reader.watch(ctx, filter, last.About().ID, since)
		missing := backends.HasCode(err, backends.NotFound)
		switch {
		case err == nil:
			last, since, failure = o, begun.Add(1), nil
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
			if err == nil && !missing {
				k.learn(phase, last.About().ID)
			}
			return last, err
		}
	}
}

// headStart is how long a wait for an object that we have just made needs no poll:
// most of the shortest time that one has taken so far. Of many that are made one after
// another only the first are polled for from the beginning.
func (k *kind[T]) headStart(phase backends.Phase, id string) time.Duration {
	w := k.reader.writeOf(id)
	if phase != backends.PhaseMaking || w.made.IsZero() {
		return 0
	}
	return max(0, time.Duration(k.shortest.Load())*3/4-time.Since(w.made))
}

// learn takes in how long an object took that we have made.
func (k *kind[T]) learn(phase backends.Phase, id string) {
	w := k.reader.writeOf(id)
	if phase != backends.PhaseMaking || w.made.IsZero() {
		return
	}
	took := int64(time.Since(w.made))
	for {
		known := k.shortest.Load()
		if known > 0 && known <= took || k.shortest.CompareAndSwap(known, took) {
			return
		}
	}
}

// waitEnded says what a wait that ended too early was waiting for.
func waitEnded(o backends.Object, cause, failure error) error {
	a := o.About()
	ended := "it took longer than its timeout"
	if errors.Is(cause, context.Canceled) {
		ended = "it was interrupted"
	}
	e := backends.Errorf(backends.ProviderError, "The wait for the %s %q (%s), last seen %s, ended early: %s.",
		a.Noun, a.Name, a.ID, a.State, ended)
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

// stillOurs fails when an object that we work on went away, or was claimed by
// someone else meanwhile: every wait ends then.
func stillOurs(o backends.Object, missing bool, claim string) error {
	switch a := o.About(); {
	case missing:
		return backends.Errorf(backends.NotFound, "The %s %q (%s) vanished: someone else deleted it.", a.Noun, a.Name, a.ID).
			WithRemedy("Plan again: the plan shows what follows.")
	case a.Marks.Claim != claim:
		return claimedAnew(o)
	}
	return nil
}

// awaitGone waits until an object is gone.
func (k *kind[T]) awaitGone(ctx context.Context, pool string, object T) error {
	diagnosed := time.Now()
	_, err := k.awaitPhase(ctx, pool, backends.PhaseGoing, object, func(o T, missing bool) (bool, error) {
		if missing || o.About().State == backends.StateDeleted {
			k.reader.deleted(o.About().ID)
			return true, nil
		}
		if time.Since(diagnosed) >= backends.Scale(diagnoseEvery) {
			diagnosed = time.Now()
			return false, k.why(ctx, o, nil)
		}
		return false, nil
	})
	return err
}
