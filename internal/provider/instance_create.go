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

// Create makes the machine and records it, also when it isn't what it should be.
func (r *instanceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Create)
	defer cancel()
	plan, config, err := newRecords(req.Plan.Raw, req.Config.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	pool, account, err := r.data.openPool(plan.text("pool"))
	if err != nil {
		report(&resp.Diagnostics, inAttribute("pool", plan.text("pool"), err))
		return
	}
	userData, _ := userDataOf(config)
	spec := instanceSpec(plan, pool, account.Definition, userData)
	spec.Region = firstOf(spec.Region, account.Region)
	spec.Marks.Digest = backends.Digest(spec.Marks.Key, digestFields(spec))
	spec.Marks.Claim = reconcile.NewClaim()

	offers, err := checkOffers(ctx, account.Backend, spec, plan.texts("offer_fallbacks"))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	wrong, refusals := splitIssues(account.Backend, spec, offers.issues)
	if len(wrong) > 0 {
		reportIssues(&resp.Diagnostics, wrong)
		return
	}
	wish := reconcile.Wish{
		Pool: pool, Spec: spec, Offer: offers.dearest, Protect: protection(plan),
		Fallbacks: plan.texts("offer_fallbacks"), SoldOut: offers.soldOut,
	}
	for _, e := range refusals {
		wish.Refusal = errors.Join(wish.Refusal, e)
	}
	created, err := account.Create(ctx, wish)
	m := created.Machine
	if err != nil && (m.ID == "" || backends.HasCode(err, backends.Conflict)) {
		r.reportCreate(&resp.Diagnostics, err, pool, spec.Name)
		return
	}

	m.Addresses = account.Addresses(ctx, m, spec, nil)
	plan.setText("region", firstOf(m.Region, spec.Region))
	plan.setText("claim", spec.Marks.Claim)
	instanceObserved(plan, m)
	instanceNames(plan, pool, spec.Name, m.ID)
	plan.setNull("price_per_hour")
	plan.setNull("currency")
	if o := offers.of(plan.text("offer_actual")); o != nil {
		plan.setNumber("price_per_hour", o.PricePerHour)
		plan.setText("currency", o.Currency)
	}
	resp.State.Raw = plan.raw()
	setIdentity(ctx, resp.Identity, plan.text("uri"), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, observedMarks(m, accept(m)))...)
	switch {
	case err == nil:
	case created.Adopted:
		warn(&resp.Diagnostics, err, "Taken over, but not all went well", "The machine was taken over and is recorded as it was seen; the next apply goes on.")
	case created.AsWanted:
		warn(&resp.Diagnostics, err, "The machine is as wanted, but could not be marked complete", "It is recorded; the next apply marks it.")
	case reconcile.Interrupted(err):
		warn(&resp.Diagnostics, err, "Creation was interrupted", "The machine exists and is recorded; the next apply finishes it in place.")
	case errors.Is(err, context.DeadlineExceeded):
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The machine %s exists and is recorded. The next plan would replace it, since its creation didn't end in time. "+
			"To keep it and let the next apply finish it, run untaint on this resource's address (tofu untaint ADDRESS, terraform untaint ADDRESS); "+
			"to give it more time, set timeouts = { create = \"40m\" }.", m.ID))
	default:
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The machine %s exists and is recorded; the next apply replaces it, unless you untaint it first.", m.ID))
	}
}

// reportCreate reports a creation that left nothing to record.
func (r *instanceResource) reportCreate(diags *diag.Diagnostics, err error, pool reference.Reference, name string) {
	exists, _ := errors.AsType[*reconcile.ExistsError](err)
	taken, _ := errors.AsType[*backends.NameTaken](err)
	switch {
	case taken != nil && !taken.Holder.Marks.Managed:
		reportWith(diags, err, importHelp(pool.InstanceRef(name, taken.Holder.ID)))
	case exists != nil:
		reportWith(diags, err, conflictHelp(pool.InstanceRef(name, exists.Object.ID), exists.Adopt, exists.Differs))
	case backends.HasReason(err, backends.ReasonCapacity):
		reportWith(diags, err, "offer_fallbacks can name offers that are tried next.")
	case reconcile.Interrupted(err):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the machine after all, the next apply finds it by its key and finishes it.")
	case errors.Is(err, context.DeadlineExceeded):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the machine after all, the next apply finds it by its key and finishes it. "+
			"To give creation more time, set timeouts = { create = \"40m\" }.")
	default:
		report(diags, err)
	}
}

// splitIssues parts what is wrong with a wish in itself from what only keeps a new
// machine from being made: an offer that is sold out or a firewall that is gone by
// now says nothing about a machine that exists and is to be finished or taken over.
func splitIssues(b backends.Backend, spec backends.MachineSpec, issues []*backends.Error) (wrong, refusals []*backends.Error) {
	wrong = b.CheckForm(spec)
	for _, e := range issues {
		if !slices.ContainsFunc(wrong, func(w *backends.Error) bool { return w.Error() == e.Error() }) {
			refusals = append(refusals, e)
		}
	}
	return wrong, refusals
}

// protection is the wish for deletion protection; nil leaves it alone.
func protection(plan record) *bool {
	if !plan.has("deletion_protection") {
		return nil
	}
	on := plan.truth("deletion_protection")
	return &on
}
