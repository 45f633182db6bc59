// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
)

func volumeRetry(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	first, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	again, err := t.createVolume(ctx, d, w)
	if err != nil {
		return fmt.Errorf("the retry: %w", err)
	}
	if again.ID != first.ID {
		return wrong("the retry answered the volume %s, not %s", again.ID, first.ID)
	}
	return t.onVolumes(d).only(ctx, w.Spec.Marks.Key, first.ID)
}

func volumeConcurrent(ctx context.Context, t *Trial, d disks) error {
	const creates = 3
	account, err := t.Account()
	if err != nil {
		return err
	}
	w := t.volumeWish(d, 0)
	made := make([]backends.Volume, creates)
	var group errgroup.Group // not one that cancels: what began is to end
	for i := range creates {
		group.Go(func() (err error) {
			made[i], err = t.createVolumeIn(ctx, account, d, w)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if slices.ContainsFunc(made, func(v backends.Volume) bool { return v.ID != made[0].ID }) {
		return wrong("creates at the same time answered the volumes %s", ids(made))
	}
	return t.onVolumes(d).only(ctx, w.Spec.Marks.Key, made[0].ID)
}

func volumeResumed(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	half, err := t.makeVolume(ctx, d, w.Spec)
	if err != nil {
		return err
	}
	v, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	is := &differing{noun: d.noun}
	is.same("id", v.ID, half.ID)
	is.same("state", v.State, backends.StateReady)
	if !v.Marks.Complete {
		is.add("the finished volume isn't complete")
	}
	return errors.Join(is.err(), sameMarks("once finished", v.Marks, completed(w.Spec.Marks)),
		t.onVolumes(d).only(ctx, w.Spec.Marks.Key, half.ID))
}

func volumeConflict(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	first, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	_, err = t.createVolume(ctx, d, t.volumeWish(d, 0))
	if err := exists(err, first.ID); err != nil {
		return err
	}
	v, err := t.onVolumes(d).get(ctx, first.ID)
	return errors.Join(err, sameMarks("the volume after the conflict", v.Marks, completed(w.Spec.Marks)),
		t.onVolumes(d).only(ctx, w.Spec.Marks.Key, first.ID))
}

func volumeAdopt(ctx context.Context, t *Trial, d disks) error {
	before := t.volumeWish(d, 0)
	first, err := t.createVolume(ctx, d, before)
	if err != nil {
		return err
	}
	w := t.volumeWish(d, 0)
	w.Pool.Adopt = true
	adopted, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	if adopted.ID != first.ID {
		return wrong("adopting answered the volume %s, not %s", adopted.ID, first.ID)
	}
	v, err := t.onVolumes(d).get(ctx, first.ID)
	if err != nil {
		return err
	}
	want := w.Spec.Marks
	if v.Marks.Fixed {
		want.Claim = before.Spec.Marks.Claim
	}
	return errors.Join(sameMarks("as adopting answers", adopted.Marks, completed(want)), sameMarks("once adopted", v.Marks, completed(want)),
		t.onVolumes(d).only(ctx, w.Spec.Marks.Key, first.ID))
}

func volumeAdoptDiffers(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	first, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	other := t.volumeWish(d, 0)
	other.Pool.Adopt = true
	fields := volumeDigest(other.Spec)
	fields[backends.DigestRegion] = "another-region"
	other.Spec.Marks.Digest = backends.Digest(other.Spec.Marks.Key, fields)
	_, err = t.createVolume(ctx, d, other)
	if err := exists(err, first.ID); err != nil {
		return err
	}
	var there *reconcile.ExistsError
	if errors.As(err, &there) && !slices.Equal(there.Differs, []backends.DigestField{backends.DigestRegion}) {
		return wrong("the volume differs in its region; the CONFLICT says: %w", err)
	}
	v, err := t.onVolumes(d).get(ctx, first.ID)
	return errors.Join(err, sameMarks("the volume afterwards", v.Marks, completed(w.Spec.Marks)))
}

func volumeResize(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	made, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	return t.grows(ctx, d, w, made)
}

// grows is wrong unless a volume grows by [Growth] and is else what it was.
func (t *Trial) grows(ctx context.Context, d disks, w reconcile.VolumeWish, before backends.Volume) error {
	larger := before.SizeGiB + Growth
	if _, err := t.changeVolume(ctx, w, before, func(c *reconcile.VolumeChange) { c.Spec.SizeGiB = larger }); err != nil {
		return fmt.Errorf("growing the volume: %w", err)
	}
	shelf := t.onVolumes(d)
	look := func() error {
		v, err := shelf.get(ctx, before.ID)
		if err != nil {
			return err
		}
		is := &differing{noun: "grown " + d.noun}
		is.same("size", v.SizeGiB, larger)
		is.same("state", v.State, backends.StateReady)
		is.same("name", v.Name, before.Name)
		if !slices.Equal(v.Machines, before.Machines) {
			is.add("the grown volume is attached to %v, it was to %v", v.Machines, before.Machines)
		}
		return errors.Join(is.err(), sameMarks("once grown", v.Marks, completed(w.Spec.Marks)))
	}
	if err := look(); err != nil {
		return err
	}
	v, err := shelf.get(ctx, before.ID)
	if err != nil {
		return err
	}
	if err := t.store(d).Resize(ctx, v, larger); err != nil {
		return fmt.Errorf("growing it to the size that it has, as after a lost answer: %w", err)
	}
	return shelf.inTime(ctx, look)
}

func volumeDelete(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	made, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	left, err := t.deleteVolume(ctx, ownedVolume(w, made))
	switch {
	case err != nil:
		return fmt.Errorf("deleting the volume: %w", err)
	case left:
		return wrong("deleting the volume left it alone, although it carries our claim")
	}
	shelf := t.onVolumes(d)
	if err := errors.Join(shelf.absent(ctx, made.ID), shelf.none(ctx, w.Spec.Marks.Key),
		shelf.lists(ctx, backends.Filter{Pool: w.Spec.Marks.Pool}, nil, []string{made.ID})); err != nil {
		return err
	}
	if err := t.store(d).Delete(ctx, made); err != nil {
		if err := wantCode("a second delete", err, backends.NotFound); err != nil {
			return err
		}
	}
	if left, err := t.deleteVolume(ctx, ownedVolume(w, made)); err != nil || left {
		return errors.Join(err, wrong("deleting a volume that is gone must be a success"))
	}
	again := t.volumeWish(d, 0) // the same key, a new claim
	second, err := t.createVolume(ctx, d, again)
	if err != nil {
		return err
	}
	if second.ID == made.ID {
		return wrong("the new volume has the id of the deleted one, %s", made.ID)
	}
	return shelf.only(ctx, again.Spec.Marks.Key, second.ID)
}

func volumeMissing(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	made, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	account, err := t.Account()
	if err != nil {
		return err
	}
	if _, err := account.ReadVolume(ctx, w.Spec.Marks.Pool, d.kind, made.ID); err != nil {
		return fmt.Errorf("refreshing the volume: %w", err)
	}
	if err := t.store(d).Delete(ctx, made); err != nil {
		return fmt.Errorf("deleting the volume: %w", err)
	}
	if err := t.onVolumes(d).goes(ctx, made.ID); err != nil {
		return err
	}
	if account, err = t.Account(); err != nil {
		return err
	}
	_, err = account.ReadVolume(ctx, w.Spec.Marks.Pool, d.kind, made.ID)
	if err := wantCode("refreshing a volume that was deleted", err, backends.NotFound); err != nil {
		return err
	}
	if left, err := t.deleteVolume(ctx, ownedVolume(w, made)); err != nil || left {
		return errors.Join(err, wrong("deleting a volume that is gone must be a success"))
	}
	return nil
}

func volumeClaim(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	made, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	lost := func(c *reconcile.Owned) { c.Claim = t.Claim()[:backends.FixedClaimLength] }
	_, err = t.changeVolume(ctx, w, made, func(c *reconcile.VolumeChange) {
		lost(&c.Owned)
		c.Spec.SizeGiB += Growth
	})
	if err := wantCode("updating a volume that lost its claim", err, backends.Conflict); err != nil {
		return err
	}
	owned := ownedVolume(w, made)
	lost(&owned.Owned)
	left, err := t.deleteVolume(ctx, owned)
	switch {
	case err != nil:
		return fmt.Errorf("deleting a volume that lost its claim: %w", err)
	case !left:
		return wrong("deleting a volume that lost its claim must leave it alone")
	}
	v, err := t.onVolumes(d).get(ctx, made.ID)
	if err == nil && v.SizeGiB != made.SizeGiB {
		err = wrong("the volume that lost its claim was grown to %d GiB", v.SizeGiB)
	}
	return errors.Join(err, sameMarks("the volume afterwards", v.Marks, completed(w.Spec.Marks)))
}
