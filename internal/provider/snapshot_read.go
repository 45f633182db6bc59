// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Read refreshes what the cloud shows, through the account's shared lists. The
// volume isn't asked for: the snapshot may outlive it.
func (r *snapshotResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if moved(state) {
		noIdentity(ctx, resp.Identity)
		return // nothing says which account it is in; the plan knows
	}
	setIdentity(ctx, resp.Identity, state.text("uri"), &resp.Diagnostics)
	ref, account, err := r.data.openRecorded(reference.KindSnapshot, state, "snapshot_id")
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	seen := readSnapshotSeen(ctx, req.Private)
	s, err := account.ReadSnapshot(ctx, ref.PoolID(), seen.Kind, state.text("snapshot_id"))
	switch {
	case backends.HasCode(err, backends.NotFound) && wasDeleting(ctx, req.Private):
		resp.State.RemoveResource(ctx) // the deletion took effect, though its end wasn't seen
		return
	case backends.HasCode(err, backends.NotFound):
		resp.Diagnostics.AddWarning("NOT_FOUND: the snapshot is gone", fmt.Sprintf("The snapshot %q (%s) isn't in the cloud any more. Its state is error now, and no plan makes it again by itself. "+
			"Remove the resource, or replace it for a new snapshot of the volume as it is now: apply with -replace and its address. "+
			"If all objects of the account are missing, its credentials may be those of another project: then don't apply.",
			state.text("name"), state.text("snapshot_id")))
		seen.Gone, seen.HalfMade, seen.ID, seen.Key = true, false, state.text("snapshot_id"), ref.ID()
		snapshotGone(state)
		resp.State.Raw = state.raw()
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, seen.encode())...)
		return
	case unreadable(err):
		r.data.warnUnreadable(&resp.Diagnostics, account, err)
		return
	case err != nil:
		report(&resp.Diagnostics, err)
		return
	}
	resp.Diagnostics.Append(stillThere(ctx, req.Private, resp.Private)...)
	switch reconcile.Own(s.Marks, state.text("id"), state.text("claim")) {
	case reconcile.Theirs:
		if state.text("claim") != "" {
			resp.Diagnostics.AddWarning("CONFLICT: claimed by another state", fmt.Sprintf("The snapshot %q (%s) was claimed by another run or state since. "+
				"It is left alone: the recorded values are kept, an update would be refused, and destroying this resource only forgets it.", s.Name, s.ID))
			return
		}
	case reconcile.Foreign:
		resp.Diagnostics.AddWarning("CONFLICT: another resource's snapshot", fmt.Sprintf("The snapshot %q (%s) carries the id of another resource; the recorded values are kept.", s.Name, s.ID))
		return
	case reconcile.Unmarked:
		if state.text("claim") != "" {
			resp.Diagnostics.AddWarning("ACCESS_DENIED: the marks are gone", fmt.Sprintf("The snapshot %q (%s) carries none of our labels or tags any more, so it will not be deleted. "+
				"If it is this resource's snapshot, remove it from the state and import it again.", s.Name, s.ID))
		}
	case reconcile.Ours, reconcile.Unclaimed:
	}
	found := seenSnapshot(ref.ID(), s)
	if lostMarks(s.Marks, ref, state.text("claim"), false) {
		found.HalfMade = true // they are to be written again
	}
	if found.HalfMade && seen.ID != "" && !seen.HalfMade {
		warnLostMarks(&resp.Diagnostics, s.About())
	}
	snapshotObserved(state, s)
	resp.State.Raw = state.raw()
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, found.encode())...)
}
