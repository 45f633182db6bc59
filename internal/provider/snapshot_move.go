// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var _ resource.ResourceWithMoveState = (*snapshotResource)(nil)

// MoveState takes over the state of a volume's snapshot of another provider.
func (r *snapshotResource) MoveState(context.Context) []resource.StateMover {
	pick := func(m backends.Moves) []backends.Move[backends.Snapshot] { return m.Snapshots }
	return movers(r.registry, reference.KindSnapshot, pick, snapshotMoved)
}

// snapshotMoved fills what another provider's state tells.
func snapshotMoved(r record, s backends.Snapshot) error {
	if problem := reference.SnapshotNameProblem(s.Name); problem != "" {
		return backends.Errorf(backends.InvalidInput, "The snapshot to move has a name that this resource can't have. %s", problem).
			WithRemedy("A snapshot can't be renamed by its own provider: rename it in the cloud, or leave it to that provider, or forget it (removed with destroy = false).")
	}
	r.setText("name", s.Name)
	r.setText("snapshot_id", s.ID)
	if s.SizeGiB > 0 {
		r.setNumber("size_gib", new(big.Rat).SetInt64(s.SizeGiB))
	}
	if !s.Created.IsZero() {
		r.setText("created_at", s.Created.UTC().Format(time.RFC3339))
	}
	return nil
}

// takeOver plans the taking over of a snapshot that was moved here, as
// [instancePlan.takeOver] does.
func (p *snapshotPlan) takeOver(ctx context.Context, from movedFrom, private privateSetter) {
	p.state = p.state.clone() // what is worked out below isn't in the state
	name, id := p.state.text("name"), p.state.text("snapshot_id")
	defer func() { unknownIfNull(p.state, "id", "uri", "state", "message", "size_gib", "created_at") }()
	if p.volume == nil {
		return
	}
	if err := movedElsewhere(from, p.data.Registry, p.account); err != nil {
		report(p.diags, err.At("volume"))
		return
	}
	ref := p.volume.SnapshotRef(name)
	p.state.setText("id", ref.ID())
	p.state.setText("uri", ref.String())
	s, err := p.account.ReadSnapshot(ctx, ref.PoolID(), "", id)
	if unreadable(err) {
		p.data.warnUnchecked(p.diags, p.account.URI, err)
		return
	}
	if err = goneSinceMoved(err, "snapshot", name, id, *p.volume); err == nil {
		err = p.checkMoved(ctx, s, ref)
	}
	if err != nil {
		report(p.diags, err)
		return
	}
	if !s.Marks.Managed {
		p.state.setText("name", s.Name) // it may have been renamed since
	}
	p.seen = seenSnapshot(ref.ID(), s)
	p.diags.Append(private.SetKey(ctx, observedKey, p.seen.encode())...)
}

// checkMoved refuses a snapshot that isn't one of the volume that the configuration
// names, as far as that volume is still there.
func (p *snapshotPlan) checkMoved(ctx context.Context, s backends.Snapshot, ref reference.Reference) error {
	if err := checkMoved(s, ref.ID(), ref.PoolID()); err != nil || s.Marks.Managed {
		return err
	}
	volumes, err := importedVolumes(ctx, p.account, ref)
	if err != nil || len(volumes) == 0 || slices.ContainsFunc(volumes, func(v backends.Volume) bool { return v.ID == s.Volume }) {
		return err
	}
	return backends.Errorf(backends.Conflict, "The snapshot %q (%s) is one of the volume %s, and %q is the volume %s.", s.Name, s.ID, s.Volume, ref.Volume, volumes[0].ID).
		At("volume").WithRemedy("Name the volume that the snapshot was made of, as a bettercompute_provider_volume; that one can be moved too.")
}
