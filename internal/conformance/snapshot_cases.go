// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
)

// snapshotNeeds are what cases about the snapshots of a kind of volumes need.
func snapshotNeeds(d disks) []Need {
	if d.kind == backends.SharedVolume {
		return slices.Concat([]Need{NeedSharedSnapshots}, d.needs)
	}
	return slices.Concat([]Need{NeedSnapshots}, d.needs)
}

// snapshotCases are the sentences that hold for the snapshots of a kind of volumes.
func snapshotCases(d disks) []Case {
	name := "snapshot"
	if d.kind == backends.SharedVolume {
		name = "share-snapshot"
	}
	sentence := func(what, about string, run func(context.Context, *Trial, disks) error) Case {
		return Case{
			Name: name + "/" + what, About: about, Needs: snapshotNeeds(d),
			Run: func(ctx context.Context, t *Trial) error { return run(ctx, t, d) },
		}
	}
	return []Case{
		sentence("makes", "Create makes one snapshot that is ready, of the volume, with all its marks and its volume's size and region.", snapshotMakes),
		sentence("marks-at-birth", "Make sends every mark but the completion in the call that makes the snapshot.", snapshotMarksAtBirth),
		sentence("retry", "Create with the same key and claim is a retry: another process gets the same snapshot.", snapshotRetry),
		sentence("resumed", "A create that was killed right after its making call is finished by the next one.", snapshotResumed),
		sentence("conflict", "Create with a claim of its own, where a complete snapshot has the key, is a CONFLICT that names the snapshot; with adopt it takes it over.", snapshotConflict),
		sentence("lists", "OfVolume has the snapshots of one volume; a list of a pool has its snapshots and no other's, a list of the account those of both pools, a list of another account neither.", snapshotLists),
		sentence("delete", "Delete removes the snapshot and nothing of its volume; again it fails only with NOT_FOUND at the backend and succeeds above it.", snapshotDelete),
		sentence("missing", "A snapshot that was deleted behind our back is NOT_FOUND, also for a refresh, and its deletion is a success.", snapshotMissing),
		sentence("claim", "A snapshot that someone else claimed is not deleted (done, left alone).", snapshotClaim),
	}
}

// isAsMade holds a snapshot that create made against its wish.
func (s snapped) isAsMade(what string, got backends.Snapshot) error {
	is := &differing{noun: what}
	if !got.Marks.Fixed { // else the name holds the marks
		is.same("name", got.Name, s.wish.Spec.Name)
	}
	is.same("kind", got.Kind, s.wish.Kind)
	is.same("state", got.State, backends.StateReady)
	is.same("volume", got.Volume, s.volume.ID)
	is.same("size", got.SizeGiB, s.volume.SizeGiB)
	is.same("region", got.Region, s.volume.Region)
	if got.Created.IsZero() {
		is.add("the snapshot has no time of creation")
	}
	if !got.Marks.Complete {
		is.add("the ready snapshot isn't complete")
	}
	return errors.Join(is.err(), sameMarks(what, got.Marks, completed(s.wish.Spec.Marks)))
}

func snapshotMakes(ctx context.Context, t *Trial, d disks) error {
	s, err := t.snap(ctx, d, t.Pool(0), 0)
	if err != nil {
		return err
	}
	shelf := t.onSnapshots(d)
	got, err := shelf.get(ctx, s.snapshot.ID)
	if err != nil {
		return err
	}
	return errors.Join(s.isAsMade("snapshot", got), shelf.only(ctx, s.wish.Spec.Marks.Key, got.ID))
}

func snapshotMarksAtBirth(ctx context.Context, t *Trial, d disks) error {
	of := t.volumeWish(d, 0)
	v, err := t.createVolume(ctx, d, of)
	if err != nil {
		return err
	}
	spec := t.snapshotWish(of, v, 0).Spec
	made, err := t.makeSnapshot(ctx, d, spec)
	if err != nil {
		return err
	}
	shelf := t.onSnapshots(d)
	got, err := shelf.get(ctx, made.ID)
	if err != nil {
		return err
	}
	return errors.Join(
		sameMarks("as Make answers", made.Marks, spec.Marks),
		sameMarks("as a get shows it next", got.Marks, spec.Marks),
		shelf.only(ctx, spec.Marks.Key, made.ID),
	)
}

func snapshotRetry(ctx context.Context, t *Trial, d disks) error {
	s, err := t.snap(ctx, d, t.Pool(0), 0)
	if err != nil {
		return err
	}
	again, err := t.createSnapshot(ctx, d, s.wish)
	if err != nil {
		return fmt.Errorf("the retry: %w", err)
	}
	if again.ID != s.snapshot.ID {
		return wrong("the retry answered the snapshot %s, not %s", again.ID, s.snapshot.ID)
	}
	return t.onSnapshots(d).only(ctx, s.wish.Spec.Marks.Key, s.snapshot.ID)
}

