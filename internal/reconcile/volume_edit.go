// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"cmp"
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// RenamesVolumes tells whether the cloud gives a kind of volumes another name in place.
func (a *Account) RenamesVolumes(kind backends.VolumeKind) bool {
	_, ok := a.storeOf(kind).(backends.VolumeRenamer)
	return ok
}

// ProtectsVolumes tells whether the cloud, or a mark in it, can protect a kind of
// volumes from being deleted.
func (a *Account) ProtectsVolumes(kind backends.VolumeKind) bool {
	_, ok := a.storeOf(kind).(backends.VolumeProtector)
	return ok
}

// LabelsVolumes tells whether the cloud changes the labels of a kind of volumes in
// place, and which of its own options are labels too.
func (a *Account) LabelsVolumes(kind backends.VolumeKind) (options []string, ok bool) {
	l, ok := a.storeOf(kind).(backends.VolumeLabeler)
	if !ok {
		return nil, false
	}
	return l.LabelOptions(), true
}

// VolumeNameIsFree fails with a CONFLICT where another volume than the one with that id
// has a name that it is to get.
func (a *Account) VolumeNameIsFree(ctx context.Context, kind backends.VolumeKind, name, id string) error {
	found, err := a.NamedVolumes(ctx, kind, name)
	if err != nil {
		return err
	}
	for _, v := range found {
		if v.ID != id && !v.About().Going() {
			return nameHeld(v, id)
		}
	}
	return nil
}

// nameHeld is the error of a name that another volume has.
func nameHeld(holder backends.Volume, id string) *backends.Error {
	whose := "which isn't managed by Better Compute"
	if m := holder.Marks; m.Managed {
		whose = "of the pool whose id is " + m.Pool
	}
	e := backends.Errorf(backends.Conflict, "The name %q can't be given to the volume %s: it is that of the volume %s, %s.", holder.Name, id, holder.ID, whose).
		WithRemedy("Choose another name. If this configuration renames or removes the other volume, apply that first: " +
			"two volumes swap names in two applies, with a third name in between.").At("name")
	e.Details = map[string]any{"volume_id": holder.ID}
	return e
}

// renameVolume gives a volume the name and the key of a change. The two are written
// together, so that a volume which has the key has the name too. The digest is salted
// with the key, and written anew.
func (a *Account) renameVolume(ctx context.Context, c *VolumeChange, v backends.Volume) (backends.Volume, error) {
	if v.Marks.Key == c.Spec.Marks.Key || v.Marks.Fixed {
		return v, nil
	}
	k := a.volumesOf(v.Kind)
	marks := v.Marks
	marks.Doubled = false
	marks.Key, marks.GoesWithMachine = c.Spec.Marks.Key, c.Spec.Marks.GoesWithMachine
	if marks.Digest != "" {
		marks.Digest = backends.DigestRekey(v.Marks.Digest, cmp.Or(v.Marks.Key, c.Key), marks.Key, madeFrom(v, c.Spec))
	}
	c.Spec.Marks.Digest = marks.Digest
	if v.Name == c.Spec.Name { // someone took the mark away, or changed it
		return k.write(ctx, v, marks)
	}
	renamer, ok := a.storeOf(v.Kind).(backends.VolumeRenamer)
	if !ok {
		return v, backends.Errorf(backends.Unsupported, "%s can't rename a volume.", a.Definition.Title).At("name")
	}
	if err := a.VolumeNameIsFree(ctx, v.Kind, c.Spec.Name, v.ID); err != nil {
		return v, err
	}
	err := k.change(ctx, v.ID, func(ctx context.Context) error {
		renamed, err := renamer.Rename(ctx, v, c.Spec.Name, marks)
		if err == nil {
			v = renamed
			k.reader.wrote(v)
		}
		return err
	})
	if err == nil {
		a.shared.booked.drop(c.Pool, c.Key) // from now on it counts under its new key
	}
	return v, err
}

// madeFrom are the values that the fields of a volume's digest may stand for.
func madeFrom(v backends.Volume, spec backends.VolumeSpec) map[backends.DigestField][]string {
	return map[backends.DigestField][]string{
		backends.DigestKind:       {string(v.Kind)},
		backends.DigestRegion:     {v.Region, spec.Region},
		backends.DigestNetwork:    {v.Network, spec.Network},
		backends.DigestFilesystem: slices.Concat(filesystems, []string{spec.Filesystem}),
	}
}

// filesystems are those that volumes are made with.
var filesystems = []string{"ext4", "xfs"}

// relabelVolume brings a volume's labels to a change's.
func (a *Account) relabelVolume(ctx context.Context, c VolumeChange, v backends.Volume) (backends.Volume, error) {
	labeler, ok := a.storeOf(v.Kind).(backends.VolumeLabeler)
	if c.From == nil || !ok {
		return v, nil
	}
	k := a.volumesOf(v.Kind)
	err := k.change(ctx, v.ID, func(ctx context.Context) error {
		labelled, err := labeler.Relabel(ctx, v, *c.From, c.Spec)
		if err == nil {
			v = labelled
			k.reader.wrote(v)
		}
		return err
	})
	return v, err
}

// protectVolume switches a volume's deletion protection; nil leaves it alone.
func (a *Account) protectVolume(ctx context.Context, v backends.Volume, want *bool) (backends.Volume, error) {
	if want == nil || *want == v.Protected {
		return v, nil
	}
	protector, ok := a.storeOf(v.Kind).(backends.VolumeProtector)
	if !ok {
		e := backends.Errorf(backends.Unsupported, "%s has no deletion protection for such volumes.", a.Definition.Title)
		return v, e.At("deletion_protection")
	}
	k := a.volumesOf(v.Kind)
	if err := k.change(ctx, v.ID, func(ctx context.Context) error { return protector.Protect(ctx, v, *want) }); err != nil {
		return v, err
	}
	v.Protected = *want
	k.reader.wrote(v)
	return v, nil
}

// liftProtection makes a half-made volume deletable.
func (a *Account) liftProtection(ctx context.Context, v backends.Volume) (backends.Volume, error) {
	return a.protectVolume(ctx, v, new(bool))
}
