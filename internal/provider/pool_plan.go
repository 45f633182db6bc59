// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan makes id and uri known where name and account are, and holds new and
// changed flavors against the catalog.
func (r *poolResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.data == nil || req.Plan.Raw.IsNull() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	plan, prior, err := newRecords(req.Plan.Raw, req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	ref, account, err := r.plan(plan, prior, req.State.Raw.IsNull())
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	resp.Plan.Raw = plan.raw()
	if account == nil {
		return
	}
	if plan.isKnown("uri") {
		r.data.meetPool(ref, true)
	}
	if !req.State.Raw.IsNull() && plan.has("id") && !plan.equal("id", prior) {
		var changed []string
		for _, name := range []string{"name", "provider_account"} {
			if !plan.equal(name, prior) {
				changed = append(changed, name)
			}
		}
		planAnother(ctx, r.data, reference.KindPool, prior.text("uri"), changed, resp)
		if resp.Diagnostics.HasError() {
			return
		}
	}
	issues, err := checkCatalog(ctx, r.data, ref, account, plan, prior)
	switch {
	case unreadable(err):
		r.data.warnUnchecked(&resp.Diagnostics, account.URI, err)
	case err != nil:
		report(&resp.Diagnostics, err)
	default:
		reportIssues(&resp.Diagnostics, issues)
	}
}

// plan fills in the computed attributes as far as they are known. The account is
// nil while the plan doesn't know it. prior is all null when the pool is created.
func (r *poolResource) plan(plan, prior record, creates bool) (reference.Reference, *reconcile.Account, error) {
	wish, issues := readPool(valuesOf(plan.raw()))
	if len(issues) > 0 {
		return reference.Reference{}, nil, joinIssues(issues)
	}
	plan.setText("class", "provider")
	plan.setText("agent", "none")
	plan.setUnknown("uri")
	if creates {
		plan.setUnknown("id")
	} else { // unknown never means replacement
		plan.values["id"] = prior.values["id"]
	}
	if !wish.accountKnown {
		return reference.Reference{}, nil, nil
	}
	parent, account, err := r.data.openAccount(wish.account)
	if err != nil {
		return reference.Reference{}, nil, inAttribute("provider_account", wish.account, err)
	}
	ref := parent.NewPool(wish.name, wish.adopt, wish.limits)
	if wish.nameKnown {
		plan.setText("id", ref.ID())
		if wish.keysKnown {
			plan.setText("uri", ref.String())
		}
	}
	return ref, account, nil
}

// checkCatalog holds what is new or changed in a plan against the catalog: the
// flavors' offers, and whether the cloud has prices to limit. It makes no call when
// nothing is.
func checkCatalog(ctx context.Context, data *providerData, ref reference.Reference, account *reconcile.Account,
	plan, prior record) ([]*backends.Error, error) {
	flavors, before := plan.textMap("flavors"), prior.textMap("flavors")
	maps.DeleteFunc(flavors, func(name, offer string) bool { return before[name] == offer })
	limitsPrice := priceLimit(plan) != nil && priceLimit(prior) == nil
	if len(flavors) == 0 && !limitsPrice {
		return nil, nil
	}
	if err := data.resolve(ctx, ref); err != nil {
		return nil, err
	}
	var issues []*backends.Error
	for _, name := range slices.Sorted(maps.Keys(flavors)) {
		_, problems, err := account.Backend.CheckMachine(ctx, backends.MachineSpec{Offer: flavors[name]})
		if err != nil {
			return nil, err
		}
		for _, problem := range problems {
			issues = append(issues, problem.At("flavors", name))
		}
	}
	if limitsPrice {
		offers, err := account.Backend.Offers(ctx, backends.OfferQuery{})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(offers, func(o backends.Offer) bool { return o.PricePerHour != nil }) {
			e := backends.Errorf(backends.Unsupported, "%s has no prices, so there is nothing to limit by price.", account.Definition.Title)
			issues = append(issues, e.At("limits", "price_per_hour").WithRemedy("Remove price_per_hour; limits.instances works everywhere."))
		}
	}
	return issues, nil
}

func priceLimit(r record) any {
	limits, _ := treeOf(r.values["limits"]).(backends.Values)
	return limits["price_per_hour"]
}
