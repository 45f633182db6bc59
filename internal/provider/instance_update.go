// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"slices"

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
	takesOver := moved(state)
	if takesOver {
		state = state.clone()
		instanceNames(state, pool, state.text("name"), state.text("machine_id"))
	}
	is := differenceOf(ctx, plan, state, config, req.Private)
	change := instanceChange(is, pool, account)
	// The plan keeps the recorded pool where only its limits differ; those that count are
	// in the configuration.
	if limits, _, err := r.data.openPool(config.text("pool")); err == nil && change.Resize && limits.Limits.Price() != nil {
		change.Limits = limits
		change.Offer = account.Dearer(ctx, is.seen.Offer, change.Spec.Offer, state.text("region"))
	}
	if was, err := reference.ParseKind(r.registry, reference.KindInstance, state.text("uri")); err != nil || was.PoolID() != pool.PoolID() {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidState, "pool turned out to name another pool than the machine's; nothing was changed.").
			WithRemedy("Plan and apply again: with the pool known, the plan shows the replacement."))
		return
	}
	updated, err := account.Update(ctx, change)
	m := updated.Machine
	if m.ID == "" || takesOver && err != nil && updated.Claim == "" {
		r.reportUpdate(&resp.Diagnostics, err, plan, state)
		return
	}
	m.Addresses = account.Addresses(ctx, m, change.Spec, recordedAddresses(state))
	updated.Machine = m
	was := accept(m)
	if err != nil {
		if updated.Reinstalled {
			was.ImageID, was.Reinstalled = "", true // m may be from before it
		}
		was.Cut = is.seen.Accepted.Cut || updated.Begun
		if was.Attempts = is.seen.Accepted.Attempts; updated.Edited {
			was.Attempts = nil
		} else if updated.Tried {
			was.Attempts = attempted(was.Attempts, change.Spec)
		}
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, observedMarks(m, was))...)
	out := plan.clone()
	if err != nil {
		out = partlyUpdated(plan, state, updated, pool)
		r.recordPrice(ctx, out, state, account, updated)
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
		r.recordPrice(ctx, out, state, account, updated)
	}
	resp.State.Raw = out.raw()
	setIdentity(ctx, resp.Identity, out.text("uri"), &resp.Diagnostics)
	r.reportUpdate(&resp.Diagnostics, err, plan, state)
}

// partlyUpdated is the state after an update that failed: what did happen is
// recorded, so that nothing is done twice and no claim is lost; the rest stays as
// it was and shows in the next plan.
func partlyUpdated(plan, state record, updated reconcile.Updated, pool reference.Reference) record {
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
	if updated.Edited {
		for name := range out.values {
			if isEdited(name) {
				out.values[name] = plan.values[name]
			}
		}
		instanceNames(out, pool, plan.text("name"), updated.Machine.ID)
	}
	if updated.Resized {
		out.values["offer"] = plan.values["offer"]
	}
	return out
}

// isEdited tells whether an input is one that an edit brings to a machine: the cloud's
// own options, and what the contract names.
func isEdited(name string) bool {
	_, input := instanceInputs()[name]
	_, output := instanceOutputs()[name]
	return name == "name" || name == "labels" || name == "network_id" || !input && !output && name != "timeouts"
}

// recordPrice records what a machine costs: what was recorded, or, if it was resized
// or nothing was, what its offer costs now.
func (r *instanceResource) recordPrice(ctx context.Context, out, state record, account *reconcile.Account, updated reconcile.Updated) {
	if !updated.Resized {
		for _, name := range []string{"price_per_hour", "currency"} {
			out.values[name] = state.values[name]
			if !out.isKnown(name) { // of a machine that was moved here
				out.setNull(name)
			}
		}
		return
	}
	out.setNull("price_per_hour")
	out.setNull("currency")
	if o := account.OfferOf(ctx, updated.Machine); o != nil {
		out.setNumber("price_per_hour", o.PricePerHour)
		out.setText("currency", o.Currency)
	}
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
	digest := func(spec backends.MachineSpec) string {
		out := backends.Digest(spec.Marks.Key, digestFields(spec))
		if is.seen.Digest != "" && !userDataChanged(plan, state) && firstOf(is.seen.Key, is.key) == spec.Marks.Key {
			// A write-only value is what its version says, whatever it reads now.
			out = backends.DigestKeep(out, is.seen.Digest, backends.DigestUserData)
		}
		return out
	}
	spec.Marks.Digest = digest(spec)
	c := reconcile.Change{
		Owned: reconcile.Owned{
			Pool: pool.PoolRef().ID(), ID: state.text("machine_id"),
			Key: state.text("id"), Claim: state.text("claim"), Name: state.text("name"),
		},
		Spec:  spec,
		Power: !plan.equal("power", state) || !plan.isKnown("state"),
	}
	c.Protect = protection(plan)
	if _, resizes := account.Backend.(backends.Resizer); resizes && is.offer() {
		had := spec
		had.Offer = state.text("offer")
		c.Resize, c.GrowDisk, c.HadOffer, c.KeptDigest = true, plan.truth("resize_disk"), is.seen.Offer, digest(had)
	} else if is.seen.Offer != "" {
		c.Spec.Offer = is.seen.Offer // what it has, be it a fallback
	}
	if editor, ok := account.Backend.(backends.Editor); ok {
		from := editedFrom(is, pool, account.Definition)
		changes := slices.ContainsFunc(editor.PlanEdit(from[len(from)-1], spec), func(e backends.Effect) bool {
			return e.Takes <= backends.Restart
		})
		if changes || is.unfinished() || is.imported() {
			slices.Reverse(from)
			c.From = from
		}
	}
	if is.image() && plan.text("on_image_change") == onChangeReinstall {
		c.Reinstall = true
	}
	if is.userData() && plan.text("on_user_data_change") == onChangeReinstall {
		c.Reinstall, c.ReinstallUserData = true, true
	}
	return c
}
