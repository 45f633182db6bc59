// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan fills in what is known, checks what is created or changes, and
// decides between in place and replacement. It runs again during apply, so it is
// deterministic and plans no value of the catalog.
func (r *instanceResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if req.Plan.Raw.IsNull() {
		if moved(state) {
			report(&resp.Diagnostics, notTakenOver(state, reference.KindInstance))
			return
		}
		if seen := observed(ctx, req.Private); mustStay(state, seen) {
			report(&resp.Diagnostics, protectedError(state))
			return
		}
		r.warnDestroyed(ctx, &resp.Diagnostics, state)
		return
	}
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	plan, config, err := newRecords(req.Plan.Raw, req.Config.Raw)
	if err != nil || r.data == nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if refuseNulls(&resp.Diagnostics, req.Config.Raw); resp.Diagnostics.HasError() {
		return // an element that was known too late to be validated
	}
	p := &instancePlan{
		instanceDifference: differenceOf(ctx, plan.clone(), state, config, req.Private),
		resource:           r, diags: &resp.Diagnostics,
	}
	if plan.isKnown("pool") {
		ref, account, err := r.data.openPool(plan.text("pool"))
		if err != nil {
			report(&resp.Diagnostics, inAttribute("pool", plan.text("pool"), err))
			return
		}
		p.pool, p.account = &ref, account
	}
	switch {
	case req.State.Raw.IsNull():
		p.create(ctx)
	case moved(state):
		if p.takeOver(ctx, readMovedFrom(ctx, req.Private), resp.Private); resp.Diagnostics.HasError() {
			return
		}
		p.update(ctx)
	default:
		p.update(ctx)
	}
	resp.Plan.Raw = p.plan.raw()
	for _, name := range p.replace {
		resp.RequiresReplace.Append(path.Root(name))
	}
}

// mustStay tells whether a machine must not go: its state says so, or the cloud
// does, whoever has protected it.
func mustStay(state record, seen privateObserved) bool {
	return state.truth("deletion_protection") || seen.Protected
}

func protectedError(state record) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The instance %q has deletion protection, so it can't be destroyed, replaced or reinstalled.", state.text("name"))
	e.Reason = backends.ReasonProtected
	if !state.truth("deletion_protection") {
		e.Message += " It was switched on by another state, or by hand."
	}
	return e.WithRemedy("Set deletion_protection = false and apply that first.")
}

// instancePlan is one run of ModifyPlan.
type instancePlan struct {
	instanceDifference
	resource *instanceResource
	diags    *diag.Diagnostics
	pool     *reference.Reference // nil while it isn't known
	account  *reconcile.Account
	replace  []string // the attributes that force a replacement
	// reinstall is the attribute that asks for a reinstallation in place; "" for none.
	reinstall string
	// editor changes the machine in place; nil where the cloud can't.
	editor backends.Editor
	// effects are what becomes of changed inputs; resizes and renames are of the offer
	// and the name.
	effects          []backends.Effect
	resizes, renames bool
}

func (p *instancePlan) create(ctx context.Context) {
	for name := range instanceOutputs() {
		p.plan.setUnknown(name)
	}
	if p.config.isNull("region") {
		p.plan.setUnknown("region")
		if p.account != nil {
			p.plan.setText("region", p.account.Region)
		}
	}
	if p.pool == nil {
		return
	}
	if p.plan.has("name") {
		p.plan.setText("id", p.pool.InstanceRef(p.plan.text("name"), "").ID())
	}
	p.checkOptions()
	p.checkProtection()
	spec := p.spec()
	if planned := p.account.PlannedAddresses(spec); len(planned) > 0 {
		instanceAddresses(p.plan, planned)
	}
	offers, ok := p.checkOffers(ctx, spec)
	if !ok {
		return
	}
	wrong, refusals := splitIssues(p.account.Backend, spec, offers.issues)
	reportIssues(p.diags, wrong)
	existing := p.existing(ctx, spec)
	if len(refusals) > 0 && p.willKeep(existing) {
		for _, e := range refusals {
			warn(p.diags, e, "No such machine could be made now", "The machine exists, so the apply finishes it or takes it over.")
		}
	} else {
		reportIssues(p.diags, refusals)
	}
	if p.diags.HasError() || !p.plan.has("name") {
		return
	}
	p.warnExisting(existing)
	if p.replacing() {
		if p.seen.Protected {
			report(p.diags, protectedError(p.plan)) // -replace, whose first plan changes nothing
			return
		}
		warnGoingWith(ctx, p.diags, p.account, p.plan.text("name"), p.seen.Machine)
		if err := p.account.Fits(ctx, *p.pool, spec.Marks.Key, offers.dearest); err != nil && !unreadable(err) {
			report(p.diags, err)
			return
		}
	}
	switch err := p.account.Plan(ctx, *p.pool, spec.Marks.Key, offers.dearest); {
	case backends.HasCode(err, backends.QuotaExceeded):
		warn(p.diags, err, "The apply may be refused", "The limit is checked again, and enforced, when the machine is created; "+
			"machines that this plan removes first make room.")
	case unreadable(err):
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
	default:
		report(p.diags, err)
	}
}