func snapshotResumed(ctx context.Context, t *Trial, d disks) error {
	s := snapped{volumeWish: t.volumeWish(d, 0)}
	var err error
	if s.volume, err = t.createVolume(ctx, d, s.volumeWish); err != nil {
		return err
	}
	s.wish = t.snapshotWish(s.volumeWish, s.volume, 0)
	half, err := t.makeSnapshot(ctx, d, s.wish.Spec)
	if err != nil {
		return err
	}
	got, err := t.createSnapshot(ctx, d, s.wish)
	if err != nil {
		return err
	}
	if got.ID != half.ID {
		return wrong("the next create answered the snapshot %s, not the half-made %s", got.ID, half.ID)
	}
	return errors.Join(s.isAsMade("finished snapshot", got), t.onSnapshots(d).only(ctx, s.wish.Spec.Marks.Key, half.ID))
}

func snapshotConflict(ctx context.Context, t *Trial, d disks) error {
	s, err := t.snap(ctx, d, t.Pool(0), 0)
	if err != nil {
		return err
	}
	other := t.snapshotWish(s.volumeWish, s.volume, 0)
	_, err = t.createSnapshot(ctx, d, other)
	if err := exists(err, s.snapshot.ID); err != nil {
		return err
	}
	shelf := t.onSnapshots(d)
	got, err := shelf.get(ctx, s.snapshot.ID)
	if err := errors.Join(err, sameMarks("the snapshot after the conflict", got.Marks, completed(s.wish.Spec.Marks))); err != nil {
		return err
	}
	other.Pool.Adopt = true
	adopted, err := t.createSnapshot(ctx, d, other)
	switch {
	case err != nil:
		return err
	case adopted.ID != s.snapshot.ID:
		return wrong("adopting answered the snapshot %s, not %s", adopted.ID, s.snapshot.ID)
	}
	want := other.Spec.Marks
	if got.Marks.Fixed {
		want.Claim = s.wish.Spec.Marks.Claim
	}
	got, err = shelf.get(ctx, s.snapshot.ID)
	return errors.Join(err, sameMarks("once adopted", got.Marks, completed(want)), shelf.only(ctx, want.Key, s.snapshot.ID))
}

func snapshotLists(ctx context.Context, t *Trial, d disks) error {
	var both [2]snapped
	var err error
	for i := range both {
		if both[i], err = t.snap(ctx, d, t.Pool(i), i); err != nil {
			return err
		}
	}
	first, second := both[0], both[1]
	shelf := t.onSnapshots(d)
	if err := shelf.filters(ctx, t, first.snapshot.ID, second.snapshot.ID); err != nil {
		return err
	}
	listed, err := shelf.listed(ctx, backends.Filter{Pool: first.wish.Spec.Marks.Pool})
	if err != nil {
		return err
	}
	if err := first.isAsMade("listed snapshot", listed[first.snapshot.ID]); err != nil {
		return err
	}
	return shelf.inTime(ctx, func() error {
		of, err := t.snapshotStore(d).OfVolume(ctx, first.volume.ID)
		if err != nil {
			return fmt.Errorf("listing the snapshots of a volume: %w", err)
		}
		if len(of) != 1 || of[0].ID != first.snapshot.ID {
			return wrong("the volume has the snapshot %s; OfVolume has %s", first.snapshot.ID, ids(of))
		}
		return nil
	})
}

func snapshotDelete(ctx context.Context, t *Trial, d disks) error {
	s, err := t.snap(ctx, d, t.Pool(0), 0)
	if err != nil {
		return err
	}
	left, err := t.deleteSnapshot(ctx, s.owned())
	switch {
	case err != nil:
		return fmt.Errorf("deleting the snapshot: %w", err)
	case left:
		return wrong("deleting the snapshot left it alone, although it carries our claim")
	}
	shelf := t.onSnapshots(d)
	if err := errors.Join(shelf.absent(ctx, s.snapshot.ID), shelf.none(ctx, s.wish.Spec.Marks.Key),
		shelf.lists(ctx, backends.Filter{Pool: s.wish.Spec.Marks.Pool}, nil, []string{s.snapshot.ID})); err != nil {
		return err
	}
	if err := t.snapshotStore(d).Delete(ctx, s.snapshot); err != nil {
		if err := wantCode("a second delete", err, backends.NotFound); err != nil {
			return err
		}
	}
	if left, err := t.deleteSnapshot(ctx, s.owned()); err != nil || left {
		return errors.Join(err, wrong("deleting a snapshot that is gone must be a success"))
	}
	v, err := t.onVolumes(d).get(ctx, s.volume.ID)
	if err == nil && v.State != backends.StateReady {
		err = wrong("the volume is %s after its snapshot was deleted", v.State)
	}
	return err
}

