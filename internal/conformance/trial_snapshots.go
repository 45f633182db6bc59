// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"fmt"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// snapshotStore is the backend's snapshots of a kind of volumes; the case's needs say
// that it has them.
func (t *Trial) snapshotStore(d disks) backends.Snapshots {
	if b, ok := t.Backend.(backends.SharedSnapshotter); ok && d.kind == backends.SharedVolume {
		return b.SharedSnapshots()
	}
	if b, ok := t.Backend.(backends.Snapshotter); ok && d.kind == backends.BlockVolume {
		return b.Snapshots()
	}
	return nil
}

func (t *Trial) madeSnapshots(d disks) *track {
	if d.kind == backends.SharedVolume {
		return &t.shareSnapshots
	}
	return &t.snapshots
}

// onSnapshots is the shelf of the snapshots of a kind of volumes.
func (t *Trial) onSnapshots(d disks) *shelf[backends.Snapshot] {
	s := snapshotShelf(t.Subject, t.snapshotStore(d), d.noun+"'s snapshot")
	s.found = t.madeSnapshots(d).made
	return s
}

// snapshotWish is the nth snapshot of a wish's volume, with a claim of its own.
func (t *Trial) snapshotWish(of reconcile.VolumeWish, v backends.Volume, n int) reconcile.SnapshotWish {
	name := t.shortName(n)
	marks := of.Spec.Marks
	marks.Key, marks.Digest, marks.Claim, marks.Volume = reference.SnapshotID(of.Spec.Marks.Key, name), "", t.Claim(), of.Spec.Name
	marks.GoesWithMachine, marks.Complete = false, false
	return reconcile.SnapshotWish{Pool: of.Pool, Kind: of.Spec.Kind, Spec: backends.SnapshotSpec{
		Name: name, Volume: v.ID, Region: of.Spec.Region, Marks: marks,
	}}
}

// createSnapshot grants a wish as a process of its own does, and remembers the
// snapshot.
func (t *Trial) createSnapshot(ctx context.Context, d disks, w reconcile.SnapshotWish) (backends.Snapshot, error) {
	account, err := t.Account()
	if err != nil {
		return backends.Snapshot{}, err
	}
	t.madeSnapshots(d).making(w.Spec.Marks)
	created, err := account.CreateSnapshot(ctx, w)
	t.madeSnapshots(d).made(created.Snapshot.ID)
	if err != nil {
		return created.Snapshot, fmt.Errorf("creating the snapshot %s: %w", w.Spec.Name, err)
	}
	return created.Snapshot, nil
}

// makeSnapshot makes a snapshot with the backend's one call, as a process that is
// killed right after it, and remembers it.
func (t *Trial) makeSnapshot(ctx context.Context, d disks, spec backends.SnapshotSpec) (backends.Snapshot, error) {
	t.madeSnapshots(d).making(spec.Marks)
	s, err := t.snapshotStore(d).Make(ctx, spec)
	if err == nil {
		t.madeSnapshots(d).made(s.ID)
	}
	return s, err
}

// snapped is a volume and a snapshot of it, both made by the case.
type snapped struct {
	volumeWish reconcile.VolumeWish
	volume     backends.Volume
	wish       reconcile.SnapshotWish
	snapshot   backends.Snapshot
}

// snap makes the nth volume of a pool, and a snapshot of it. Each snapshot is of a
// volume of its own, since a cloud may make those of one volume only so often.
func (t *Trial) snap(ctx context.Context, d disks, pool reference.Reference, n int) (snapped, error) {
	s := snapped{volumeWish: t.volumeWishIn(pool, d, n)}
	var err error
	if s.volume, err = t.createVolume(ctx, d, s.volumeWish); err != nil {
		return s, err
	}
	s.wish = t.snapshotWish(s.volumeWish, s.volume, n)
	s.snapshot, err = t.createSnapshot(ctx, d, s.wish)
	return s, err
}

// owned is what a state knows of the snapshot. The claim to record is its own.
func (s snapped) owned() reconcile.SnapshotOwned {
	return reconcile.SnapshotOwned{Kind: s.wish.Kind, Owned: reconcile.Owned{
		Pool: s.wish.Spec.Marks.Pool, ID: s.snapshot.ID, Key: s.wish.Spec.Marks.Key, Claim: s.snapshot.Marks.Claim,
	}}
}

// deleteSnapshot deletes a snapshot as a process of its own does.
func (t *Trial) deleteSnapshot(ctx context.Context, o reconcile.SnapshotOwned) (left bool, err error) {
	account, err := t.Account()
	if err != nil {
		return false, err
	}
	return account.DeleteSnapshot(ctx, o)
}
