// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// VolumeWish is a volume to create.
type VolumeWish struct {
	Pool reference.Reference // with the pool's keys: adopt and limits
	// Spec is the volume; its marks are set but for Complete, its claim is fresh.
	Spec backends.VolumeSpec
	// Machines are the cloud's ids of machines to attach a block volume to.
	Machines []string
	// Protect is the wish for deletion protection; nil leaves it alone.
	Protect *bool
	// Refusal is why the volume can't be made now; nil when it can. It doesn't keep
	// what exists from being taken up or over.
	Refusal error
}

// VolumeCreated is what became of a wish, as [Created] is. The claim to record is
// the volume's.
type VolumeCreated struct {
	Volume            backends.Volume
	Adopted, AsWanted bool
}

// VolumeOwned names a volume by what a state knows of it.
type VolumeOwned struct {
	Owned
	Kind backends.VolumeKind
}

// volumesOf is a kind of volumes; nil where the cloud has none.
func (a *Account) volumesOf(kind backends.VolumeKind) *kind[backends.Volume] {
	if kind == backends.SharedVolume {
		return a.shares
	}
	return a.volumes
}

// storeOf is the backend's side of a kind of volumes; nil where it has none.
func (a *Account) storeOf(kind backends.VolumeKind) backends.VolumeStore {
	if b, ok := a.Backend.(backends.SharedVolumer); ok && kind == backends.SharedVolume {
		return b.SharedVolumes()
	}
	if b, ok := a.Backend.(backends.Volumer); ok && kind != backends.SharedVolume {
		return b.Volumes()
	}
	return nil
}

func (a *Account) blockVolumes() backends.Volumes {
	if b, ok := a.Backend.(backends.Volumer); ok {
		return b.Volumes()
	}
	return nil
}

// needVolumes is a kind of volumes that the cloud must have.
func (a *Account) needVolumes(kind backends.VolumeKind) (*kind[backends.Volume], error) {
	if k := a.volumesOf(kind); k != nil {
		return k, nil
	}
	return nil, a.noVolumes(kind)
}

func (a *Account) noVolumes(kind backends.VolumeKind) *backends.Error {
	e := backends.Errorf(backends.Unsupported, "%s has no volumes.", a.Definition.Title)
	e.Reason = backends.ReasonVolumes
	if kind == backends.SharedVolume {
		e = backends.Errorf(backends.Unsupported, "%s has no shared volumes.", a.Definition.Title)
		e.Reason = backends.ReasonSharedVolumes
	}
	e.Details = map[string]any{"reason": string(e.Reason)}
	return e.At("kind")
}

// Device is the path at which a guest will see a volume with that name; "" where
// the cloud doesn't derive it from the name, and for shared volumes.
func (a *Account) Device(kind backends.VolumeKind, name string) string {
	if b := a.blockVolumes(); b != nil && kind != backends.SharedVolume {
		return b.Device(name)
	}
	return ""
}

// ReadVolume is a volume of a pool as a recent list shows it, for a refresh.
// NOT_FOUND when it is gone. Without a kind both are looked through.
func (a *Account) ReadVolume(ctx context.Context, pool string, kind backends.VolumeKind, id string) (backends.Volume, error) {
	err := error(a.noVolumes(kind))
	for _, each := range volumeKinds(kind) {
		k := a.volumesOf(each)
		if k == nil {
			continue
		}
		var v backends.Volume
		if v, err = k.refresh(ctx, pool, id); !backends.HasCode(err, backends.NotFound) {
			return v, err
		}
	}
	return backends.Volume{}, err
}

// FindVolume is the volume of a pool that carries a key, as a recent list shows it;
// nil when there is none. Without a kind both are looked through.
func (a *Account) FindVolume(ctx context.Context, pool string, kind backends.VolumeKind, key string) (*backends.Volume, error) {
	for _, each := range volumeKinds(kind) {
		k := a.volumesOf(each)
		if k == nil {
			continue
		}
		if v, err := k.recent(ctx, pool, key); v != nil || err != nil {
			return v, err
		}
	}
	return nil, nil
}

// volumeKinds are the kinds that a kind selects: "" selects both.
func volumeKinds(kind backends.VolumeKind) []backends.VolumeKind {
	if kind == "" {
		return []backends.VolumeKind{backends.BlockVolume, backends.SharedVolume}
	}
	return []backends.VolumeKind{kind}
}

