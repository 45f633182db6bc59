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

// Create makes the machine and records it, also when it isn't what it should be.
func (r *instanceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Create)
	defer cancel()
	plan, config, err := newRecords(req.Plan.Raw, req.Config.Raw)
	if err != nil {
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

	resolved, issues, err := account.Backend.CheckMachine(ctx, spec)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if len(issues) > 0 {
		reportIssues(&resp.Diagnostics, issues)
		return
	}
	created, err := account.Create(ctx, reconcile.Wish{Pool: pool, Spec: spec, Offer: resolved.Offer})
	m := created.Machine
	if err != nil && !created.Adopted && (m.ID == "" || backends.HasCode(err, backends.Conflict)) {
		r.reportCreate(&resp.Diagnostics, err, pool, spec.Name)
		return
	}

	plan.setText("region", firstOf(m.Region, spec.Region))
	plan.setText("claim", m.Marks.Claim)
	instanceObserved(plan, m)
	instanceNames(plan, pool, spec.Name, m.ID)
	plan.setNull("price_per_hour")
	plan.setNull("currency")
	if resolved.Offer != nil {
		plan.setNumber("price_per_hour", resolved.Offer.PricePerHour)
		plan.setText("currency", resolved.Offer.Currency)
	}
	resp.State.Raw = plan.raw()
	setIdentity(ctx, resp.Identity, plan.text("uri"), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, observedMarks(m))...)
	switch {
	case err == nil:
	case created.Adopted:
		warn(&resp.Diagnostics, err, "Taken over, but not all went well", "The machine was taken over and is recorded as it was seen; the next apply goes on.")
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
	var exists *reconcile.ExistsError
	switch {
	case errors.As(err, &exists):
		reportWith(diags, err, conflictHelp(pool.InstanceRef(name, exists.Machine.ID).String()))
	case reconcile.Interrupted(err):
		reportWith(diags, err, "Nothing is recorded. If the cloud made the machine after all, the next apply finds it by its key and finishes it.")
	default:
		report(diags, err)
	}
}
