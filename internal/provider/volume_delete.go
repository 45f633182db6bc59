// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Delete detaches the volume from the instances that the state names or that an apply
// asked for, deletes it and waits until it is gone. One that is gone already costs no call.
func (r *volumeResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, changeTimeout, timeouts.Value.Delete)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if lost(state) {
		return
	}
	if moved(state) {
		report(&resp.Diagnostics, notTakenOver(state, reference.KindVolume))
		return
	}
	ref, account, err := r.data.openRecorded(reference.KindVolume, state, "volume_id")
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if state.truth("deletion_protection") && !account.ProtectsVolumes(kindOf(state)) {
		report(&resp.Diagnostics, protectedVolume(state, "destroyed"))
		return
	}
	named := recordedInstances(r.registry, state)
	if err := lookUp(ctx, account, named); err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	asked := append(pendingMachines(state), askedMachines(volumeSeen(ctx, req.Private).Asked)...)
	release := slices.Concat(machines(named), asked)
	var left bool
	err = settle(ctx, asked, func() (err error) {
		left, err = account.DeleteVolume(ctx, volumeOwned(state, ref), release)
		return err
	})
	resp.Diagnostics.Append(noteDeleting(ctx, resp.Private, err)...)
	switch {
	case err != nil && reconcile.Interrupted(err):
		reportWith(&resp.Diagnostics, err, "The volume stays in the state; the next run finds out whether it is gone.")
	case err != nil:
		report(&resp.Diagnostics, err)
	case left:
		resp.Diagnostics.AddWarning("CONFLICT: not deleted", fmt.Sprintf("The volume %s was claimed by another run or state, so it was left alone. "+
			"This state only forgets it.", state.text("volume_id")))
	}
}
