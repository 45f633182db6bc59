// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// shareCases are the sentences about shared volumes alone.
func shareCases() []Case {
	return []Case{
		{
			Name:  "share/marks",
			About: "Marks that are in a name say so (Fixed), and then show the first characters of the claim and of the pool's and account's ids; marks that aren't are replaced by Mark.",
			Needs: sharedDisks.needs,
			Run:   shareMarks,
		},
		{
			Name:  "share/snapshots",
			About: "Deleting a shared volume that has snapshots is INVALID_STATE and deletes neither; without them it is deleted.",
			Needs: slices.Concat(sharedDisks.needs, []Need{NeedSharedSnapshots}),
			Run:   shareWithSnapshots,
		},
	}
}

func shareMarks(ctx context.Context, t *Trial) error {
	w := t.volumeWish(sharedDisks, 0)
	v, err := t.createVolume(ctx, sharedDisks, w)
	if err != nil {
		return err
	}
	if m := v.Marks; m.Fixed {
		is := &differing{noun: "shared volume"}
		is.same("length of the claim in its name", len(m.Claim), backends.FixedClaimLength)
		if len(m.Account) < leastShown || len(m.Pool) < leastShown {
			is.add("the marks %q and %q tell too little of the account and the pool", m.Account, m.Pool)
		}
		second := t.volumeWish(sharedDisks, 1)
		made, err := t.makeVolume(ctx, sharedDisks, second.Spec)
		if err != nil {
			return errors.Join(is.err(), err)
		}
		return errors.Join(is.err(), sameMarks("of a second one", made.Marks, second.Spec.Marks))
	}
	marks := v.Marks
	marks.Claim, marks.Complete = t.Claim(), false
	answered, err := t.store(sharedDisks).Mark(ctx, v, marks)
	if err != nil {
		return fmt.Errorf("marking it: %w", err)
	}
	now, err := t.onVolumes(sharedDisks).get(ctx, v.ID)
	return errors.Join(err, sameMarks("as Mark answers", answered.Marks, marks), sameMarks("as a get shows it next", now.Marks, marks))
}

func shareWithSnapshots(ctx context.Context, t *Trial) error {
	s, err := t.snap(ctx, sharedDisks, t.Pool(0), 0)
	if err != nil {
		return err
	}
	err = t.store(sharedDisks).Delete(ctx, s.volume)
	if err := wantCode("deleting a shared volume that has a snapshot", err, backends.InvalidState); err != nil {
		return err
	}
	_, err = t.deleteVolume(ctx, ownedVolume(s.volumeWish, s.volume))
	if err := wantCode("the same above the backend", err, backends.InvalidState); err != nil {
		return err
	}
	v, err := t.onVolumes(sharedDisks).get(ctx, s.volume.ID)
	if err != nil {
		return err
	}
	is := &differing{noun: "shared volume that wasn't deleted"}
	is.same("state", v.State, backends.StateReady)
	if _, err := t.onSnapshots(sharedDisks).get(ctx, s.snapshot.ID); err != nil {
		return err
	}
	if err := is.err(); err != nil {
		return err
	}
	if _, err := t.deleteSnapshot(ctx, s.owned()); err != nil {
		return fmt.Errorf("deleting the snapshot: %w", err)
	}
	if _, err := t.deleteVolume(ctx, ownedVolume(s.volumeWish, s.volume)); err != nil {
		return fmt.Errorf("deleting the shared volume without snapshots: %w", err)
	}
	return t.onVolumes(sharedDisks).absent(ctx, s.volume.ID)
}
