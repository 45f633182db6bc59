// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"slices"
	"time"
)

// Snapshotter is a [Backend] with snapshots of block volumes.
type Snapshotter interface{ Snapshots() Snapshots }

// SharedSnapshotter is a [Backend] with snapshots of shared volumes.
type SharedSnapshotter interface{ SharedSnapshots() Snapshots }

// Snapshots are a cloud's snapshots of one kind of volume. Calls retry as those of
// a [VolumeStore] do.
type Snapshots interface {
	// Unfiltered and FixedMarks are as those of a [VolumeStore].
	Unfiltered() bool
	FixedMarks() bool
	// CheckForm reports what is wrong with a wish and needs no call to see.
	CheckForm(spec SnapshotSpec) []*Error
	// List is the managed snapshots that the filter holds, in no order.
	List(ctx context.Context, filter Filter) (Listing[Snapshot], error)
	// OfVolume is all snapshots of a volume, ours or not: they share its limit and
	// its names.
	OfVolume(ctx context.Context, volume string) ([]Snapshot, error)
	// Get is the snapshot with that id; NOT_FOUND when it is gone.
	Get(ctx context.Context, id string) (Snapshot, error)
	// Make makes one snapshot, marks without Complete, in the one call, and returns it
	// before it is ready. A cloud that makes snapshots of one volume only so often is
	// waited for as long as ctx allows; the error then says when the next one can be
	// made.
	Make(ctx context.Context, spec SnapshotSpec) (Snapshot, error)
	// Mark is as that of a [VolumeStore].
	Mark(ctx context.Context, s Snapshot, marks Marks) (Snapshot, error)
	// Delete asks the cloud to delete the snapshot; NOT_FOUND when it is gone already.
	Delete(ctx context.Context, s Snapshot) error
}

// MaxSnapshots is how many snapshots a volume may have (specification,
// providerVolumes.snapshot).
const MaxSnapshots = 25

// Snapshot is a snapshot of a volume as the cloud shows it.
type Snapshot struct {
	ID      string // the cloud's own, as text
	Name    string
	Kind    VolumeKind // of its volume
	State   State
	Message string // why the state is error
	// Volume is the cloud's id of the volume, which may be gone.
	Volume string
	// SizeGiB is the size that a volume made from it has at least.
	SizeGiB int64
	Region  string
	Created time.Time
	// Marks are what we wrote on it; the zero value on a snapshot that isn't ours.
	Marks Marks
	// Labels are the labels or tags that aren't our marks.
	Labels map[string]string
}

// About implements [Object].
func (s Snapshot) About() About {
	return About{"snapshot", s.ID, s.Name, s.State, s.Message, s.Created, false, s.Marks}
}

// SnapshotSpec is a snapshot as it is wanted.
type SnapshotSpec struct {
	Name   string
	Volume string // the cloud's id of the volume
	Region string // the volume's
	Marks  Marks
	// Unknown names the inputs that a plan doesn't know yet.
	Unknown []string
}

// Knows tells whether an input is known, be it empty or not.
func (s SnapshotSpec) Knows(input string) bool { return !slices.Contains(s.Unknown, input) }