// NamedVolumes are the volumes with a name in the cloud, ours or not, for an import.
func (a *Account) NamedVolumes(ctx context.Context, kind backends.VolumeKind, name string) ([]backends.Volume, error) {
	store := a.storeOf(kind)
	if store == nil {
		return nil, nil
	}
	return store.Named(ctx, name)
}

// VolumeObjects are the managed volumes of an account or pool, of both kinds, as
// lists that begin now show them, the oldest first; those being deleted are left
// out.
func (a *Account) VolumeObjects(ctx context.Context, filter backends.Filter) ([]backends.Volume, error) {
	var out []backends.Volume
	for _, k := range []*kind[backends.Volume]{a.volumes, a.shares} {
		found, err := k.objects(ctx, filter)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, older[backends.Volume])
	return out, nil
}

// CreateVolume makes a volume, or takes up, or takes over the one that carries the
// wish's key, by the rules of DESIGN.md §6, waits until it is ready and as large as
// asked, and attaches it.
func (a *Account) CreateVolume(ctx context.Context, w VolumeWish) (VolumeCreated, error) {
	k, err := a.needVolumes(w.Spec.Kind)
	if err != nil {
		return VolumeCreated{}, err
	}
	store := a.storeOf(w.Spec.Kind)
	pool := w.Pool.PoolRef().ID()
	w.Spec.Marks.Claim = k.claim(w.Spec.Marks.Claim)
	made, err := k.create(ctx, recipe[backends.Volume]{
		pool: w.Pool, marks: w.Spec.Marks, refusal: w.Refusal,
		reserve: func(ctx context.Context) (func(), error) {
			return a.reserve(ctx, &a.shared.booked, w.Pool, w.Spec.Marks.Key, booking{diskGiB: w.Spec.SizeGiB})
		},
		make: func(ctx context.Context) (backends.Volume, error) { return store.Make(ctx, w.Spec) },
		prepare: func(ctx context.Context, v backends.Volume) (backends.Volume, error) {
			return a.prepareVolume(ctx, pool, v, w)
		},
		lift: a.liftProtection,
		differs: func(v backends.Volume) []backends.DigestField {
			if v.SizeGiB > w.Spec.SizeGiB {
				return []backends.DigestField{backends.DigestSize}
			}
			return nil
		},
		adopted: func(ctx context.Context, v backends.Volume) (backends.Volume, error) {
			return a.adoptedVolume(ctx, pool, v, w)
		},
	})
	return VolumeCreated{Volume: made.object, Adopted: made.adopted, AsWanted: made.asWanted}, err
}

// prepareVolume brings a volume that carries our claim to what is wanted, all but
// the completion mark. A half-made volume of a dead run may hang on a machine
// already; it is nobody else's, so it is detached from any other.
// Protection comes last: what fails before can be deleted.
func (a *Account) prepareVolume(ctx context.Context, pool string, v backends.Volume, w VolumeWish) (backends.Volume, error) {
	k := a.volumesOf(v.Kind)
	v, err := k.awaitReady(ctx, pool, v)
	if err != nil {
		return v, err
	}
	if v, err = a.grow(ctx, pool, v, w.Spec.SizeGiB); err != nil {
		return v, err
	}
	if v.Kind != backends.SharedVolume {
		if v, err = a.attachOnly(ctx, pool, v, w.Machines, v.Machines); err != nil {
			return v, err
		}
	}
	return a.protectVolume(ctx, v, w.Protect)
}

// adoptedVolume brings a complete volume that was taken over to what is wanted. What
// has it attached stays so unless it is named: nobody saw it in a plan.
func (a *Account) adoptedVolume(ctx context.Context, pool string, v backends.Volume, w VolumeWish) (backends.Volume, error) {
	if m := v.Marks; m.GoesWithMachine != w.Spec.Marks.GoesWithMachine && !m.Fixed {
		m.GoesWithMachine = w.Spec.Marks.GoesWithMachine
		marked, err := a.volumesOf(v.Kind).write(ctx, v, m)
		if err != nil {
			return v, err
		}
		v = marked
	}
	v, err := a.grow(ctx, pool, v, w.Spec.SizeGiB)
	if err == nil && v.Kind != backends.SharedVolume && len(w.Machines) > 0 {
		v, err = a.attachOnly(ctx, pool, v, w.Machines, nil)
	}
	if err != nil {
		return v, err
	}
	return a.protectVolume(ctx, v, w.Protect)
}

// CanMark tells whether a volume that something else made can become ours.
func (a *Account) CanMark(kind backends.VolumeKind) bool {
	k := a.volumesOf(kind)
	return k != nil && !k.fixed
}
