// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

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
	switch {
	case err != nil:
		return false, nil, err
	case s == nil:
		return ofAnotherKind(ctx, account, ref, spec.Kind)
	}
	spec.Snapshot = s.ID
	if spec.Knows("size_gib") && spec.SizeGiB < s.SizeGiB {
		issues = append(issues, wrongSize("size_gib is %d, and the snapshot %q needs %d GiB.", spec.SizeGiB, ref.Snapshot, s.SizeGiB).
			WithRemedy("Set size_gib = %d or more.", s.SizeGiB))
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
		At("from_snapshot").WithRemedy("The data source bettercompute_snapshots lists those that there are, with their uris.")
}

// absentInReplacement is [noSnapshot] for the plan of a replacement: the volume would
// be destroyed first, and the making fail then.
func absentInReplacement(ref reference.Reference) *backends.Error {
	return noSnapshot(ref).WithRemedy("The volume would be destroyed, and could not be made again. Make the snapshot in an apply of its own first, or correct the uri: " +
		"the data source bettercompute_snapshots lists those that there are.")
}

// ofAnotherKind refuses a snapshot that is there, but of the other kind of volume:
// what it holds can't become a volume of this one. found is false where there is
// none.
func ofAnotherKind(ctx context.Context, account *reconcile.Account, ref reference.Reference, kind backends.VolumeKind) (
	found bool, issues []*backends.Error, err error) {
	other := backends.SharedVolume
	if kind == backends.SharedVolume {
		other = backends.BlockVolume
	}
	s, err := account.FindSnapshot(ctx, ref.PoolRef().ID(), other, ref.ID())
	switch {
	case backends.HasReason(err, backends.ReasonPermission): // a product that the credentials don't reach
		return false, nil, nil
	case err != nil || s == nil:
		return false, nil, err
	}
	e := backends.Errorf(backends.Unsupported, "The snapshot %q is of a %s volume, and no %s volume can be made from one.", ref.Snapshot, other, kind).
		At("from_snapshot").WithRemedy("Name a snapshot of a %s volume, or leave from_snapshot out and copy the data.", kind)
	e.Reason = backends.ReasonSnapshots
	e.Details = map[string]any{"reason": string(e.Reason)}
	return true, []*backends.Error{e}, nil
}

// warnAbsent says what an apply would do about a snapshot that isn't there when a
// creation is planned: the same apply may make it.
func (p *volumePlan) warnAbsent(ref reference.Reference) {
	p.diags.AddWarning(fmt.Sprintf("No such snapshot yet: %q", ref.Snapshot), fmt.Sprintf("The volume %q is to be made from the snapshot %q of the volume %q "+
		"in the pool %q, which isn't in the cloud now. Unless this apply makes it first, the volume is refused. "+
		"The data source bettercompute_snapshots lists those that there are, with their uris.", p.plan.text("name"), ref.Snapshot, ref.Volume, ref.Pool))
}
