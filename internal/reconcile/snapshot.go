// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// SnapshotWish is a snapshot to create.
type SnapshotWish struct {
	Pool reference.Reference // with the pool's keys: adopt
	Kind backends.VolumeKind // of its volume
	// Spec is the snapshot; its marks are set but for Complete, its claim is fresh.
	Spec backends.SnapshotSpec
}

// SnapshotCreated is what became of a wish, as [Created] is. The claim to record is
// the snapshot's.
type SnapshotCreated struct {
	Snapshot          backends.Snapshot
	Adopted, AsWanted bool
}

// SnapshotOwned names a snapshot by what a state knows of it. Without a kind it is
// looked for among both.
type SnapshotOwned struct {
	Owned
	Kind backends.VolumeKind
}

// SnapshotUpdated is what became of an update; Claim is as that of [Updated].
type SnapshotUpdated struct {
	Snapshot backends.Snapshot
	Claim    string
}

// snapshotsOf is a kind of snapshots; nil where the cloud has none.
func (a *Account) snapshotsOf(kind backends.VolumeKind) *kind[backends.Snapshot] {
	if kind == backends.SharedVolume {
		return a.shareSnapshots
	}
	return a.snapshots
}

func (a *Account) snapshotStore(kind backends.VolumeKind) backends.Snapshots {
	if b, ok := a.Backend.(backends.SharedSnapshotter); ok && kind == backends.SharedVolume {
		return b.SharedSnapshots()
	}
	if b, ok := a.Backend.(backends.Snapshotter); ok && kind != backends.SharedVolume {
		return b.Snapshots()
	}
	return nil
}

func (a *Account) needSnapshots(kind backends.VolumeKind) (*kind[backends.Snapshot], error) {
	if k := a.snapshotsOf(kind); k != nil {
		return k, nil
	}
	return nil, a.noSnapshots(kind)
}

func (a *Account) noSnapshots(kind backends.VolumeKind) *backends.Error {
	what := "volumes"
	if kind == backends.SharedVolume {
		what = "shared volumes"
	}
	e := backends.Errorf(backends.Unsupported, "%s has no snapshots of %s.", a.Definition.Title, what)
	e.Reason = backends.ReasonSnapshots
	e.Details = map[string]any{"reason": string(e.Reason)}
	return e
}

// CheckSnapshotForm reports what is wrong with a wish and needs no call to see. While
// the kind is "", not known, it is what any kind that the cloud has would be told.
func (a *Account) CheckSnapshotForm(kind backends.VolumeKind, spec backends.SnapshotSpec) []*backends.Error {
	for _, each := range volumeKinds(kind) {
		if store := a.snapshotStore(each); store != nil {
			return store.CheckForm(spec)
		}
	}
	return []*backends.Error{a.noSnapshots(kind).At("volume")}
}

// CheckSnapshotRoom fails when a volume has no room for one more snapshot
// (QUOTA_EXCEEDED), or has one with that name and another key (CONFLICT).
func (a *Account) CheckSnapshotRoom(ctx context.Context, kind backends.VolumeKind, volume, name, key string) error {
	have, err := a.SnapshotsOfVolume(ctx, kind, volume)
	if err != nil {
		return err
	}
	var others int
	for _, s := range have {
		if s.Marks.Managed && s.Marks.Key == key || s.About().Going() {
			continue
		}
		if s.Name == name {
			return &backends.NameTaken{Holder: s.About()}
		}
		others++
	}
	if others >= backends.MaxSnapshots {
		e := backends.Errorf(backends.QuotaExceeded, "The volume %s has %d snapshots, those made elsewhere included; it may have %d.", volume, others, backends.MaxSnapshots)
		e.Details = map[string]any{"volume_id": volume}
		return e.WithRemedy("Delete one first.")
	}
	return nil
}

// SnapshotsOfVolume are all snapshots of a volume, ours or not.
func (a *Account) SnapshotsOfVolume(ctx context.Context, kind backends.VolumeKind, volume string) ([]backends.Snapshot, error) {
	store := a.snapshotStore(kind)
	if store == nil {
		return nil, a.noSnapshots(kind)
	}
	return store.OfVolume(ctx, volume)
}

// ReadSnapshot is a snapshot of a pool as a recent list shows it, for a refresh.
// NOT_FOUND when it is gone.
func (a *Account) ReadSnapshot(ctx context.Context, pool string, kind backends.VolumeKind, id string) (backends.Snapshot, error) {
	var none backends.Snapshot
	err := error(a.noSnapshots(kind))
	for _, each := range volumeKinds(kind) {
		k := a.snapshotsOf(each)
		if k == nil {
			continue
		}
		var s backends.Snapshot
		if s, err = k.refresh(ctx, pool, id); !backends.HasCode(err, backends.NotFound) {
			return s, err
		}
	}
	return none, err
}

