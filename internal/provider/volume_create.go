// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Create makes the volume, attaches it and records it, also when it isn't what it
// should be.
func (r *volumeResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Create)
	defer cancel()
	plan, err := newRecord(req.Plan.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	pool, account, err := r.data.openPool(plan.text("pool"))
	if err != nil {
		report(&resp.Diagnostics, inAttribute("pool", plan.text("pool"), err))
		return
	}
	wish, named, err := r.wish(ctx, plan, pool, account)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	created, err := account.CreateVolume(ctx, wish)
	v := created.Volume
	if err != nil && (v.ID == "" || backends.HasCode(err, backends.Conflict)) {
		r.reportCreate(&resp.Diagnostics, err, pool.VolumeRef(wish.Spec.Name))
		return
	}

	r.data.volumes.carriedOut(wish.Spec.Marks.Key, v.ID)
	out := plan.clone()
	out.setText("region", firstOf(v.Region, wish.Spec.Region))
	out.setText("claim", firstOf(v.Marks.Claim, wish.Spec.Marks.Claim))
	var asked []askedInstance
	if err != nil && v.Kind != backends.SharedVolume {
		asked = asking(nil, slices.DeleteFunc(slices.Clone(named), func(n namedInstance) bool { return v.AttachedTo(n.machine) })...)
	}
	volumeObserved(out, v, named, asked)
	volumeNames(out, pool, wish.Spec.Name)
	keepPromises(out, plan)
	resp.State.Raw = out.raw()
	setIdentity(ctx, resp.Identity, out.text("uri"), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, volumeMarks(v, out.text("id"), acceptVolume(v), asked))...)
	switch {
	case err == nil:
	case created.Adopted:
		warn(&resp.Diagnostics, err, "Taken over, but not all went well", "The volume was taken over and is recorded as it was seen; the next apply goes on.")
	case created.AsWanted:
		warn(&resp.Diagnostics, err, "The volume is as wanted, but could not be marked complete", "It is recorded; the next apply marks it.")
	case reconcile.Interrupted(err):
		warn(&resp.Diagnostics, err, "Creation was interrupted", "The volume exists and is recorded; the next apply finishes it in place.")
	case errors.Is(err, context.DeadlineExceeded):
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The volume %s exists and is recorded. The next plan would replace it, since its creation didn't end in time. "+
			"To keep it and let the next apply finish it, run untaint on this resource's address (tofu untaint ADDRESS, terraform untaint ADDRESS); "+
			"to give it more time, set timeouts = { create = \"40m\" }.", v.ID))
	default:
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The volume %s exists and is recorded; the next apply replaces it, unless you untaint it first.", v.ID))
	}
}

// wish is the volume to create, checked: an error is of what keeps anything from
// being asked of the cloud.
func (r *volumeResource) wish(ctx context.Context, plan record, pool reference.Reference, account *reconcile.Account) (
	reconcile.VolumeWish, []namedInstance, error) {
	spec := volumeSpec(plan, pool, account.Definition)
	spec.Region = firstOf(spec.Region, account.Region)
	spec.Marks.Digest = volumeDigest(spec.Marks.Key, spec)
	spec.Marks.Claim = reconcile.NewClaim()
	wish := reconcile.VolumeWish{Pool: pool, Protect: volumeProtection(plan, account)}

	var refusals []*backends.Error
	if spec.Restores {
		ref, err := snapshotOf(r.registry, plan, &pool)
		if err != nil {
			return wish, nil, err
		}
		found, issues, err := restore(ctx, account, ref, &spec)
		switch {
		case err != nil:
			return wish, nil, err
		case !found:
			issues = append(issues, noSnapshot(ref))
		}
		refusals = issues
	}
	issues, err := account.CheckVolume(ctx, spec)
	if err != nil {
		return wish, nil, errors.Join(err, joinIssues(issues))
	}
	wrong, more := partIssues(account.CheckVolumeForm(spec), issues)
	if len(wrong) > 0 {
		return wish, nil, joinIssues(wrong)
	}
	named, err := r.attachable(ctx, account, spec, plan, &pool, nil)
	if err != nil {
		return wish, nil, err
	}
	wish.Refusal = joinIssues(append(refusals, more...))
	wish.Spec = spec
	if spec.Kind == backends.BlockVolume {
		wish.Machines = machines(named)
	}
	return wish, named, nil
}

// attachable are the instances that a plan names, checked but for those that had the
// volume already. The error is of all of them.
func (r *volumeResource) attachable(ctx context.Context, account *reconcile.Account, spec backends.VolumeSpec, plan record,
	pool *reference.Reference, had []namedInstance) ([]namedInstance, error) {
	named, err := namedInstances(r.registry, plan, pool)
	if err != nil {
		return nil, err
	}
	if err := lookUp(ctx, account, named); err != nil {
		return nil, err
	}
	if err := errors.Join(repeated(named), tooMany(spec.Kind, named)); err != nil {
		return nil, err
	}
	issues, err := checkAttachable(ctx, account, spec, missing(named, had))
	return named, errors.Join(joinIssues(issues), err)
}

// keepPromises leaves what a plan promised as it promised it; the next refresh shows
// the rest.
func keepPromises(out, plan record) {
	for name, v := range plan.values {
		if v.IsFullyKnown() {
			out.values[name] = v
		}
	}
}

// reportCreate reports a creation that left nothing to record.
func (r *volumeResource) reportCreate(diags *diag.Diagnostics, err error, ref reference.Reference) {
	exists, _ := errors.AsType[*reconcile.ExistsError](err)
	taken, _ := errors.AsType[*backends.NameTaken](err)
	switch {
	case taken != nil && !taken.Holder.Marks.Managed:
		reportWith(diags, err, importHelp(ref))
	case exists != nil:
		reportWith(diags, err, conflictHelp(ref, exists.Adopt, exists.Differs))
	case reconcile.Interrupted(err):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the volume after all, the next apply finds it by its key and finishes it.")
	case errors.Is(err, context.DeadlineExceeded):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the volume after all, the next apply finds it by its key and finishes it. "+
			"To give creation more time, set timeouts = { create = \"40m\" }.")
	default:
		report(diags, err)
	}
}
