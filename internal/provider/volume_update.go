// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Update brings the volume to the plan, in place. Of one that is gone it records
// what the configuration says, without a call.
func (r *volumeResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Update)
	defer cancel()
	plan, config, err := newRecords(req.Plan.Raw, req.Config.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if lost(state) {
		resp.State.Raw = plan.raw()
		setIdentity(ctx, resp.Identity, plan.text("uri"), &resp.Diagnostics)
		return
	}
	// The plan may keep a pool's recorded uri; its limits as they are now are in the
	// configuration's.
	pool, account, err := r.data.openPool(config.text("pool"))
	if err != nil {
		report(&resp.Diagnostics, inAttribute("pool", config.text("pool"), err))
		return
	}
	takesOver := moved(state)
	if takesOver {
		state = state.clone()
		volumeNames(state, pool, state.text("name"))
	}
	u, err := r.change(ctx, volumeDifferenceOf(ctx, plan, state, config, req.Private), pool, account)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	var updated reconcile.VolumeUpdated
	err = settle(ctx, askedMachines(u.asked), func() (err error) {
		updated, err = account.UpdateVolume(ctx, u.change)
		u.change.Claim = updated.Claim
		return err
	})
	v := updated.Volume
	if v.ID == "" || takesOver && err != nil && updated.Claim == "" {
		r.reportUpdate(&resp.Diagnostics, err, plan, state)
		return
	}
	out, asked := plan.clone(), u.settled(v)
	if err != nil {
		out, asked = u.partly(plan, state, updated)
	} else {
		out.setText("claim", updated.Claim)
		volumeObserved(out, v, u.want, asked)
		volumeNames(out, pool, plan.text("name"))
		out.setText("region", v.Region)
		keepPromises(out, plan)
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, volumeMarks(v, out.text("id"), acceptVolume(v), asked))...)
	resp.State.Raw = out.raw()
	setIdentity(ctx, resp.Identity, out.text("uri"), &resp.Diagnostics)
	r.reportUpdate(&resp.Diagnostics, err, plan, state)
}

// volumeUpdate is an update of a volume: what the state and the plan name, and what
// there is to do.
type volumeUpdate struct {
	had, want []namedInstance
	asked     []askedInstance // by earlier applies, without an end
	late      []namedInstance // the instances behind those
	change    reconcile.VolumeChange
}

// change is what an update has to do, checked before anything is asked of the cloud.
func (r *volumeResource) change(ctx context.Context, is volumeDifference, pool reference.Reference, account *reconcile.Account) (
	volumeUpdate, error) {
	plan, state := is.plan, is.state
	spec := volumeSpec(plan, pool, account.Definition)
	u := volumeUpdate{change: reconcile.VolumeChange{
		VolumeOwned: volumeOwned(state, pool),
		In:          pool, Spec: spec, Protect: volumeProtection(plan, account),
	}}
	switch {
	case pool.VolumeRef(state.text("name")).ID() != u.change.Key:
		return u, backends.Errorf(backends.InvalidState, "pool turned out to name another pool than the volume's; nothing was changed.").
			WithRemedy("Plan and apply again: with the pool known, the plan shows the replacement.")
	case spec.Marks.Key != u.change.Key && !account.RenamesVolumes(spec.Kind):
		return u, backends.Errorf(backends.InvalidState, "name turned out to be another name than the volume's, and %s can't rename a volume; nothing was changed.", account.Definition.Title).
			WithRemedy("Plan and apply again: with the name known, the plan shows the replacement.")
	}
	if is.relabels(account) {
		u.change.From = new(volumeSpec(state, pool, account.Definition))
	}
	if was := state.whole("size_gib"); spec.SizeGiB < was {
		return u, shrinks(spec.Name, was, spec.SizeGiB)
	}
	// What it was made from doesn't change in place.
	u.change.Spec.Marks.Digest = cmp.Or(is.seen.Digest, spec.Marks.Digest) // a rename writes it anew
	u.had = recordedInstances(r.registry, state)
	err := lookUp(ctx, account, u.had)
	if err != nil {
		return u, err
	}
	if u.want, err = r.attachable(ctx, account, spec, plan, &pool, u.had); err != nil {
		return u, err
	}
	u.asked, u.late = is.seen.Asked, askedInstances(r.registry, is.seen.Asked)
	if spec.Kind == backends.BlockVolume && !plan.isNull("instances") && len(u.had)+len(u.want)+len(u.asked) > 0 {
		wanted := machines(u.want)
		u.change.Machines = &wanted
		u.change.Release = withAsked(releasable(state, u.had, u.want), u.asked)
	}
	return u, nil
}

// volumeOwned names the volume of a state.
func volumeOwned(state record, pool reference.Reference) reconcile.VolumeOwned {
	return reconcile.VolumeOwned{
		Owned: reconcile.Owned{
			Pool: pool.PoolRef().ID(), ID: state.text("volume_id"), Key: state.text("id"), Claim: state.text("claim"),
		},
		Kind: kindOf(state),
	}
}

// partly is the state after an update that failed: what did happen is recorded, so
// that nothing is done twice and no claim is lost; the rest stays as it was and shows
// in the next plan. What the cloud may go on with is what was asked for.
func (u volumeUpdate) partly(plan, state record, updated reconcile.VolumeUpdated) (record, []askedInstance) {
	out := state.clone()
	out.setText("claim", updated.Claim)
	v := updated.Volume
	if updated.Claim == "" || v.Marks.Claim != updated.Claim {
		return out, u.asked
	}
	if v.Marks.Key == u.change.Spec.Marks.Key && v.Marks.Key != u.change.Key {
		out.values["name"] = plan.values["name"]
		volumeNames(out, u.change.In, plan.text("name"))
	}
	if u.change.Protect != nil {
		out.setTruth("deletion_protection", v.Protected)
	}
	named, asked := u.had, u.asked
	if v.Kind != backends.SharedVolume {
		known := slices.Concat(u.had, missing(u.want, u.had))
		known = append(known, missing(u.late, known)...)
		named = slices.DeleteFunc(slices.Clone(known), func(n namedInstance) bool { return !v.AttachedTo(n.machine) })
		if u.change.Machines != nil {
			asked = asking(asked, missing(slices.Concat(u.had, u.want), named)...)
			if len(named)+len(asked) > 0 && out.isNull("instances") {
				// From here on attachments are ours, as the plan wants it.
				out.setTexts("instances", nil)
			}
		}
		asked = unsettled(asked, v, named)
	}
	keepNamed(out, named)
	volumeObserved(out, v, named, asked)
	out.setTruth("delete_with_instance", v.Marks.GoesWithMachine)
	if v.SizeGiB >= plan.whole("size_gib") {
		out.values["size_gib"] = plan.values["size_gib"]
	}
	return out, asked
}

// settled is what is left of what was asked for after an update that went well: what
// it may have detached, and what may still come.
func (u volumeUpdate) settled(v backends.Volume) []askedInstance {
	return unsettled(u.asked, v, u.want)
}

func (r *volumeResource) reportUpdate(diags *diag.Diagnostics, err error, plan, state record) {
	switch {
	case backends.HasCode(err, backends.NotFound) && !plan.equal("uri", state):
		reportWith(diags, err, "The volume isn't visible with the account's new configuration. If its credentials are those of another project, "+
			"take them back: an account's volumes stay where they were made.")
	case backends.HasCode(err, backends.NotFound):
		reportWith(diags, err, "Plan again: the plan then says what is left to do about a volume that is gone.")
	case reconcile.Interrupted(err):
		reportWith(diags, err, "The next apply goes on where this one stopped.")
	default:
		report(diags, err)
	}
}