// FindSnapshot is the snapshot of a pool that carries a key, as a recent list shows
// it; nil when there is none. Without a kind both are looked through.
func (a *Account) FindSnapshot(ctx context.Context, pool string, kind backends.VolumeKind, key string) (*backends.Snapshot, error) {
	for _, each := range volumeKinds(kind) {
		k := a.snapshotsOf(each)
		if k == nil {
			continue
		}
		if s, err := k.recent(ctx, pool, key); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// SnapshotObjects are the managed snapshots of an account or pool, of both kinds of
// volumes, as lists that begin now show them, the oldest first.
func (a *Account) SnapshotObjects(ctx context.Context, filter backends.Filter) ([]backends.Snapshot, error) {
	var out []backends.Snapshot
	for _, k := range []*kind[backends.Snapshot]{a.snapshots, a.shareSnapshots} {
		found, err := k.objects(ctx, filter)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, older[backends.Snapshot])
	return out, nil
}

// CreateSnapshot makes a snapshot, or takes up, or takes over the one that carries
// the wish's key, by the rules of DESIGN.md §6, and waits until it is ready.
func (a *Account) CreateSnapshot(ctx context.Context, w SnapshotWish) (SnapshotCreated, error) {
	k, err := a.needSnapshots(w.Kind)
	if err != nil {
		return SnapshotCreated{}, err
	}
	store := a.snapshotStore(w.Kind)
	pool := w.Pool.PoolRef().ID()
	w.Spec.Marks.Claim = k.claim(w.Spec.Marks.Claim)
	made, err := k.create(ctx, recipe[backends.Snapshot]{
		pool: w.Pool, marks: w.Spec.Marks,
		reserve: func(context.Context) (func(), error) { return func() {}, nil },
		make: func(ctx context.Context) (backends.Snapshot, error) {
			// Snapshots of one volume come one at a time, so that they count each other.
			unlock, err := a.shared.objects.lock(ctx, a.Definition.ID+"/snapshots of/"+w.Spec.Volume)
			if err != nil {
				return backends.Snapshot{}, err
			}
			defer unlock()
			if err := a.CheckSnapshotRoom(ctx, w.Kind, w.Spec.Volume, w.Spec.Name, w.Spec.Marks.Key); err != nil {
				return backends.Snapshot{}, err
			}
			return store.Make(ctx, w.Spec)
		},
		prepare: func(ctx context.Context, s backends.Snapshot) (backends.Snapshot, error) {
			return k.awaitReady(ctx, pool, s)
		},
		differs: func(s backends.Snapshot) []backends.DigestField {
			if s.Volume != w.Spec.Volume {
				return []backends.DigestField{backends.DigestVolume} // of a volume that had the name before
			}
			return nil
		},
		adopted: func(_ context.Context, s backends.Snapshot) (backends.Snapshot, error) { return s, nil },
	})
	return SnapshotCreated{Snapshot: made.object, Adopted: made.adopted, AsWanted: made.asWanted}, err
}

// UpdateSnapshot makes sure that a snapshot is ours: one that a state has imported
// is claimed, one that was left half made is finished. Nothing else of a snapshot
// changes.
func (a *Account) UpdateSnapshot(ctx context.Context, o SnapshotOwned, spec backends.SnapshotSpec) (SnapshotUpdated, error) {
	ctx = backends.Operation(ctx)
	out := SnapshotUpdated{Claim: o.Claim}
	k, s, err := a.snapshotToChange(ctx, o)
	if err != nil {
		return out, err
	}
	unlock, err := k.lock(ctx, o.ID)
	if err != nil {
		return out, err
	}
	defer unlock()
	if o.Claim != "" {
		a.shared.claims.Store(o.Claim, true)
	}
	if out.Snapshot, out.Claim, err = k.own(ctx, s, o.Owned, spec.Marks); err != nil {
		return out, err
	}
	switch m := out.Snapshot.Marks; {
	case m.Complete:
		return out, nil
	case m.Fixed: // there is no mark to write, and it is complete once it is ready
		out.Snapshot, err = k.awaitReady(ctx, o.Pool, out.Snapshot)
		return out, err
	}
	out.Snapshot, _, err = k.finish(ctx, o.Pool, out.Snapshot, func(ctx context.Context, s backends.Snapshot) (backends.Snapshot, error) {
		return k.awaitReady(ctx, o.Pool, s)
	})
	return out, err
}

func (a *Account) snapshotToChange(ctx context.Context, o SnapshotOwned) (*kind[backends.Snapshot], backends.Snapshot, error) {
	err := error(a.noSnapshots(o.Kind))
	for _, each := range volumeKinds(o.Kind) {
		k := a.snapshotsOf(each)
		if k == nil {
			continue
		}
		var s backends.Snapshot
		if s, err = k.current(ctx, o.Pool, o.ID); !backends.HasCode(err, backends.NotFound) {
			return k, s, err
		}
	}
	return nil, backends.Snapshot{}, err
}

// DeleteSnapshot deletes a snapshot; see [Account.Delete].
func (a *Account) DeleteSnapshot(ctx context.Context, o SnapshotOwned) (left bool, err error) {
	ctx = backends.Operation(ctx)
	unlock, err := a.shared.keys.lock(ctx, o.Key)
	if err != nil {
		return false, err
	}
	defer unlock()
	for _, each := range volumeKinds(o.Kind) {
		k := a.snapshotsOf(each)
		if k == nil {
			continue
		}
		found, left, err := k.ownToDelete(ctx, o.Owned)
		switch {
		case err != nil || left:
			return left, err
		case found != nil:
			return false, k.remove(ctx, o.Pool, *found)
		}
	}
	return false, nil
}

// CanMarkSnapshot tells whether a snapshot that something else made can become ours.
func (a *Account) CanMarkSnapshot(kind backends.VolumeKind) bool {
	k := a.snapshotsOf(kind)
	return k != nil && !k.fixed
}