func snapshotMissing(ctx context.Context, t *Trial, d disks) error {
	s, err := t.snap(ctx, d, t.Pool(0), 0)
	if err != nil {
		return err
	}
	read := func() error {
		account, err := t.Account()
		if err != nil {
			return err
		}
		_, err = account.ReadSnapshot(ctx, s.wish.Spec.Marks.Pool, d.kind, s.snapshot.ID)
		return err
	}
	if err := read(); err != nil {
		return fmt.Errorf("refreshing the snapshot: %w", err)
	}
	if err := t.snapshotStore(d).Delete(ctx, s.snapshot); err != nil {
		return fmt.Errorf("deleting the snapshot: %w", err)
	}
	if err := t.onSnapshots(d).goes(ctx, s.snapshot.ID); err != nil {
		return err
	}
	if err := wantCode("refreshing a snapshot that was deleted", read(), backends.NotFound); err != nil {
		return err
	}
	if left, err := t.deleteSnapshot(ctx, s.owned()); err != nil || left {
		return errors.Join(err, wrong("deleting a snapshot that is gone must be a success"))
	}
	return nil
}

func snapshotClaim(ctx context.Context, t *Trial, d disks) error {
	s, err := t.snap(ctx, d, t.Pool(0), 0)
	if err != nil {
		return err
	}
	owned := s.owned()
	owned.Claim = t.Claim()[:backends.FixedClaimLength]
	left, err := t.deleteSnapshot(ctx, owned)
	switch {
	case err != nil:
		return fmt.Errorf("deleting a snapshot that lost its claim: %w", err)
	case !left:
		return wrong("deleting a snapshot that lost its claim must leave it alone")
	}
	got, err := t.onSnapshots(d).get(ctx, s.snapshot.ID)
	if err != nil {
		return err
	}
	return s.isAsMade("snapshot afterwards", got)
}

// blockSnapshotCases are the sentences about snapshots of block volumes alone.
func blockSnapshotCases() []Case {
	return []Case{
		{
			Name:  "snapshot/marks",
			About: "Mark replaces a snapshot's marks, and answers the snapshot as the cloud then shows it; without any it is in no list, and once it is gone marking fails with NOT_FOUND.",
			Needs: snapshotNeeds(blockDisks),
			Run:   snapshotMarks,
		},
		{
			Name:  "snapshot/name",
			About: "A second snapshot of a volume by a name that one has is a NameTaken that names its holder.",
			Needs: snapshotNeeds(blockDisks),
			Run:   snapshotName,
		},
		{
			Name:  "snapshot/outlives",
			About: "A snapshot outlives its volume: it is got, listed and found as the volume's.",
			Needs: snapshotNeeds(blockDisks),
			Run:   snapshotOutlives,
		},
		{
			Name:  "snapshot/restores",
			About: "A volume made from a snapshot has the size asked for, more than the snapshot's, and marks of its own, be it that the snapshot's volume is gone.",
			Needs: snapshotNeeds(blockDisks),
			Run:   snapshotRestores,
		},
	}
}

func snapshotMarks(ctx context.Context, t *Trial) error {
	s, err := t.snap(ctx, blockDisks, t.Pool(0), 0)
	if err != nil {
		return err
	}
	store, shelf, now := t.snapshotStore(blockDisks), t.onSnapshots(blockDisks), s.snapshot
	write := func(when string, marks backends.Marks) error {
		answered, err := store.Mark(ctx, now, marks)
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		if now, err = shelf.get(ctx, s.snapshot.ID); err != nil {
			return err
		}
		return errors.Join(sameMarks(when+", as Mark answers", answered.Marks, marks),
			sameMarks(when+", as a get shows it next", now.Marks, marks))
	}
	marks := now.Marks
	marks.Claim, marks.Complete = t.Claim(), false
	if err := write("claimed anew", marks); err != nil {
		return err
	}
	if err := write("without marks", backends.Marks{}); err != nil {
		return err
	}
	if err := errors.Join(shelf.none(ctx, s.wish.Spec.Marks.Key),
		shelf.lists(ctx, backends.Filter{Pool: s.wish.Spec.Marks.Pool}, nil, []string{now.ID})); err != nil {
		return err
	}
	if err := store.Delete(ctx, now); err != nil {
		return fmt.Errorf("deleting the snapshot: %w", err)
	}
	if err := shelf.goes(ctx, now.ID); err != nil {
		return err
	}
	_, err = store.Mark(ctx, now, marks)
	return wantCode("marking a deleted snapshot", err, backends.NotFound)
}

