// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Delete deletes the snapshot and waits until it is gone. One that the last refresh
// didn't find is only forgotten.
func (r *snapshotResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, changeTimeout, timeouts.Value.Delete)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	seen := readSnapshotSeen(ctx, req.Private)
	if seen.Gone {
		return
	}
	if moved(state) {
		report(&resp.Diagnostics, notTakenOver(state, reference.KindSnapshot))
		return
	}
	ref, account, err := r.data.openRecorded(reference.KindSnapshot, state, "snapshot_id")
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	left, err := account.DeleteSnapshot(ctx, ownedSnapshot(ref, state, seen))
	resp.Diagnostics.Append(noteDeleting(ctx, resp.Private, err)...)
	switch {
	case err != nil && reconcile.Interrupted(err):
		reportWith(&resp.Diagnostics, err, "The snapshot stays in the state; the next run finds out whether it is gone.")
	case err != nil:
		report(&resp.Diagnostics, err)
	case left:
		resp.Diagnostics.AddWarning("CONFLICT: not deleted", fmt.Sprintf("The snapshot %s was claimed by another run or state, so it was left alone. "+
			"This state only forgets it.", state.text("snapshot_id")))
	}
}

// ownedSnapshot names a snapshot by what a state knows of it.
func ownedSnapshot(ref reference.Reference, state record, seen snapshotSeen) reconcile.SnapshotOwned {
	return reconcile.SnapshotOwned{
		Owned: reconcile.Owned{Pool: ref.PoolID(), ID: state.text("snapshot_id"), Key: state.text("id"), Claim: state.text("claim")},
		Kind:  seen.Kind,
	}
}
