// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	ocean "github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
)

// oceanClient is what backends with broken volumes are built on: the one with all
// abilities. Short, since hookedOcean embeds it.
type oceanClient = *ocean.Client

// hookedOcean is a client whose parts can be replaced, one by one.
type hookedOcean struct {
	oceanClient
	// disks and snaps break both kinds of volumes, and of snapshots.
	disks      func(real backends.VolumeStore, blocks backends.Volumes) diskHooks
	snaps      func(real backends.Snapshots) snapHooks
	edits      func(real backends.Volumes) editHooks
	deletes    func(context.Context, backends.Machine) error
	deleteWith func(context.Context, backends.Machine, []backends.Volume) error
	tidies     func(context.Context, backends.Marks) error
}

func (h *hookedOcean) Volumes() backends.Volumes {
	real := h.oceanClient.Volumes()
	if h.edits != nil {
		return editedBlocks{real, h.edits(real)}
	}
	if h.disks == nil {
		return real
	}
	return hookedBlocks{hookedDisks{real, h.disks(real, real)}, real}
}

func (h *hookedOcean) SharedVolumes() backends.VolumeStore {
	real := h.oceanClient.SharedVolumes()
	if h.disks == nil {
		return real
	}
	return hookedDisks{real, h.disks(real, nil)}
}

func (h *hookedOcean) Snapshots() backends.Snapshots {
	return h.hook(h.oceanClient.Snapshots())
}

func (h *hookedOcean) SharedSnapshots() backends.Snapshots {
	return h.hook(h.oceanClient.SharedSnapshots())
}

func (h *hookedOcean) hook(real backends.Snapshots) backends.Snapshots {
	if h.snaps == nil {
		return real
	}
	return hookedSnaps{real, h.snaps(real)}
}

func (h *hookedOcean) DeleteMachine(ctx context.Context, m backends.Machine) error {
	if h.deletes != nil {
		return h.deletes(ctx, m)
	}
	return h.oceanClient.DeleteMachine(ctx, m)
}

func (h *hookedOcean) DeleteMachineWith(ctx context.Context, m backends.Machine, volumes []backends.Volume) error {
	if h.deleteWith != nil {
		return h.deleteWith(ctx, m, volumes)
	}
	return h.oceanClient.DeleteMachineWith(ctx, m, volumes)
}

func (h *hookedOcean) Tidy(ctx context.Context, marks backends.Marks) error {
	if h.tidies != nil {
		return h.tidies(ctx, marks)
	}
	return h.oceanClient.Tidy(ctx, marks)
}

// diskHooks replace methods of volumes; those that are nil are the client's own.
type diskHooks struct {
	// shows changes every volume that any method returns.
	shows  func(*backends.Volume)
	form   func(backends.VolumeSpec) []*backends.Error
	lists  func(context.Context, backends.Filter) ([]backends.Volume, error)
	gets   func(context.Context, string) (backends.Volume, error)
	named  func(context.Context, string) ([]backends.Volume, error)
	makes  func(context.Context, backends.VolumeSpec) (backends.Volume, error)
	marks  func(context.Context, backends.Volume, backends.Marks) (backends.Volume, error)
	resize func(context.Context, backends.Volume, int64) error
	delete func(context.Context, backends.Volume) error
	attach func(context.Context, backends.Volume, string) error
	detach func(context.Context, backends.Volume, string) error
	device func(string) string
}

type hookedDisks struct {
	backends.VolumeStore
	hooks diskHooks
}

func (d hookedDisks) one(v backends.Volume, err error) (backends.Volume, error) {
	if d.hooks.shows != nil && v.ID != "" {
		d.hooks.shows(&v)
	}
	return v, err
}

func (d hookedDisks) all(volumes []backends.Volume, err error) ([]backends.Volume, error) {
	for i := range volumes {
		volumes[i], _ = d.one(volumes[i], nil)
	}
	return volumes, err
}

func (d hookedDisks) CheckForm(spec backends.VolumeSpec) []*backends.Error {
	if d.hooks.form != nil {
		return d.hooks.form(spec)
	}
	return d.VolumeStore.CheckForm(spec)
}

func (d hookedDisks) List(ctx context.Context, f backends.Filter) (backends.Listing[backends.Volume], error) {
	lists := d.hooks.lists
	if lists == nil {
		lists = func(ctx context.Context, f backends.Filter) ([]backends.Volume, error) {
			return d.all(backends.ListAll(ctx, d.VolumeStore.List, f))
		}
	}
	found, err := lists(ctx, f)
	return backends.Whole(found), err
}

func (d hookedDisks) Get(ctx context.Context, id string) (backends.Volume, error) {
	if d.hooks.gets != nil {
		return d.hooks.gets(ctx, id)
	}
	return d.one(d.VolumeStore.Get(ctx, id))
}