func snapshotName(ctx context.Context, t *Trial) error {
	s, err := t.snap(ctx, blockDisks, t.Pool(0), 0)
	if err != nil {
		return err
	}
	// The same name, and another key, as from another pool.
	other := s.volumeWish
	other.Pool = t.Pool(1)
	other.Spec.Marks = t.volumeWishIn(other.Pool, blockDisks, 0).Spec.Marks
	_, err = t.createSnapshot(ctx, blockDisks, t.snapshotWish(other, s.volume, 0))
	if err == nil {
		return wrong("the volume has two snapshots of one name")
	}
	if err := nameIsTaken(err, s.snapshot.About(), ""); err != nil {
		return err
	}
	got, err := t.onSnapshots(blockDisks).get(ctx, s.snapshot.ID)
	if err != nil {
		return err
	}
	return s.isAsMade("name's holder", got)
}

func snapshotOutlives(ctx context.Context, t *Trial) error {
	s, err := t.snap(ctx, blockDisks, t.Pool(0), 0)
	if err != nil {
		return err
	}
	if _, err := t.deleteVolume(ctx, ownedVolume(s.volumeWish, s.volume)); err != nil {
		return fmt.Errorf("deleting the volume: %w", err)
	}
	shelf := t.onSnapshots(blockDisks)
	got, err := shelf.get(ctx, s.snapshot.ID)
	if err != nil {
		return err
	}
	err = shelf.inTime(ctx, func() error {
		of, err := t.snapshotStore(blockDisks).OfVolume(ctx, s.volume.ID)
		if err == nil && (len(of) != 1 || of[0].ID != got.ID) {
			err = wrong("OfVolume of the volume that is gone has %s, not %s", ids(of), got.ID)
		}
		return err
	})
	return errors.Join(err, s.isAsMade("snapshot of a volume that is gone", got),
		shelf.lists(ctx, backends.Filter{Pool: s.wish.Spec.Marks.Pool}, []string{got.ID}, nil),
		shelf.only(ctx, s.wish.Spec.Marks.Key, got.ID))
}

func snapshotRestores(ctx context.Context, t *Trial) error {
	s, err := t.snap(ctx, blockDisks, t.Pool(0), 0)
	if err != nil {
		return err
	}
	for n, gone := range []bool{false, true} {
		if gone {
			if _, err := t.deleteVolume(ctx, ownedVolume(s.volumeWish, s.volume)); err != nil {
				return fmt.Errorf("deleting the snapshot's volume: %w", err)
			}
		}
		w := t.volumeWish(blockDisks, n+1)
		w.Spec.Restores, w.Spec.Snapshot, w.Spec.Filesystem = true, s.snapshot.ID, ""
		w.Spec.SizeGiB = s.snapshot.SizeGiB + Growth
		if err := t.restores(ctx, w); err != nil {
			return fmt.Errorf("restoring, the volume gone being %t: %w", gone, err)
		}
	}
	return nil
}

func (t *Trial) restores(ctx context.Context, w reconcile.VolumeWish) error {
	made, err := t.createVolume(ctx, blockDisks, w)
	if err != nil {
		return err
	}
	v, err := t.onVolumes(blockDisks).get(ctx, made.ID)
	if err != nil {
		return err
	}
	is := &differing{noun: "restored volume"}
	is.same("name", v.Name, w.Spec.Name)
	is.same("state", v.State, backends.StateReady)
	is.same("size", v.SizeGiB, w.Spec.SizeGiB)
	is.same("region", v.Region, w.Spec.Region)
	return errors.Join(is.err(), sameMarks("of the restored volume", v.Marks, completed(w.Spec.Marks)),
		t.onVolumes(blockDisks).only(ctx, w.Spec.Marks.Key, made.ID))
}

// sharedSnapshotCases are the sentences about snapshots of shared volumes alone.
func sharedSnapshotCases() []Case {
	return []Case{{
		Name:  "share-snapshot/no-restore",
		About: "A shared volume from a snapshot is UNSUPPORTED at from_snapshot, or made: never an empty one that passes for it.",
		Needs: snapshotNeeds(sharedDisks),
		Run:   shareRestores,
	}}
}

func shareRestores(ctx context.Context, t *Trial) error {
	spec := t.volumeWish(sharedDisks, 0).Spec
	spec.Restores, spec.Snapshot = true, "no-such-snapshot"
	issues := t.store(sharedDisks).CheckForm(spec)
	i := slices.IndexFunc(issues, func(e *backends.Error) bool { return e.Path.String() == "from_snapshot" })
	if i >= 0 && (issues[i].Code != backends.Unsupported || issues[i].Reason != backends.ReasonSnapshots) {
		return wrong("the issue at from_snapshot must be UNSUPPORTED with the reason snapshots; it is: %w", issues[i])
	}
	v, err := t.makeVolume(ctx, sharedDisks, spec)
	if err == nil {
		return wrong("a shared volume was made from a snapshot that doesn't exist: %s", v.ID)
	}
	return t.onVolumes(sharedDisks).none(ctx, spec.Marks.Key)
}
