// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
	"github.com/better-compute/terraform-provider-bettercompute/internal/secrets"
)

// ValidateConfig implements [provider.ProviderWithValidateConfig].
func (p *computeProvider) ValidateConfig(_ context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	config := valuesOf(req.Config.Raw)
	_, _, issues := readConfig(config)
	reportIssues(&resp.Diagnostics, issues)
}

// Configure implements [provider.Provider]. It makes no call. Values that aren't
// known yet are no error: what depends on them then stays unchecked in the plan.
func (p *computeProvider) Configure(_ context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	config := valuesOf(req.Config.Raw)
	secretConfig, tenantKnown, issues := readConfig(config)
	reportIssues(&resp.Diagnostics, issues)
	if resp.Diagnostics.HasError() {
		return
	}
	resolver, issues := secrets.New(secretConfig)
	reportIssues(&resp.Diagnostics, issues)
	if resp.Diagnostics.HasError() {
		return
	}
	data := &providerData{
		Registry: p.options.Registry,
		Secrets:  resolver,
		Accounts: reconcile.NewAccounts(p.options.Registry, backends.Environment{
			Secrets:   resolver,
			Transport: p.options.Transport,
			UserAgent: userAgent(p.options.Version, req.TerraformVersion),
			Log:       slog.New(logHandler{}),
		}),
		TenantID:    secretConfig.TenantID,
		TenantKnown: tenantKnown,
	}
	resp.ResourceData = data
	resp.DataSourceData = data
	resp.ListResourceData = data
	resp.ActionData = data
}

func userAgent(version, coreVersion string) string {
	agent := "terraform-provider-bettercompute/" + cmp.Or(version, "dev")
	if coreVersion != "" {
		agent += " (core " + coreVersion + ")"
	}
	return agent
}

// readConfig is the provider block. A block with unknown parts gives a resolver
// that fails where it would need them.
func readConfig(config backends.Values) (out secrets.Config, tenantKnown bool, issues []*backends.Error) {
	out = secrets.Config{TenantID: secrets.DefaultTenant, Values: map[string]string{}}
	tenantKnown = true
	switch tenant := config["tenant_id"]; {
	case backends.IsUnknown(tenant):
		// A key without a tenant can't be placed, so no key can be trusted.
		tenantKnown, out.UnknownValues = false, true
	case tenant != nil:
		out.TenantID = config.String("tenant_id")
		if problem := reference.TenantProblem(out.TenantID); problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("tenant_id"))
		}
	}
	switch values := config["secrets"].(type) {
	case backends.Values:
		for key, value := range values {
			if text, ok := value.(string); ok {
				out.Values[key] = text
			} else {
				out.UnknownKeys = append(out.UnknownKeys, key)
			}
		}
	case nil:
	default:
		out.UnknownValues = true
	}
	switch vault := config["vault"].(type) {
	case backends.Values:
		out.Vault = secrets.VaultConfig{
			Address: vault.String("address"), Namespace: vault.String("namespace"), Token: vault.String("token"),
			Unknown: !vault.AllKnown(),
		}
	case nil:
	default:
		out.Vault.Unknown = true
	}
	return out, tenantKnown, issues
}

// configured takes the provider's data out of a Configure request; nil before the
// provider is configured, as when a configuration is only validated.
func configured(data any, diags *diag.Diagnostics) *providerData {
	if data == nil {
		return nil
	}
	d, ok := data.(*providerData)
	if !ok {
		diags.AddError("PROVIDER_ERROR: This is a bug in the provider.", "The provider's data has another type than expected.")
	}
	return d
}
