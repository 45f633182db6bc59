// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// VolumeChange is what an update brings a volume to.
type VolumeChange struct {
	VolumeOwned
	In reference.Reference // the pool with its keys, for its limit on disk
	// Spec is the volume as it is wanted; its marks are all set but for Claim and
	// Complete. Its size is grown to, never shrunk.
	Spec backends.VolumeSpec
	// Machines are those that should have a block volume attached; nil leaves that
	// alone.
	Machines *[]string
	// Release are the machines that it may be detached from: those the plan showed.
	Release []string
	// From is the wish whose labels the volume may have; nil leaves labels alone.
	From *backends.VolumeSpec
	// Protect switches deletion protection; nil leaves it alone.
	Protect *bool
}

// VolumeUpdated is what became of a change, also when only a part succeeded. Claim
// is as that of [Updated].
type VolumeUpdated struct {
	Volume backends.Volume // as last seen; without an ID it could not even be read
	Claim  string
}

// UpdateVolume brings a volume to what a change wants, in place: name, marks, labels,
// protection, attachments (detached first), size. A volume that a state has imported is
// claimed first. Another key in Spec than the change's own is a rename.
func (a *Account) UpdateVolume(ctx context.Context, c VolumeChange) (VolumeUpdated, error) {
	ctx = backends.Operation(ctx)
	out := VolumeUpdated{Claim: c.Claim}
	k, err := a.needVolumes(c.Kind)
	if err != nil {
		return out, err
	}
	if c.Key != c.Spec.Marks.Key {
		unlockKeys, err := a.shared.keys.lockBoth(ctx, c.Key, c.Spec.Marks.Key)
		if err != nil {
			return out, err
		}
		defer unlockKeys()
	}
	unlock, err := k.lock(ctx, c.ID)
	if err != nil {
		return out, err
	}
	defer unlock()
	if c.Claim != "" {
		a.shared.claims.Store(c.Claim, true)
	}
	v, err := k.current(ctx, c.Pool, c.ID)
	if err != nil {
		return out, err
	}
	marks := c.Spec.Marks
	marks.Key = c.Key // until it has the name
	out.Volume, out.Claim, err = k.own(ctx, v, c.Owned, marks)
	if err != nil {
		return out, err
	}
	if !out.Volume.Marks.Complete && !out.Volume.Marks.Fixed {
		out.Volume, _, err = k.finish(ctx, c.Pool, out.Volume, func(ctx context.Context, v backends.Volume) (backends.Volume, error) {
			return k.awaitReady(ctx, c.Pool, v)
		})
		if err != nil {
			return out, err
		}
	}
	if out.Volume, err = k.awaitReady(ctx, c.Pool, out.Volume); err != nil {
		return out, err
	}
	if out.Volume, err = a.renameVolume(ctx, &c, out.Volume); err != nil {
		return out, err
	}
	if out.Volume, err = k.remark(ctx, out.Volume, c.Spec.Marks); err != nil {
		return out, err
	}
	if out.Volume, err = a.relabelVolume(ctx, c, out.Volume); err != nil {
		return out, err
	}
	if out.Volume, err = a.protectVolume(ctx, out.Volume, c.Protect); err != nil {
		return out, err
	}
	if c.Machines != nil && c.Kind != backends.SharedVolume {
		if out.Volume, err = a.attachOnly(ctx, c.Pool, out.Volume, *c.Machines, c.Release); err != nil {
			return out, err
		}
	}
	out.Volume, err = a.growWithin(ctx, c, out.Volume)
	return out, err
}

// remark writes what marks say by now: the digest, and whether a volume goes with
// its machine.
func (k *kind[T]) remark(ctx context.Context, object T, wanted backends.Marks) (T, error) {
	marks := object.About().Marks
	if marks.Fixed || marks.Digest == wanted.Digest && marks.GoesWithMachine == wanted.GoesWithMachine && !marks.Doubled {
		return object, nil
	}
	marks.Digest, marks.GoesWithMachine = wanted.Digest, wanted.GoesWithMachine
	return k.write(ctx, object, marks)
}

// growWithin grows a volume within the pool's limit.
func (a *Account) growWithin(ctx context.Context, c VolumeChange, v backends.Volume) (backends.Volume, error) {
	if v.SizeGiB >= c.Spec.SizeGiB {
		return v, nil
	}
	release, err := a.reserve(ctx, &a.shared.booked, c.In, c.Spec.Marks.Key, booking{diskGiB: c.Spec.SizeGiB})
	if err != nil {
		return v, err
	}
	v, err = a.grow(ctx, c.Pool, v, c.Spec.SizeGiB)
	if err != nil {
		release()
	}
	return v, err
}
