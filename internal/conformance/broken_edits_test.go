// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// editHooks are what is changed at a volume that exists; all are set.
type editHooks struct {
	rename  func(context.Context, backends.Volume, string, backends.Marks) (backends.Volume, error)
	relabel func(ctx context.Context, v backends.Volume, from, to backends.VolumeSpec) (backends.Volume, error)
	protect func(context.Context, backends.Volume, bool) error
}

// editedBlocks are block volumes whose edits are hooked.
type editedBlocks struct {
	backends.Volumes
	hooks editHooks
}

func (b editedBlocks) Rename(ctx context.Context, v backends.Volume, name string, marks backends.Marks) (backends.Volume, error) {
	return b.hooks.rename(ctx, v, name, marks)
}

func (b editedBlocks) LabelOptions() []string { return nil }

func (b editedBlocks) Relabel(ctx context.Context, v backends.Volume, from, to backends.VolumeSpec) (backends.Volume, error) {
	return b.hooks.relabel(ctx, v, from, to)
}

func (b editedBlocks) Protect(ctx context.Context, v backends.Volume, protected bool) error {
	return b.hooks.protect(ctx, v, protected)
}

// edits makes a breaking of hooks on the client's own edits; it renames nothing.
func edits(breaking func(real backends.Volumes, hooks *editHooks)) func(*hookedOcean) {
	return func(h *hookedOcean) {
		h.edits = func(real backends.Volumes) editHooks {
			hooks := editHooks{rename: func(_ context.Context, v backends.Volume, _ string, _ backends.Marks) (backends.Volume, error) {
				return v, nil
			}}
			if l, ok := real.(backends.VolumeLabeler); ok {
				hooks.relabel = l.Relabel
			}
			if p, ok := real.(backends.VolumeProtector); ok {
				hooks.protect = p.Protect
			}
			breaking(real, &hooks)
			return hooks
		}
	}
}

// Each backend breaks the contract of a volume's edits in one way; see broken.
var brokenEdits = map[string]brokenOcean{
	"says that it renames a volume, and doesn't": {
		breaking: edits(func(backends.Volumes, *editHooks) {}),
		fails:    []string{"volume/rename"},
	},
	"gives a volume the new key and not the name": {
		breaking: edits(func(real backends.Volumes, hooks *editHooks) {
			hooks.rename = func(ctx context.Context, v backends.Volume, _ string, marks backends.Marks) (backends.Volume, error) {
				return real.Mark(ctx, v, marks)
			}
		}),
		fails: []string{"volume/rename"},
	},
	"takes another's labels off a volume": {
		breaking: edits(func(_ backends.Volumes, hooks *editHooks) {
			real := hooks.relabel
			hooks.relabel = func(ctx context.Context, v backends.Volume, _, to backends.VolumeSpec) (backends.Volume, error) {
				return real(ctx, v, backends.VolumeSpec{Labels: v.Labels}, to)
			}
		}),
		fails: []string{"volume/relabel"},
	},
	"takes unset labels of a volume for none": {
		breaking: edits(func(_ backends.Volumes, hooks *editHooks) {
			real := hooks.relabel
			hooks.relabel = func(ctx context.Context, v backends.Volume, from, to backends.VolumeSpec) (backends.Volume, error) {
				if to.Labels == nil {
					to.Labels = map[string]string{}
				}
				return real(ctx, v, from, to)
			}
		}),
		fails: []string{"volume/relabel"},
	},
	"says that it protects a volume, and doesn't": {
		breaking: edits(func(_ backends.Volumes, hooks *editHooks) {
			hooks.protect = func(context.Context, backends.Volume, bool) error { return nil }
		}),
		fails: []string{"volume/protect"},
	},
}
