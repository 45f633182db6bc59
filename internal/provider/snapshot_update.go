// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Update takes an imported snapshot, finishes one whose creation was interrupted, or
// follows an account that changed. Of a snapshot that is gone it only records.
func (r *snapshotResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Update)
	defer cancel()
	plan, state, err := newRecords(req.Plan.Raw, req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	seen := readSnapshotSeen(ctx, req.Private)
	if seen.Gone {
		resp.State.Raw = plan.raw()
		setIdentity(ctx, resp.Identity, plan.text("uri"), &resp.Diagnostics)
		return
	}
	volume, account, err := r.data.open(reference.KindVolume, plan.text("volume"))
	if err != nil {
		report(&resp.Diagnostics, inAttribute("volume", plan.text("volume"), err))
		return
	}
	ref := volume.SnapshotRef(state.text("name"))
	takesOver := moved(state)
	if takesOver {
		state = state.clone()
		state.setText("id", ref.ID())
		state.setText("uri", ref.String())
	}
	if ref.ID() != state.text("id") {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidState, "volume turned out to name another volume than the snapshot's; nothing was changed.").
			WithRemedy("Plan and apply again: with the volume known, the plan shows the replacement."))
		return
	}
	updated, err := account.UpdateSnapshot(ctx, ownedSnapshot(ref, state, seen), snapshotSpec(volume, ref.Snapshot, seen.Volume, seen.Region))
	s := updated.Snapshot
	if s.ID == "" || takesOver && err != nil && updated.Claim == "" {
		reportSnapshotUpdate(&resp.Diagnostics, err, plan, state)
		return
	}
	out := plan.clone()
	if err != nil { // what did happen is recorded; the rest shows in the next plan
		out = state.clone()
	}
	out.setText("claim", updated.Claim)
	if err == nil || updated.Claim != "" && s.Marks.Claim == updated.Claim {
		snapshotObserved(out, s)
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, seenSnapshot(ref.ID(), s).encode())...)
	}
	if err == nil {
		out.setText("uri", ref.String())
		// What the plan promised stays as promised; the next refresh shows the rest.
		for name, v := range plan.values {
			if v.IsFullyKnown() {
				out.values[name] = v
			}
		}
	}
	resp.State.Raw = out.raw()
	setIdentity(ctx, resp.Identity, out.text("uri"), &resp.Diagnostics)
	reportSnapshotUpdate(&resp.Diagnostics, err, plan, state)
}

func reportSnapshotUpdate(diags *diag.Diagnostics, err error, plan, state record) {
	switch {
	case backends.HasCode(err, backends.NotFound) && !plan.equal("uri", state):
		reportWith(diags, err, "The snapshot isn't visible with the account's new configuration. If its credentials are those of another project, "+
			"take them back: an account's snapshots stay where they were made.")
	case backends.HasCode(err, backends.NotFound):
		reportWith(diags, err, "Plan again: the refresh records that the snapshot is gone.")
	case reconcile.Interrupted(err):
		reportWith(diags, err, "The next apply goes on where this one stopped.")
	default:
		report(diags, err)
	}
}
