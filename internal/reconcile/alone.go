// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// alone makes sure that an object which we are about to complete is the only one
// with its key. Where names aren't unique and lists lag, two runs may each have
// found nothing and made one, and a lost answer may have hidden one of our own:
//
//   - another with our claim is a duplicate of ours, and is deleted;
//   - of two with different claims the older wins, and its age is in every list: the
//     maker of the younger deletes it and reports CONFLICT;
//   - a younger one that its maker doesn't delete, since it died, is deleted after
//     the watch window.
//
// Lists are trusted from the moment on at which one begun at since or later shows
// our own object: what is older than ours shows by then too.
func (k *kind[T]) alone(ctx context.Context, pool string, object T, since time.Time) (T, error) {
	if k.reader.lists == nil || k.onePerKey {
		return object, nil
	}
	about := object.About()
	filter := backends.Filter{Pool: pool}
	defer k.reader.watching(filter)()
	end, watched := since.Add(k.reader.lags.list), time.Time{}
	for n := 0; ; n++ {
		others, listed, err := k.reader.byKeyShowing(ctx, filter, about.Marks.Key, since, about.ID)
		others = slices.DeleteFunc(others, func(o T) bool { return o.About().ID == about.ID || o.About().Going() })
		switch {
		case err == nil:
		case patient(err) && ctx.Err() == nil:
			others, listed = nil, false
		default:
			return object, err
		}
		switch {
		case len(others) > 0:
			if watched.IsZero() {
				watched = time.Now()
			}
			again, err := k.against(ctx, pool, object, others, time.Since(watched) > backends.Scale(watchWindow))
			if err != nil || !again {
				return object, err
			}
		case listed || !time.Now().Before(end):
			return object, nil
		}
		if err := backends.Sleep(ctx, poll(n)); err != nil {
			return object, err
		}
		since = time.Now()
	}
}

// against deals with objects that carry the key of ours. It reports whether to look
// again; late: their makers have had their time.
func (k *kind[T]) against(ctx context.Context, pool string, object T, others []T, late bool) (again bool, err error) {
	claim := object.About().Marks.Claim
	for _, o := range others {
		if o, err = k.ask(ctx, o.About().ID); err != nil {
			if backends.HasCode(err, backends.NotFound) {
				again = true
				continue
			}
			return false, err
		}
		other := o.About()
		switch {
		case other.Going():
		case other.Marks.Claim == claim:
			if err := k.remove(ctx, pool, o); err != nil {
				return false, fmt.Errorf("deleting a second %s that a lost answer left: %w", k.noun, err)
			}
		case older(o, object) < 0:
			return false, k.yield(ctx, pool, object, other)
		case other.Marks.Complete:
			continue // its maker saw a list without ours: that can't be mended from here
		case late:
			if err := k.remove(ctx, pool, o); err != nil {
				return false, fmt.Errorf("deleting a second %s that a run left half made: %w", k.noun, err)
			}
		}
		again = true
	}
	return again, nil
}

// yield deletes our object, which is locked, for an older one with the same key.
func (k *kind[T]) yield(ctx context.Context, pool string, object T, winner backends.About) error {
	e := backends.Errorf(backends.Conflict, "Another run made the %s %q (%s) at the same time; the one made here (%s) was deleted again.",
		k.noun, winner.Name, winner.ID, object.About().ID)
	e.Details = map[string]any{k.noun + "_id": winner.ID}
	e = e.WithRemedy("If that run isn't yours, choose another name; else let it finish, and plan again.")
	if err := k.erase(ctx, pool, object, k.delete); err != nil {
		e.Message = fmt.Sprintf("Another run made the %s %q (%s) at the same time; the one made here (%s) is to be deleted, which failed.",
			k.noun, winner.Name, winner.ID, object.About().ID)
		return errors.Join(e, err)
	}
	return e
}
