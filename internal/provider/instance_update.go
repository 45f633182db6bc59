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

// Update brings the machine to the plan, in place.
func (r *instanceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
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
	pool, account, err := r.data.openPool(plan.text("pool"))
	if err != nil {
		report(&resp.Diagnostics, inAttribute("pool", plan.text("pool"), err))
		return
	}
	change := instanceChange(differenceOf(ctx, plan, state, config, req.Private), pool, account)
	if change.Key != change.Spec.Marks.Key {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidState, "pool turned out to name another pool than the machine's; nothing was changed.").
			WithRemedy("Plan and apply again: with the pool known, the plan shows the replacement."))
		return
	}
	updated, err := account.Update(ctx, change)
	m := updated.Machine
	if m.ID == "" {
		r.reportUpdate(&resp.Diagnostics, err, plan, state)
		return
	}
	m.Addresses = account.Addresses(ctx, m, change.Spec, recordedAddresses(state))
	updated.Machine = m
	was := accept(m)
	if err != nil && updated.Reinstalled {
		was.ImageID, was.Reinstalled = "", true // m may be from before it
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, observedMarks(m, was))...)
	out := plan.clone()
	if err != nil {
		out = partlyUpdated(plan, state, updated)
	} else {
		out.setText("claim", updated.Claim)
		instanceObserved(out, m)
		instanceNames(out, pool, plan.text("name"), m.ID)
		out.setText("region", m.Region)
		// What the plan promised stays as promised; the next refresh shows the rest.
		for name, v := range plan.values {
			if v.IsFullyKnown() {
				out.values[name] = v
			}
		}
		for _, name := range []string{"price_per_hour", "currency"} {
			if !out.isKnown(name) {
				out.setNull(name)
			}
		}
	}
	resp.State.Raw = out.raw()
	setIdentity(ctx, resp.Identity, out.text("uri"), &resp.Diagnostics)
	r.reportUpdate(&resp.Diagnostics, err, plan, state)
}

// partlyUpdated is the state after an update that failed: what did happen is
// recorded, so that nothing is done twice and no claim is lost; the rest stays as
// it was and shows in the next plan.
func partlyUpdated(plan, state record, updated reconcile.Updated) record {
	out := state.clone()
	out.setText("claim", updated.Claim)
	if updated.Claim != "" && updated.Machine.Marks.Claim == updated.Claim {
		instanceObserved(out, updated.Machine)
		instanceObservedWishes(out, updated.Machine)
	}
	if updated.Reinstalled {
		for _, name := range []string{"image", "user_data", "user_data_wo_version"} {
			out.values[name] = plan.values[name]
		}
	}
	return out
}

func (r *instanceResource) reportUpdate(diags *diag.Diagnostics, err error, plan, state record) {
	switch {
	case backends.HasCode(err, backends.NotFound) && !plan.equal("uri", state):
		reportWith(diags, err, "The machine isn't visible with the account's new configuration. If its credentials are those of another project, "+
			"take them back: an account's machines stay where they were made.")
	case backends.HasCode(err, backends.NotFound):
		reportWith(diags, err, "Plan again: a machine that is gone is planned anew.")
	case reconcile.Interrupted(err):
		reportWith(diags, err, "The next apply goes on where this one stopped.")
	default:
		report(diags, err)
	}
}

// instanceChange is what an update has to do.
func instanceChange(is instanceDifference, pool reference.Reference, account *reconcile.Account) reconcile.Change {
	plan, state, config := is.plan, is.state, is.config
	userData, _ := userDataOf(config)
	spec := instanceSpec(plan, pool, account.Definition, userData)
	if is.seen.Digest != "" && !userDataChanged(plan, state) {
		// A write-only value is what its version says, whatever it reads now.
		spec.Marks.Digest = backends.DigestKeep(spec.Marks.Digest, is.seen.Digest, backends.DigestUserData)
	}
	c := reconcile.Change{
		Owned: reconcile.Owned{
			Pool: pool.PoolRef().ID(), ID: state.text("machine_id"),
			Key: state.text("id"), Claim: state.text("claim"), Name: state.text("name"),
		},
		Spec:  spec,
		Power: !plan.equal("power", state) || !plan.isKnown("state"),
	}
	c.Protect = protection(plan)
	if is.image() && plan.text("on_image_change") == onChangeReinstall {
		c.Reinstall = true
	}
	if is.userData() && plan.text("on_user_data_change") == onChangeReinstall {
		c.Reinstall, c.ReinstallUserData = true, true
	}
	return c
}
