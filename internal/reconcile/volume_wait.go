// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// awaitReady waits until a volume or snapshot is ready.
func (k *kind[T]) awaitReady(ctx context.Context, pool string, object T) (T, error) {
	return k.until(ctx, pool, object, func(o T) bool { return o.About().State == backends.StateReady })
}

// until waits for what an object was told to become. An object that doesn't become
// so, while nothing happens to it, is asked about from time to time.
func (k *kind[T]) until(ctx context.Context, pool string, object T, done func(T) bool) (T, error) {
	claim := object.About().Marks.Claim
	if about := object.About(); done(object) && about.State == backends.StateReady {
		return object, nil
	}
	diagnosed, pause := time.Now(), settleTime
	return k.await(ctx, pool, object, func(o T, missing bool) (bool, error) {
		if err := stillOurs(o, missing, claim); err != nil {
			return false, err
		}
		a := o.About()
		switch {
		case a.State == backends.StateError:
			return false, k.why(ctx, o, inError(o))
		case a.State == backends.StateReady && done(o):
			return true, nil
		}
		if time.Since(diagnosed) >= backends.Scale(pause) {
			diagnosed, pause = time.Now(), diagnoseEvery
			return false, k.why(ctx, o, nil)
		}
		return false, nil
	})
}

// inError says that an object is in error: what was asked of it failed.
func inError(o backends.Object) error {
	a := o.About()
	e := backends.Errorf(backends.ProviderError, "The %s %q (%s) is in error: %s", a.Noun, a.Name, a.ID, a.Message)
	e.Reason = backends.ReasonAction
	return e
}

// grow makes a volume at least as large as asked; the same size, or more, changes
// nothing.
func (a *Account) grow(ctx context.Context, pool string, v backends.Volume, sizeGiB int64) (backends.Volume, error) {
	if v.SizeGiB >= sizeGiB {
		return v, nil
	}
	k := a.volumesOf(v.Kind)
	err := k.change(ctx, v.ID, func(ctx context.Context) error { return a.storeOf(v.Kind).Resize(ctx, v, sizeGiB) })
	if err != nil {
		return v, err
	}
	return k.until(ctx, pool, v, func(v backends.Volume) bool { return v.SizeGiB >= sizeGiB })
}
