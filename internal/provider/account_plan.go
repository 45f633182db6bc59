// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan makes known what can be known: id, uri, kind, capabilities, version
// and tenant. It makes no call, but for an account that would get another id:
// then the old one's objects are counted.
func (r *accountResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
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
	wish, issues := readAccount(r.registry, valuesOf(req.Config.Raw), r.data.TenantID, r.data.TenantKnown)
	if issues = append(issues, wish.check()...); len(issues) > 0 {
		reportIssues(&resp.Diagnostics, issues)
		return
	}
	creates := req.State.Raw.IsNull()
	if err := r.plan(plan, prior, wish, creates); err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	resp.Plan.Raw = plan.raw()
	if !creates && plan.has("id") && !plan.equal("id", prior) {
		r.planReplacement(ctx, plan, prior, resp)
		return
	}
	if plan.has("uri") && !plan.equal("uri", prior) {
		ref, err := reference.ParseKind(r.registry, reference.KindAccount, plan.text("uri"))
		if err != nil {
			report(&resp.Diagnostics, err)
			return
		}
		switch err := r.data.resolve(ctx, ref); {
		case unreadable(err):
			r.data.warnUnchecked(&resp.Diagnostics, ref.AccountKey(), err)
		default:
			report(&resp.Diagnostics, err)
		}
	}
}

// plan fills in the computed attributes, as far as the wish is known. prior is all
// null when the account is to be created.
func (r *accountResource) plan(plan, prior record, wish accountWish, creates bool) error {
	switch {
	case wish.tenantKnown:
		plan.setText("tenant_id", wish.tenant)
	case creates:
		plan.setUnknown("tenant_id")
	default: // unknown never means replacement
		plan.values["tenant_id"] = prior.values["tenant_id"]
	}
	if wish.cloud != nil {
		plan.setText("kind", wish.cloud.ID)
	} else {
		plan.setUnknown("kind")
	}
	for _, name := range []string{"uri", "capabilities", "version"} {
		plan.setUnknown(name)
	}
	if !wish.named() {
		if creates {
			plan.setUnknown("id")
		} else {
			plan.values["id"] = prior.values["id"]
		}
		return nil
	}
	ref, issues := wish.reference()
	if len(issues) > 0 {
		return issues[0] // checked before
	}
	plan.setText("id", ref.ID())
	if !ref.Known() {
		return nil
	}
	plan.setText("uri", ref.String())
	account, err := r.data.Accounts.Open(ref)
	if err != nil {
		return err
	}
	setCapabilities(plan, account.Backend)
	version, _ := treeOf(prior.values["version"]).(int64)
	if creates || !plan.equal("uri", prior) {
		version++
	}
	plan.values["version"] = tftypes.NewValue(tftypes.Number, version)
	return nil
}

func setCapabilities(r record, b backends.Backend) {
	names := backends.Capabilities(b)
	values := make([]tftypes.Value, len(names))
	for i, name := range names {
		values[i] = tftypes.NewValue(tftypes.String, name)
	}
	r.values["capabilities"] = tftypes.NewValue(r.typ.AttributeTypes["capabilities"], values)
}

// planReplacement plans another account in the place of this one, which only one
// without objects allows.
func (r *accountResource) planReplacement(ctx context.Context, plan, prior record, resp *resource.ModifyPlanResponse) {
	var changed []string
	for _, name := range namedBy(r.registry) {
		if !plan.equal(name, prior) {
			changed = append(changed, name)
		}
	}
	planAnother(ctx, r.data, reference.KindAccount, prior.text("uri"), changed, resp)
}

// planAnother plans a replacement of an account or pool by the attributes that
// give it another id, and refuses it while objects carry the old one.
func planAnother(ctx context.Context, data *providerData, kind reference.Kind, uri string, changed []string,
	resp *resource.ModifyPlanResponse) {
	for _, name := range changed {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root(name))
	}
	ref, account, err := data.open(kind, uri)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	objects, err := objectsIn(ctx, account, objectsOf(ref))
	switch {
	case unreadable(err):
		data.warnUnchecked(&resp.Diagnostics, account.URI, err)
	case err != nil:
		report(&resp.Diagnostics, err)
	case len(objects) > 0:
		report(&resp.Diagnostics, renamedInUse(ref, objects, changed))
	}
}

// objectsOf selects the objects of an account or pool, the latter by the same
// filter as everything else that reads a pool, so that they share a list.
func objectsOf(ref reference.Reference) backends.Filter {
	if ref.Kind == reference.KindPool {
		return backends.Filter{Pool: ref.PoolID()}
	}
	return backends.Filter{Account: ref.AccountID()}
}
