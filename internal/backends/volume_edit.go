// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import "context"

// What a cloud lets be changed at a volume that exists is in these interfaces, each
// optional. Without one, a change is a replacement (a name), or is recorded and takes
// effect at the next creation (labels).
//
// Each method looks at what is there and does what is missing, so that it can be called
// again after an interruption, and leaves alone what isn't ours.

// VolumeRenamer is a [VolumeStore] whose cloud gives a volume another name in place.
type VolumeRenamer interface {
	// Rename gives a volume another name and these marks, in one call: the key follows
	// the name, so a volume must never have the one without the other. It returns the
	// volume as the cloud shows it then. A name that the cloud wants unique and another
	// volume holds is a [NameTaken], and nothing is changed.
	Rename(ctx context.Context, v Volume, name string, marks Marks) (Volume, error)
}

// VolumeLabeler is a [VolumeStore] whose cloud changes labels or tags in place.
type VolumeLabeler interface {
	// LabelOptions are the cloud's own options that are tags too, such as raw ones, by
	// their names in the manifest.
	LabelOptions() []string
	// Relabel takes off what from has put on the volume and to doesn't ask for, puts on
	// what to asks for, and keeps all else: marks, and labels of others. Only Labels and
	// the options of LabelOptions are looked at, and of these only what to says something
	// about: nil labels and an option that is absent are left as they are, empty ones
	// mean none. It returns the volume as last seen.
	Relabel(ctx context.Context, v Volume, from, to VolumeSpec) (Volume, error)
}

// VolumeProtector is a [VolumeStore] that protects a volume from being deleted: by its
// cloud's own protection, or by a mark of ours in the cloud, which whoever deletes by
// this contract heeds. [Volume.Protected] shows it.
type VolumeProtector interface {
	// Protect switches the protection, and returns when it is done.
	Protect(ctx context.Context, v Volume, protected bool) error
}
