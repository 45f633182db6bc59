// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// volumeSpec is the volume that a plan asks for. What isn't known yet is empty, and
// named in Unknown.
func volumeSpec(plan record, pool reference.Reference, d *backends.Definition) backends.VolumeSpec {
	spec := backends.VolumeSpec{
		Name:        plan.text("name"),
		Description: plan.text("description"),
		Kind:        kindOf(plan),
		Region:      plan.text("region"),
		SizeGiB:     plan.whole("size_gib"),
		Filesystem:  plan.text("filesystem"),
		Network:     plan.text("network_id"),
		Restores:    !plan.isNull("from_snapshot"),
		Labels:      plan.textMap("labels"),
		Options:     backends.WithDefaults(d.Manifest.Volume, volumeOptions(plan, d)),
	}
	for name, v := range plan.values {
		if !v.IsFullyKnown() {
			spec.Unknown = append(spec.Unknown, name)
		}
	}
	poolID := pool.PoolRef().ID()
	key := reference.VolumeID(poolID, spec.Name)
	spec.Marks = backends.Marks{
		Managed: true, Key: key, Account: pool.AccountRef().ID(), Pool: poolID,
		GoesWithMachine: plan.truth("delete_with_instance"),
		Digest:          volumeDigest(key, spec),
	}
	return spec
}

// volumeDigest says what a volume is made from. Its size isn't in it: that grows.
func volumeDigest(key string, spec backends.VolumeSpec) string {
	return backends.Digest(key, map[backends.DigestField]string{
		backends.DigestKind:       string(spec.Kind),
		backends.DigestRegion:     spec.Region,
		backends.DigestNetwork:    spec.Network,
		backends.DigestFilesystem: filesystemOf(spec.Filesystem),
	})
}

// filesystemOf is a filesystem's name; "" for none, however that is said.
func filesystemOf(text string) string {
	if text == filesystemNone {
		return ""
	}
	return text
}

// kindOf is the kind of volume in a record; block where it is null, "" while it
// isn't known.
func kindOf(r record) backends.VolumeKind {
	if !r.isKnown("kind") {
		return ""
	}
	return cmp.Or(backends.VolumeKind(r.text("kind")), backends.BlockVolume)
}

// volumeOptions are the options of the pool's cloud; nil when there are none.
func volumeOptions(r record, d *backends.Definition) backends.Values {
	raw, ok := r.values[d.Attribute()]
	if !ok {
		return nil
	}
	options, _ := treeOf(raw).(backends.Values)
	return options
}
