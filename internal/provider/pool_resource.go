// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var (
	_ resource.ResourceWithConfigure      = (*poolResource)(nil)
	_ resource.ResourceWithIdentity       = (*poolResource)(nil)
	_ resource.ResourceWithImportState    = (*poolResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*poolResource)(nil)
	_ resource.ResourceWithValidateConfig = (*poolResource)(nil)
)

// poolResource is bettercompute_pool.
type poolResource struct {
	registry *backends.Registry
	data     *providerData
}

func newPoolResource(registry *backends.Registry) resource.Resource {
	return &poolResource{registry: registry}
}

// Metadata names the resource; its identity, the uri, changes with its account.
func (r *poolResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_pool"
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (r *poolResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = configured(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig reports everything that is wrong with what is known.
func (r *poolResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	wish, issues := readPool(valuesOf(refuseNulls(&resp.Diagnostics, req.Config.Raw)))
	if wish.accountKnown {
		if _, err := reference.ParseKind(r.registry, reference.KindAccount, wish.account); err != nil {
			report(&resp.Diagnostics, inAttribute("provider_account", wish.account, err))
		}
	}
	reportIssues(&resp.Diagnostics, issues)
}

// Create records the pool, its flavors checked.
func (r *poolResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.apply(ctx, req.Plan, tftypes.NewValue(req.Plan.Raw.Type(), nil), &resp.State, resp.Identity, &resp.Diagnostics)
}

// Update records the pool, changed flavors checked.
func (r *poolResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.apply(ctx, req.Plan, req.State.Raw, &resp.State, resp.Identity, &resp.Diagnostics)
}

// apply turns a plan into state.
func (r *poolResource) apply(ctx context.Context, from tfsdk.Plan, priorRaw tftypes.Value,
	state *tfsdk.State, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	plan, prior, err := newRecords(from.Raw, priorRaw)
	if err != nil {
		report(diags, err)
		return
	}
	ref, account, err := r.plan(plan, prior, priorRaw.IsNull())
	if err != nil {
		report(diags, err)
		return
	}
	r.data.meetPool(ref, true)
	issues, err := checkCatalog(ctx, r.data, ref, account, plan, prior)
	if err != nil || len(issues) > 0 {
		report(diags, err)
		reportIssues(diags, issues)
		return
	}
	state.Raw = plan.raw()
	setIdentity(ctx, identity, plan.text("uri"), diags)
}

// Read keeps the state: a pool is in no cloud.
func (r *poolResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	identifyRead(ctx, req, resp)
}

// Delete forgets the pool, unless machines in the cloud carry its id.
func (r *poolResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	forget(ctx, r.data, reference.KindPool, req.State.Raw, &resp.Diagnostics)
}

// ImportState fills the attributes from the uri. Nothing is looked up; flavors and
// site_id are in no uri, so the next apply records them.
func (r *poolResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	uri := importedURI(ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, err := reference.ParseKind(r.registry, reference.KindPool, uri)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	state, err := newRecord(resp.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	state.setText("name", ref.Pool)
	state.setText("provider_account", ref.AccountRef().String())
	state.setTruth("adopt", ref.Adopt)
	limits, err := importedLimits(state.typ.AttributeTypes["limits"], ref.Limits)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	state.values["limits"] = limits
	state.setText("class", "provider")
	state.setText("agent", "none")
	state.setText("id", ref.ID())
	state.setText("uri", ref.String())
	resp.State.Raw = state.raw()
	setIdentity(ctx, resp.Identity, ref.String(), &resp.Diagnostics)
}
