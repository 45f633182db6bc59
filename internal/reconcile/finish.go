// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// finish brings an object that carries our claim to completion: all that prepare
// does, then a look whether another was made at the same time, then the completion
// mark, which comes last. The object is locked by the caller.
// asWanted: all of it is done but the mark.
func (k *kind[T]) finish(ctx context.Context, pool string, object T, prepare func(context.Context, T) (T, error)) (
	out T, asWanted bool, err error) {
	begun := time.Now()
	if object, err = prepare(ctx, object); err != nil {
		return object, false, err
	}
	if object, err = k.alone(ctx, pool, object, begun); err != nil {
		return object, false, err
	}
	object, err = k.complete(ctx, pool, object)
	return object, true, err
}

// complete writes the completion mark on an object as it was just seen, and reads
// the claim once more: who finds another's has lost the object. An object so young
// that nobody can have taken it over isn't read again.
func (k *kind[T]) complete(ctx context.Context, pool string, object T) (T, error) {
	marks := object.About().Marks
	if marks.Fixed {
		return object, nil
	}
	claim := marks.Claim
	for {
		marks.Complete = true
		try, cancel := context.WithTimeout(ctx, completionTime)
		marked, err := k.write(try, object, marks)
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			object = marked
			break
		}
		if !late {
			return object, err
		}
		if object, err = k.ask(ctx, object.About().ID); err != nil {
			return object, err
		}
		if marks = object.About().Marks; marks.Claim != claim {
			return object, claimedAnew(object)
		}
	}
	if k.reader.untaken(object.About().ID) {
		return object, nil
	}
	if k.polled {
		return k.await(ctx, pool, object, func(o T, missing bool) (bool, error) {
			return true, stillOurs(o, missing, claim)
		})
	}
	err := k.change(ctx, object.About().ID, func(ctx context.Context) error {
		back, err := k.ask(ctx, object.About().ID)
		if err == nil {
			object = back
		}
		return err
	})
	if err != nil {
		return object, err
	}
	return object, stillOurs(object, false, claim)
}

// completionTime bounds one try at writing the completion mark. It is well below
// the watch window: after a longer wait (for a rate limit, say) another run may
// have taken over, so the claim is read again before the next try.
const completionTime = watchWindow / 2

// write writes marks and folds the answer in. An interrupt lets the call end.
func (k *kind[T]) write(ctx context.Context, object T, marks backends.Marks) (T, error) {
	if ctx.Err() != nil {
		return object, context.Cause(ctx)
	}
	marks.Doubled = false // what is written is one value of each
	out := object
	err := k.change(ctx, object.About().ID, func(ctx context.Context) (err error) {
		out, err = k.mark(ctx, object, marks)
		return err
	})
	if err != nil {
		return object, err
	}
	k.reader.wrote(out)
	return out, nil
}

// writeClaim writes marks with a new claim and reads it back after a while: of
// two who take over at the same time, only the one whose claim stayed goes on.
func (k *kind[T]) writeClaim(ctx context.Context, object T, marks backends.Marks) (T, error) {
	object, err := k.write(ctx, object, marks)
	if err != nil {
		return object, err
	}
	if err := backends.Sleep(ctx, backends.Scale(readBackDelay)); err != nil {
		return object, err
	}
	back, err := k.ask(ctx, object.About().ID)
	if err != nil {
		return object, err
	}
	if back.About().Marks.Claim != marks.Claim {
		return back, claimedAnew(back)
	}
	return back, nil
}
