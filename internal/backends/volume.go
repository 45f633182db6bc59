// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"slices"
	"time"
)

// Volumer is a [Backend] with block volumes: disks, each on one machine at a time.
type Volumer interface{ Volumes() Volumes }

// SharedVolumer is a [Backend] with shared volumes: network file shares that many
// machines of one network mount at once.
type SharedVolumer interface{ SharedVolumes() VolumeStore }

// VolumeStore is what block and shared volumes have in common. Reads and idempotent
// calls retry by [Retry] inside the method; Make never sends a second request after
// one that may have been carried out.
type VolumeStore interface {
	// Unfiltered tells that the cloud can't select volumes by their marks, so that a
	// list of any pool costs one of the whole project. Then lists are made with the
	// zero [Filter], and shared by all pools.
	Unfiltered() bool
	// FixedMarks tells that volumes have their marks in their names ([Marks.Fixed]), so
	// that one which something else made can't become ours.
	FixedMarks() bool
	// CheckForm reports everything that is wrong with a wish and that no call is needed
	// to see, each issue with its path (Path{"size_gib"}, Path{"hetzner_cloud", …}).
	// Inputs in spec.Unknown and [Unknown] options are passed over. A size that the
	// cloud doesn't make is INVALID_INPUT with [ReasonSize].
	CheckForm(spec VolumeSpec) []*Error
	// Check holds a wish against the catalog too (the region, the network), and
	// reports what it finds and what CheckForm does. The error is for a catalog that
	// can't be read. It makes nothing.
	Check(ctx context.Context, spec VolumeSpec) ([]*Error, error)
	// List is the managed volumes that the filter holds, in no order.
	List(ctx context.Context, filter Filter) (Listing[Volume], error)
	// Get is the volume with that id; NOT_FOUND when it is gone.
	Get(ctx context.Context, id string) (Volume, error)
	// Named is the volumes with that name in the cloud, ours or not.
	Named(ctx context.Context, name string) ([]Volume, error)
	// Make makes one volume, marks without Complete, in the one call, and returns it
	// before it is ready. It neither looks the key up nor attaches. A volume from a
	// snapshot may be smaller than asked; it is resized by the caller. A name that the
	// cloud wants unique and another volume holds is a [NameTaken].
	Make(ctx context.Context, spec VolumeSpec) (Volume, error)
	// Mark makes marks the volume's marks, as last seen in v, keeps what isn't ours,
	// and returns the volume as the cloud shows it then. With [Marks.Fixed] it isn't
	// called.
	Mark(ctx context.Context, v Volume, marks Marks) (Volume, error)
	// Resize grows the volume, attached or not. It returns once the cloud has accepted
	// it; the volume's size shows when it is done.
	Resize(ctx context.Context, v Volume, sizeGiB int64) error
	// Delete asks the cloud to delete the volume, which nothing has attached. It may
	// return before the volume is gone; NOT_FOUND when it is gone already. A share that
	// has snapshots is INVALID_STATE.
	Delete(ctx context.Context, v Volume) error
}

// Volumes are a cloud's block volumes.
type Volumes interface {
	VolumeStore
	// Attach attaches the volume to a machine, without a reboot. It returns once the
	// cloud has accepted it; the volume shows when it is done. Attached to that machine
	// already is success. Mutations of one machine come one at a time.
	Attach(ctx context.Context, v Volume, machine string) error
	// Detach detaches the volume from a machine. Not attached there is success.
	Detach(ctx context.Context, v Volume, machine string) error
	// Device is the path that a guest will see of a volume with that name; "" where
	// the cloud doesn't derive it from the name.
	Device(name string) string
}

// VolumeDiagnoser is a [VolumeStore] that can explain why a volume doesn't become
// what it was told to: it returns the error of an asynchronous action that failed
// since the volume was last changed, nil when it knows none.
type VolumeDiagnoser interface {
	Diagnose(ctx context.Context, v Volume) error
}

// SelectiveDestroyer is a [Backend] that can delete a machine together with some of
// the volumes attached to it.
type SelectiveDestroyer interface {
	// DeleteMachineWith asks the cloud to delete the machine and the volumes. It
	// returns before they are gone; NOT_FOUND when the machine is gone already.
	DeleteMachineWith(ctx context.Context, m Machine, volumes []Volume) error
}

// VolumeKind is how a volume is used.
type VolumeKind string

// The kinds of volumes.
const (
	BlockVolume  VolumeKind = "block"
	SharedVolume VolumeKind = "shared"
)

// The states that only volumes and snapshots have, besides pending, deleting,
// deleted and error.
const (
	StateReady    State = "ready"
	StateUpdating State = "updating"
)

// Volume is a volume as the cloud shows it.
type Volume struct {
	ID      string // the cloud's own, as text
	Name    string
	Kind    VolumeKind
	State   State
	Message string // why the state is error
	SizeGiB int64
	Region  string
	// Network is the cloud's id of a shared volume's network; "" of a block volume.
	Network string
	// Machines are the ids of the machines that have a block volume attached: at most
	// one on the clouds of today. Clouds don't know who mounts a shared volume.
	Machines  []string
	Device    string // the path in the guest; "" while the cloud doesn't say
	Mount     *Mount // of a shared volume that can be mounted
	URN       string // where the cloud has such names
	Protected bool   // deletion protection
	Created   time.Time
	// Marks are what we wrote on it; the zero value on a volume that isn't ours.
	Marks Marks
	// Labels are the labels or tags that aren't our marks.
	Labels map[string]string
}

// About implements [Object].
func (v Volume) About() About {
	return About{"volume", v.ID, v.Name, v.State, v.Message, v.Created, v.Protected, v.Marks}
}

// AttachedTo tells whether a machine has the volume attached.
func (v Volume) AttachedTo(machine string) bool { return slices.Contains(v.Machines, machine) }

// Mount is what a guest mounts of a shared volume.
type Mount struct {
	Source string // host:path
	Type   string // nfs4
}

// VolumeSpec is a volume as it is wanted. At plan time an input that isn't known yet
// is empty, and named in Unknown.
type VolumeSpec struct {
	Name        string
	Description string // sent at creation where the cloud keeps one
	Kind        VolumeKind
	Region      string // never empty when the volume is made
	SizeGiB     int64
	// Filesystem is ext4 or xfs, which the cloud makes; "none" and "" make none.
	Filesystem string
	// Network is the cloud's own id of a shared volume's network.
	Network string
	// Restores: the volume is made from a snapshot, whose id in the cloud is Snapshot;
	// a plan may not know that yet.
	Restores bool
	Snapshot string
	Labels   map[string]string
	// Options are the cloud's own, by the manifest, defaults filled in.
	Options Values
	Marks   Marks
	// Unknown names the inputs (size_gib, region, …) that a plan doesn't know yet.
	Unknown []string
}

// Knows tells whether an input is known, be it empty or not.
func (s VolumeSpec) Knows(input string) bool { return !slices.Contains(s.Unknown, input) }
