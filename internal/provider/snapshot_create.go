// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Create makes the snapshot and records it, also when it isn't what it should be.
func (r *snapshotResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Create)
	defer cancel()
	plan, err := newRecord(req.Plan.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	volume, account, err := r.data.open(reference.KindVolume, plan.text("volume"))
	if err != nil {
		report(&resp.Diagnostics, inAttribute("volume", plan.text("volume"), err))
		return
	}
	ref := volume.SnapshotRef(plan.text("name"))
	wish, err := snapshotWish(ctx, account, volume, ref.Snapshot)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	wish.Pool.Adopt = r.data.adopting(volume)
	wish.Spec.Marks.Claim = reconcile.NewClaim()
	created, err := account.CreateSnapshot(ctx, wish)
	s := created.Snapshot
	if err != nil && (s.ID == "" || backends.HasCode(err, backends.Conflict)) {
		reportSnapshotCreate(&resp.Diagnostics, err, ref)
		return
	}

	plan.setText("id", ref.ID())
	plan.setText("uri", ref.String())
	plan.setText("claim", firstOf(s.Marks.Claim, wish.Spec.Marks.Claim))
	snapshotObserved(plan, s)
	resp.State.Raw = plan.raw()
	setIdentity(ctx, resp.Identity, plan.text("uri"), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, seenSnapshot(ref.ID(), s).encode())...)
	switch {
	case err == nil:
	case created.Adopted:
		warn(&resp.Diagnostics, err, "Taken over, but not all went well", "The snapshot was taken over and is recorded as it was seen; the next apply goes on.")
	case created.AsWanted:
		warn(&resp.Diagnostics, err, "The snapshot is as wanted, but could not be marked complete", "It is recorded; the next apply marks it.")
	case reconcile.Interrupted(err):
		warn(&resp.Diagnostics, err, "Creation was interrupted", "The snapshot exists and is recorded; the next apply finishes it in place.")
	case errors.Is(err, context.DeadlineExceeded):
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The snapshot %s exists and is recorded. The next plan would replace it, since its creation didn't end in time. "+
			"To keep it and let the next apply finish it, run untaint on this resource's address (tofu untaint ADDRESS, terraform untaint ADDRESS); "+
			"to give it more time, set timeouts = { create = \"40m\" }.", s.ID))
	default:
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The snapshot %s exists and is recorded; the next apply replaces it, unless you untaint it first.", s.ID))
	}
}

// snapshotWish is what to ask the cloud for. It fails, before anything is made, when
// the cloud has no snapshots, or the volume isn't there or isn't ready. A snapshot
// that exists outlives its volume, so that without a volume it may be the one to
// take up.
func snapshotWish(ctx context.Context, account *reconcile.Account, volume reference.Reference, name string) (
	reconcile.SnapshotWish, error) {
	spec := snapshotSpec(volume, name, "", "")
	spec.Unknown = []string{"volume", "region"}
	if issues := account.CheckSnapshotForm("", spec); len(issues) > 0 {
		return reconcile.SnapshotWish{}, joinIssues(issues)
	}
	wish := reconcile.SnapshotWish{Pool: volume.PoolRef()}
	found, err := account.FindVolume(ctx, volume.PoolID(), "", volume.ID())
	if err != nil {
		return wish, err
	}
	unusable := volumeUnusable(volume, found)
	if unusable != nil {
		existing, err := account.FindSnapshot(ctx, volume.PoolID(), "", spec.Marks.Key)
		if err != nil {
			return wish, err
		}
		if existing == nil {
			return wish, unusable
		}
		found = &backends.Volume{ID: existing.Volume, Kind: existing.Kind, Region: existing.Region}
	}
	spec.Volume, spec.Region, spec.Unknown = found.ID, found.Region, nil
	wish.Kind, wish.Spec = found.Kind, spec
	if issues := account.CheckSnapshotForm(found.Kind, spec); len(issues) > 0 {
		return wish, joinIssues(issues)
	}
	return wish, nil
}

// volumeUnusable is why no snapshot can be made of a volume; nil when one can.
func volumeUnusable(ref reference.Reference, v *backends.Volume) error {
	switch {
	case v == nil:
		return backends.Errorf(backends.NotFound, "The volume %q isn't in the cloud, so no snapshot of it can be made.", ref.Volume).
			WithRemedy("Make the volume first: refer to it by its uri, as in volume = bettercompute_provider_volume.data.uri, so that it is made before its snapshot. " +
				"If it was deleted outside, replace it.")
	case v.State == backends.StateDeleting || v.State == backends.StateDeleted:
		return backends.Errorf(backends.InvalidState, "The volume %q (%s) is being deleted, so no snapshot of it can be made.", v.Name, v.ID).
			WithRemedy("Make the volume anew, or remove the snapshot from the configuration.")
	case v.State == backends.StateError:
		return backends.Errorf(backends.InvalidState, "The volume %q (%s) is in the state error, so no snapshot of it can be made.", v.Name, v.ID).
			WithRemedy("Replace the volume, or remove the snapshot from the configuration. %s", v.Message)
	case v.State == backends.StatePending:
		return backends.Errorf(backends.InvalidState, "The volume %q (%s) isn't ready yet, so no snapshot of it can be made.", v.Name, v.ID).
			WithRemedy("Apply again when it is; an apply of the volume's own resource finishes a creation that was interrupted.")
	default:
		return nil
	}
}

// reportSnapshotCreate reports a creation that left nothing to record.
func reportSnapshotCreate(diags *diag.Diagnostics, err error, ref reference.Reference) {
	exists, _ := errors.AsType[*reconcile.ExistsError](err)
	taken, _ := errors.AsType[*backends.NameTaken](err)
	switch {
	case taken != nil && !taken.Holder.Marks.Managed:
		reportWith(diags, err, importHelp(ref))
	case exists != nil:
		reportWith(diags, err, conflictHelp(ref, exists.Adopt, exists.Differs))
	case reconcile.Interrupted(err):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the snapshot after all, the next apply finds it by its key and finishes it.")
	case errors.Is(err, context.DeadlineExceeded):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the snapshot after all, the next apply finds it by its key and finishes it. "+
			"To give creation more time, set timeouts = { create = \"40m\" }.")
	default:
		report(diags, err)
	}
}
