// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// snapshotOf is the snapshot that from_snapshot names. It must be of the pool's
// account, where that is known.
func snapshotOf(registry *backends.Registry, r record, pool *reference.Reference) (reference.Reference, error) {
	uri := r.text("from_snapshot")
	ref, err := reference.ParseKind(registry, reference.KindSnapshot, uri)
	if err != nil {
		return ref, inAttribute("from_snapshot", uri, err)
	}
	if pool != nil && ref.AccountID() != pool.AccountID() {
		return ref, backends.Errorf(backends.InvalidInput, "from_snapshot: The snapshot %q is of another account (%s) than the volume (%s).",
			ref.Snapshot, accountName(ref), accountName(*pool)).
			WithRemedy("A volume is made from a snapshot of its own account.")
	}
	return ref, nil
}

// restore finds the snapshot that a volume is made from, and puts it into the spec.
// found is false where none is there (yet). The issues are what keeps the volume from
// being made from it.
func restore(ctx context.Context, account *reconcile.Account, ref reference.Reference, spec *backends.VolumeSpec) (
	found bool, issues []*backends.Error, err error) {
	s, err := account.FindSnapshot(ctx, ref.PoolRef().ID(), spec.Kind, ref.ID())
	if err != nil || s == nil {
		return false, nil, err
	}
	spec.Snapshot = s.ID
	if spec.Knows("size_gib") && spec.SizeGiB < s.SizeGiB {
		e := backends.Errorf(backends.InvalidInput, "size_gib is %d, and the snapshot %q needs %d GiB.", spec.SizeGiB, ref.Snapshot, s.SizeGiB)
		e.Reason = backends.ReasonSize
		issues = append(issues, e.At("size_gib").WithRemedy("Set size_gib = %d or more.", s.SizeGiB))
	}
	if spec.Knows("region") && s.Region != "" && spec.Region != s.Region {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "The snapshot %q is in the region %s, and the volume is to be in %s.", ref.Snapshot, s.Region, spec.Region).
			At("region").WithRemedy("Set region = %q: a volume is made where its snapshot is.", s.Region))
	}
	return true, issues, nil
}

// noSnapshot is the error of a from_snapshot that isn't in the cloud when it is
// needed.
func noSnapshot(ref reference.Reference) *backends.Error {
	return backends.Errorf(backends.InvalidInput, "from_snapshot: There is no snapshot %q of the volume %q in the pool %q.", ref.Snapshot, ref.Volume, ref.Pool).
		WithRemedy("The data source bettercompute_snapshots lists those that there are, with their uris.")
}
