// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// longestName is that of a volume's or snapshot's name (specification,
// providerVolumes.create).
const longestName = 42

// shortName is the name of the case's nth volume or snapshot: as a machine's, unless
// that is too long. Then a few characters of hash stand for the case.
func (t *Trial) shortName(n int) string {
	name := t.Prefix + "-" + t.slug() + "-" + strconv.Itoa(n)
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(t.Case))
	return t.Prefix + "-" + hex.EncodeToString(sum[:])[:8] + "-" + strconv.Itoa(n)
}

// disks is a kind of volumes, as the cases reach it: the sentences of
// [backends.VolumeStore] are the same for both.
type disks struct {
	kind  backends.VolumeKind
	name  string // of its cases: NAME/what
	noun  string
	needs []Need
}

var (
	blockDisks  = disks{backends.BlockVolume, "volume", "volume", []Need{NeedVolumes}}
	sharedDisks = disks{backends.SharedVolume, "share", "shared volume", []Need{NeedSharedVolumes, NeedNetwork}}
)

// store is the backend's volumes of a kind; the case's needs say that it has them.
func (t *Trial) store(d disks) backends.VolumeStore {
	if b, ok := t.Backend.(backends.SharedVolumer); ok && d.kind == backends.SharedVolume {
		return b.SharedVolumes()
	}
	if b, ok := t.Backend.(backends.Volumer); ok && d.kind == backends.BlockVolume {
		return b.Volumes()
	}
	return nil
}

// blocks are the backend's block volumes.
func (t *Trial) blocks() backends.Volumes {
	if b, ok := t.Backend.(backends.Volumer); ok {
		return b.Volumes()
	}
	return nil
}

func (t *Trial) madeVolumes(d disks) *track {
	if d.kind == backends.SharedVolume {
		return &t.shares
	}
	return &t.volumes
}

// onVolumes is the shelf of a kind of volumes.
func (t *Trial) onVolumes(d disks) *shelf[backends.Volume] {
	s := volumeShelf(t.Subject, t.store(d), d.noun)
	s.found = t.madeVolumes(d).made
	return s
}

// volumeWish is the case's nth volume in its first pool, with a claim of its own.
func (t *Trial) volumeWish(d disks, n int) reconcile.VolumeWish {
	return t.volumeWishIn(t.Pool(0), d, n)
}

// volumeWishIn is volumeWish in another of the case's pools.
func (t *Trial) volumeWishIn(pool reference.Reference, d disks, n int) reconcile.VolumeWish {
	name := t.shortName(n)
	key := reference.VolumeID(pool.PoolID(), name)
	spec := backends.VolumeSpec{
		Name: name, Kind: d.kind, Region: t.volumeRegion(d.kind), SizeGiB: t.sizeGiB(d.kind),
		Options: backends.WithDefaults(t.Subject.Account.Definition().Manifest.Volume, nil),
	}
	if d.kind == backends.SharedVolume {
		spec.Network = t.Network
	} else {
		spec.Filesystem = "ext4"
	}
	spec.Marks = backends.Marks{
		Managed: true, Key: key, Account: pool.AccountID(), Pool: pool.PoolID(), Claim: t.Claim(),
		Digest: backends.Digest(key, volumeDigest(spec)),
	}
	return reconcile.VolumeWish{Pool: pool, Spec: spec}
}

// volumeDigest is what a volume is made from, as users' are.
func volumeDigest(spec backends.VolumeSpec) map[backends.DigestField]string {
	return map[backends.DigestField]string{
		backends.DigestKind: string(spec.Kind), backends.DigestRegion: spec.Region,
		backends.DigestNetwork: spec.Network, backends.DigestFilesystem: spec.Filesystem,
	}
}

// createVolume grants a wish as a process of its own does, and remembers the volume.
func (t *Trial) createVolume(ctx context.Context, d disks, w reconcile.VolumeWish) (backends.Volume, error) {
	account, err := t.Account()
	if err != nil {
		return backends.Volume{}, err
	}
	return t.createVolumeIn(ctx, account, d, w)
}

func (t *Trial) createVolumeIn(ctx context.Context, account *reconcile.Account, d disks, w reconcile.VolumeWish) (backends.Volume, error) {
	t.madeVolumes(d).making(w.Spec.Marks)
	created, err := account.CreateVolume(ctx, w)
	t.madeVolumes(d).made(created.Volume.ID)
	if err != nil {
		return created.Volume, fmt.Errorf("creating the %s %s: %w", d.noun, w.Spec.Name, err)
	}
	return created.Volume, nil
}

// makeVolume makes a volume with the backend's one call, as a process that is killed
// right after it, and remembers it.
func (t *Trial) makeVolume(ctx context.Context, d disks, spec backends.VolumeSpec) (backends.Volume, error) {
	t.madeVolumes(d).making(spec.Marks)
	v, err := t.store(d).Make(ctx, spec)
	if err == nil {
		t.madeVolumes(d).made(v.ID)
	}
	return v, err
}

// ownedVolume is what a state knows of a wish's volume. The claim to record is the
// volume's own.
func ownedVolume(w reconcile.VolumeWish, v backends.Volume) reconcile.VolumeOwned {
	return reconcile.VolumeOwned{Kind: w.Spec.Kind, Owned: reconcile.Owned{
		Pool: w.Spec.Marks.Pool, ID: v.ID, Key: w.Spec.Marks.Key, Claim: v.Marks.Claim,
	}}
}

// changeVolume brings a volume to what change makes of it, as a process of its own
// does.
func (t *Trial) changeVolume(ctx context.Context, w reconcile.VolumeWish, v backends.Volume,
	change func(*reconcile.VolumeChange)) (backends.Volume, error) {
	account, err := t.Account()
	if err != nil {
		return v, err
	}
	c := reconcile.VolumeChange{VolumeOwned: ownedVolume(w, v), In: w.Pool, Spec: w.Spec}
	change(&c)
	updated, err := account.UpdateVolume(ctx, c)
	return updated.Volume, err
}

// attachTo has a volume attached to those machines, and none of them detached.
func (t *Trial) attachTo(ctx context.Context, w reconcile.VolumeWish, v backends.Volume, machines ...string) (backends.Volume, error) {
	v, err := t.changeVolume(ctx, w, v, func(c *reconcile.VolumeChange) { c.Machines = &machines })
	if err != nil {
		return v, fmt.Errorf("attaching the volume %s: %w", w.Spec.Name, err)
	}
	return v, nil
}

// deleteVolume deletes a volume as a process of its own does; see
// [reconcile.Account.DeleteVolume].
func (t *Trial) deleteVolume(ctx context.Context, o reconcile.VolumeOwned, release ...string) (left bool, err error) {
	account, err := t.Account()
	if err != nil {
		return false, err
	}
	return account.DeleteVolume(ctx, o, release)
}
