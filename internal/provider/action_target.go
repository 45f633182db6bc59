// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// actionTarget is what an action acts on: an object that its configuration names by
// uri.
type actionTarget struct {
	clouds    *backends.Registry
	data      *providerData
	attribute string // that names it
	kind      reference.Kind
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (t *actionTarget) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	t.data = configured(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig reports a uri that is none, where it is known.
func (t *actionTarget) ValidateConfig(_ context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	config, err := newRecord(refuseNulls(&resp.Diagnostics, req.Config.Raw))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if !config.has(t.attribute) {
		return
	}
	if _, err := reference.ParseKind(t.clouds, t.kind, config.text(t.attribute)); err != nil {
		report(&resp.Diagnostics, inAttribute(t.attribute, config.text(t.attribute), err))
	}
}

// ModifyPlan refuses what the cloud can't do, before anything is applied. It makes no
// call.
func (t *actionTarget) ModifyPlan(_ context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	config, err := newRecord(req.Config.Raw)
	if err != nil || t.data == nil || !config.has(t.attribute) {
		report(&resp.Diagnostics, err)
		return
	}
	_, account, err := t.open(req.Config.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	report(&resp.Diagnostics, t.able(account))
}

// able is why the account's cloud can't do it; nil where it can.
func (t *actionTarget) able(account *reconcile.Account) error {
	what := map[reference.Kind]struct{ capability, lack string }{
		reference.KindInstance: {"power", "%s can't change the power of a machine."},
		reference.KindVolume:   {"snapshots", "%s has no snapshots of volumes."},
	}[t.kind]
	has := backends.Capabilities(account.Backend)
	for _, c := range has {
		if c == what.capability || t.kind == reference.KindVolume && c == "sharedSnapshots" {
			return nil
		}
	}
	return backends.Errorf(backends.Unsupported, what.lack, account.Definition.Title)
}

// open opens the account of the object.
func (t *actionTarget) open(raw tftypes.Value) (reference.Reference, *reconcile.Account, error) {
	config, err := newRecord(raw)
	if err != nil {
		return reference.Reference{}, nil, err
	}
	uri := config.text(t.attribute)
	ref, account, err := t.data.open(t.kind, uri)
	if err != nil {
		return ref, nil, inAttribute(t.attribute, uri, err)
	}
	return ref, account, nil
}

// invoking bounds an action by its timeout, as [within] does for a resource's
// operation.
func invoking(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	var t timeouts.Value
	problems := config.GetAttribute(ctx, path.Root("timeouts"), &t)
	limit, wrong := t.Invoke(ctx, changeTimeout)
	if problems.Append(wrong...); problems.HasError() || limit <= 0 {
		report(diags, backends.Errorf(backends.InvalidInput, notATimeout).At("timeouts").WithRemedy(timeoutRemedy))
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	ctx, flush := collectWarnings(ctx, diags)
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func() { cancel(); flush() }
}
