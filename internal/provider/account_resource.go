// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var (
	_ resource.ResourceWithConfigure      = (*accountResource)(nil)
	_ resource.ResourceWithIdentity       = (*accountResource)(nil)
	_ resource.ResourceWithImportState    = (*accountResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*accountResource)(nil)
	_ resource.ResourceWithValidateConfig = (*accountResource)(nil)
)

// recordTimeout bounds what a resource does that exists in no cloud: one cheap
// call or one list, waiting for rate limits included.
const recordTimeout = 3 * time.Minute

// accountResource is bettercompute_provider_account.
type accountResource struct {
	registry *backends.Registry
	data     *providerData
}

func newAccountResource(registry *backends.Registry) resource.Resource {
	return &accountResource{registry: registry}
}

// Metadata names the resource; its identity, the uri, changes with its configuration.
func (r *accountResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_provider_account"
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (r *accountResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = configured(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig reports everything that is wrong with what is known.
func (r *accountResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	wish, issues := readAccount(r.registry, valuesOf(refuseNulls(&resp.Diagnostics, req.Config.Raw)), "", false)
	reportIssues(&resp.Diagnostics, append(issues, wish.check()...))
}

// Create proves the credentials and records the account.
func (r *accountResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.apply(ctx, req.Plan, tftypes.NewValue(req.Plan.Raw.Type(), nil), &resp.State, resp.Identity, &resp.Diagnostics)
}

// Update records the account and, when its configuration changed, proves the
// credentials first.
func (r *accountResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.apply(ctx, req.Plan, req.State.Raw, &resp.State, resp.Identity, &resp.Diagnostics)
}

// apply turns a plan into state.
func (r *accountResource) apply(ctx context.Context, from tfsdk.Plan, priorRaw tftypes.Value,
	state *tfsdk.State, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	plan, prior, err := newRecords(from.Raw, priorRaw)
	if err != nil {
		report(diags, err)
		return
	}
	wish, issues := readAccount(r.registry, valuesOf(from.Raw), r.data.TenantID, r.data.TenantKnown)
	if issues = append(issues, wish.check()...); len(issues) > 0 {
		reportIssues(diags, issues)
		return
	}
	if err := r.plan(plan, prior, wish, priorRaw.IsNull()); err != nil {
		report(diags, err)
		return
	}
	ref, account, err := r.data.openAccount(plan.text("uri"))
	if err != nil {
		report(diags, err)
		return
	}
	if !plan.equal("uri", prior) {
		if err := r.prove(ctx, ref, account); err != nil {
			report(diags, err)
			return
		}
		if err := r.recognise(ctx, prior, account); err != nil {
			report(diags, err)
			return
		}
	}
	state.Raw = plan.raw()
	setIdentity(ctx, identity, plan.text("uri"), diags)
}

// prove shows that the credentials work. What can't be resolved is known before
// any call.
func (r *accountResource) prove(ctx context.Context, ref reference.Reference, account *reconcile.Account) error {
	if err := r.data.resolve(ctx, ref); err != nil {
		return err
	}
	return account.Backend.Prove(ctx)
}

// oldConfigurationTimeout bounds the look through the configuration that an account
// had: its endpoint may be gone, which is no reason to wait long.
const oldConfigurationTimeout = 30 * time.Second

// recognise fails when a new configuration shows none of the objects of a kind that
// the old one shows: it is of another project. Recorded, it would put them out of
// reach, and every apply would fail at them. The first kind that the account has any
// of decides. Where the old configuration can't be read any more, as after its token
// was revoked, nothing can be compared.
func (r *accountResource) recognise(ctx context.Context, prior record, account *reconcile.Account) error {
	if !prior.has("uri") {
		return nil
	}
	ref, before, err := r.data.openAccount(prior.text("uri"))
	if err != nil {
		return nil // a uri that this version can't read tells nothing
	}
	oldCtx, cancel := context.WithTimeout(ctx, oldConfigurationTimeout)
	defer cancel()
	for _, list := range objectKinds {
		old, err := list(oldCtx, before, objectsOf(ref))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return nil // it may be dead: that is why it changes
		}
		if len(old) == 0 {
			continue
		}
		now, err := list(ctx, account, objectsOf(ref))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(old, func(o backends.About) bool {
			return slices.ContainsFunc(now, func(n backends.About) bool { return n.ID == o.ID })
		}) {
			return nil
		}
		return anotherProject(old)
	}
	return nil
}

// Read keeps the state: an account is in no cloud.
func (r *accountResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	identifyRead(ctx, req, resp)
}

func identifyRead(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	setIdentity(ctx, resp.Identity, state.text("uri"), &resp.Diagnostics)
}

// Delete forgets the account, unless objects in the cloud carry its id.
func (r *accountResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	forget(ctx, r.data, reference.KindAccount, req.State.Raw, &resp.Diagnostics)
}

// forget lets an account or pool go that no object in the cloud carries. With
// credentials that don't work nobody can tell: then it goes with a warning, since
// an account that is gone at the vendor must not stay in the state for ever.
func forget(ctx context.Context, data *providerData, kind reference.Kind, raw tftypes.Value, diags *diag.Diagnostics) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	state, err := newRecord(raw)
	if err != nil {
		report(diags, err)
		return
	}
	ref, account, err := data.open(kind, state.text("uri"))
	if err != nil {
		report(diags, err)
		return
	}
	objects, err := objectsIn(ctx, account, objectsOf(ref))
	switch {
	case unreadable(err):
		warn(diags, err, "The "+string(kind)+" was removed from the state without a look at the cloud.",
			"Its credentials don't work, so whether objects in the cloud still carry its id could not be found out. If some do, they go on running, and costing.")
	case err != nil:
		report(diags, err)
	case len(objects) > 0:
		report(diags, inUse(ref, objects))
	default:
		account.Tidy(ctx, marksOf(ref))
	}
}

// marksOf is what objects of an account or pool carry of it.
func marksOf(ref reference.Reference) backends.Marks {
	if ref.Kind == reference.KindPool {
		return backends.Marks{Pool: ref.PoolID()}
	}
	return backends.Marks{Account: ref.AccountID()}
}

// ImportState fills the attributes from the uri. Nothing is looked up.
func (r *accountResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	uri := importedURI(ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, account, err := r.data.openAccount(uri)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	state, err := newRecord(resp.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	d := ref.Definition()
	config, err := protocolValue(state.typ.AttributeTypes[d.Attribute()], ref.Config)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	state.values[d.Attribute()] = config
	state.setText("name", ref.Account)
	state.setText("tenant_id", ref.Tenant)
	state.setText("kind", d.ID)
	state.setText("id", ref.ID())
	state.setText("uri", ref.String())
	setCapabilities(state, account.Backend)
	state.values["version"] = tftypes.NewValue(tftypes.Number, int64(1))
	resp.State.Raw = state.raw()
	setIdentity(ctx, resp.Identity, ref.String(), &resp.Diagnostics)
}