func (d hookedDisks) Named(ctx context.Context, name string) ([]backends.Volume, error) {
	if d.hooks.named != nil {
		return d.hooks.named(ctx, name)
	}
	return d.all(d.VolumeStore.Named(ctx, name))
}

func (d hookedDisks) Make(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
	if d.hooks.makes != nil {
		return d.hooks.makes(ctx, spec)
	}
	return d.one(d.VolumeStore.Make(ctx, spec))
}

func (d hookedDisks) Mark(ctx context.Context, v backends.Volume, marks backends.Marks) (backends.Volume, error) {
	if d.hooks.marks != nil {
		return d.hooks.marks(ctx, v, marks)
	}
	return d.one(d.VolumeStore.Mark(ctx, v, marks))
}

func (d hookedDisks) Resize(ctx context.Context, v backends.Volume, gib int64) error {
	if d.hooks.resize != nil {
		return d.hooks.resize(ctx, v, gib)
	}
	return d.VolumeStore.Resize(ctx, v, gib)
}

func (d hookedDisks) Delete(ctx context.Context, v backends.Volume) error {
	if d.hooks.delete != nil {
		return d.hooks.delete(ctx, v)
	}
	return d.VolumeStore.Delete(ctx, v)
}

type hookedBlocks struct {
	hookedDisks
	blocks backends.Volumes
}

func (b hookedBlocks) Attach(ctx context.Context, v backends.Volume, machine string) error {
	if b.hooks.attach != nil {
		return b.hooks.attach(ctx, v, machine)
	}
	return b.blocks.Attach(ctx, v, machine)
}

func (b hookedBlocks) Detach(ctx context.Context, v backends.Volume, machine string) error {
	if b.hooks.detach != nil {
		return b.hooks.detach(ctx, v, machine)
	}
	return b.blocks.Detach(ctx, v, machine)
}

func (b hookedBlocks) Device(name string) string {
	if b.hooks.device != nil {
		return b.hooks.device(name)
	}
	return b.blocks.Device(name)
}

// snapHooks replace methods of snapshots, as diskHooks do.
type snapHooks struct {
	shows    func(*backends.Snapshot)
	lists    func(context.Context, backends.Filter) ([]backends.Snapshot, error)
	ofVolume func(context.Context, string) ([]backends.Snapshot, error)
	gets     func(context.Context, string) (backends.Snapshot, error)
	makes    func(context.Context, backends.SnapshotSpec) (backends.Snapshot, error)
	marks    func(context.Context, backends.Snapshot, backends.Marks) (backends.Snapshot, error)
	delete   func(context.Context, backends.Snapshot) error
}

type hookedSnaps struct {
	backends.Snapshots
	hooks snapHooks
}

func (s hookedSnaps) one(o backends.Snapshot, err error) (backends.Snapshot, error) {
	if s.hooks.shows != nil && o.ID != "" {
		s.hooks.shows(&o)
	}
	return o, err
}

func (s hookedSnaps) all(snapshots []backends.Snapshot, err error) ([]backends.Snapshot, error) {
	for i := range snapshots {
		snapshots[i], _ = s.one(snapshots[i], nil)
	}
	return snapshots, err
}

func (s hookedSnaps) List(ctx context.Context, f backends.Filter) (backends.Listing[backends.Snapshot], error) {
	lists := s.hooks.lists
	if lists == nil {
		lists = func(ctx context.Context, f backends.Filter) ([]backends.Snapshot, error) {
			return s.all(backends.ListAll(ctx, s.Snapshots.List, f))
		}
	}
	found, err := lists(ctx, f)
	return backends.Whole(found), err
}

func (s hookedSnaps) OfVolume(ctx context.Context, volume string) ([]backends.Snapshot, error) {
	if s.hooks.ofVolume != nil {
		return s.hooks.ofVolume(ctx, volume)
	}
	return s.all(s.Snapshots.OfVolume(ctx, volume))
}

func (s hookedSnaps) Get(ctx context.Context, id string) (backends.Snapshot, error) {
	if s.hooks.gets != nil {
		return s.hooks.gets(ctx, id)
	}
	return s.one(s.Snapshots.Get(ctx, id))
}

func (s hookedSnaps) Make(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
	if s.hooks.makes != nil {
		return s.hooks.makes(ctx, spec)
	}
	return s.one(s.Snapshots.Make(ctx, spec))
}

func (s hookedSnaps) Mark(ctx context.Context, o backends.Snapshot, marks backends.Marks) (backends.Snapshot, error) {
	if s.hooks.marks != nil {
		return s.hooks.marks(ctx, o, marks)
	}
	return s.one(s.Snapshots.Mark(ctx, o, marks))
}

func (s hookedSnaps) Delete(ctx context.Context, o backends.Snapshot) error {
	if s.hooks.delete != nil {
		return s.hooks.delete(ctx, o)
	}
	return s.Snapshots.Delete(ctx, o)
}
