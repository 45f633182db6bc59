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

// Delete deletes the machine and waits until it is gone.
func (r *instanceResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, changeTimeout, timeouts.Value.Delete)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if moved(state) {
		report(&resp.Diagnostics, notTakenOver(state, reference.KindInstance))
		return
	}
	ref, account, err := r.data.openRecorded(reference.KindInstance, state, "machine_id")
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	left, err := account.Delete(ctx, reconcile.Owned{
		Pool: ref.PoolRef().ID(), ID: state.text("machine_id"), Key: state.text("id"), Claim: state.text("claim"), Name: state.text("name"),
	})
	switch {
	case err != nil && reconcile.Interrupted(err):
		reportWith(&resp.Diagnostics, err, "The machine stays in the state; the next run finds out whether it is gone.")
	case err != nil:
		report(&resp.Diagnostics, err)
	case left:
		resp.Diagnostics.AddWarning("CONFLICT: not deleted", fmt.Sprintf("The machine %s was claimed by another run or state, so it was left alone. "+
			"This state only forgets it.", state.text("machine_id")))
	}
}