// existing is the machine that carries the planned instance's key already. What
// can't be found out counts as none.
func (p *instancePlan) existing(ctx context.Context, spec backends.MachineSpec) *backends.Machine {
	if !p.plan.has("name") {
		return nil
	}
	m, err := p.account.Find(ctx, spec.Marks.Pool, spec.Marks.Key)
	if err != nil {
		return nil
	}
	return m
}

// replacing tells whether this is the second call of a replacement: then the machine
// is known, and is destroyed before the new one is made. What would be refused then
// must be refused now.
func (p *instancePlan) replacing() bool { return p.seen.Digest != "" }

// willKeep tells whether an apply finishes or takes over the machine that exists,
// instead of making one.
func (p *instancePlan) willKeep(m *backends.Machine) bool {
	return m != nil && !p.replacing() && (halfMade(*m) || p.pool.Adopt)
}

// warnExisting says what an apply would do about a machine that exists. A plan that
// replaces it meets it here too, and is told apart by what it knows of it.
func (p *instancePlan) warnExisting(m *backends.Machine) {
	switch {
	case m == nil || halfMade(*m) || p.replacing():
	case p.pool.Adopt:
		p.diags.AddWarning("The machine exists", fmt.Sprintf("The machine %q (%s) carries this instance's id. Since the pool has adopt = true, "+
			"the apply takes it over if it was made from the same inputs.", m.Name, m.ID))
	default:
		p.diags.AddWarning("CONFLICT: the machine exists", fmt.Sprintf("The machine %q (%s) carries this instance's id. Unless this plan destroys it first, "+
			"the apply will be refused, and show how to import it.", m.Name, m.ID))
	}
}

// spec is what is known of the wish.
func (p *instancePlan) spec() backends.MachineSpec {
	userData, _ := userDataOf(p.config)
	return instanceSpec(p.plan, *p.pool, p.account.Definition, userData)
}

// checkOffers is check for a machine to make, with all offers that it may be made with.
func (p *instancePlan) checkOffers(ctx context.Context, spec backends.MachineSpec) (offers offerChecks, ok bool) {
	offers, err := checkOffers(ctx, p.account.Backend, spec, p.plan.texts("offer_fallbacks"))
	if !p.checked(spec, err) {
		return offers, false
	}
	for _, w := range offers.resolved.Warnings {
		p.diags.AddWarning("Worth a look", w)
	}
	return offers, true
}

// checked tells whether the catalog could be read. Where it can't be for want of
// credentials the plan goes on with what needs no call.
func (p *instancePlan) checked(spec backends.MachineSpec, err error) bool {
	if unreadable(err) {
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		reportIssues(p.diags, p.account.Backend.CheckForm(spec))
		return false
	}
	report(p.diags, err)
	return err == nil
}

// check holds a wish against the catalog. Where the catalog can't be read for want
// of credentials the plan goes on with what needs no call. ok is false when the
// rest is to be left out.
func (p *instancePlan) check(ctx context.Context, spec backends.MachineSpec) (
	resolved backends.Resolved, issues []*backends.Error, ok bool) {
	resolved, issues, err := p.account.Backend.CheckMachine(ctx, spec)
	if !p.checked(spec, err) {
		return resolved, nil, false
	}
	for _, w := range resolved.Warnings {
		p.diags.AddWarning("Worth a look", w)
	}
	return resolved, issues, true
}

// checkProtection refuses deletion protection where the cloud has none: recorded, it
// would promise what nobody keeps.
func (p *instancePlan) checkProtection() {
	if p.plan.truth("deletion_protection") && !slices.Contains(backends.Capabilities(p.account.Backend), "deletionProtection") {
		e := backends.Errorf(backends.Unsupported, "%s has no deletion protection.", p.account.Definition.Title)
		report(p.diags, e.At("deletion_protection").WithRemedy("Leave deletion_protection out there. lifecycle { prevent_destroy = true } works with every cloud."))
	}
}

// checkOptions refuses another cloud's options.
func (p *instancePlan) checkOptions() {
	reportIssues(p.diags, foreignOptions(p.resource.registry, p.plan, p.account.Definition))
}

// foreignOptions are the options in a record that aren't of the pool's cloud.
func foreignOptions(registry *backends.Registry, r record, own *backends.Definition) []*backends.Error {
	var issues []*backends.Error
	for _, d := range registry.All() {
		if v, ok := r.values[d.Attribute()]; ok && d.ID != own.ID && v.IsKnown() && !v.IsNull() {
			e := backends.Errorf(backends.InvalidInput, "The pool is on %s, which takes no %s options.", own.Title, d.Attribute())
			issues = append(issues, e.At(d.Attribute()).
				WithRemedy("Remove the %s attribute, or choose a pool on %s.", d.Attribute(), d.Title))
		}
	}
	return issues
}
