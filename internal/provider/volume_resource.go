// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var (
	_ resource.ResourceWithConfigure      = (*volumeResource)(nil)
	_ resource.ResourceWithIdentity       = (*volumeResource)(nil)
	_ resource.ResourceWithImportState    = (*volumeResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*volumeResource)(nil)
	_ resource.ResourceWithValidateConfig = (*volumeResource)(nil)
)

// volumeResource is bettercompute_provider_volume.
type volumeResource struct {
	registry *backends.Registry
	data     *providerData
}

func newVolumeResource(registry *backends.Registry) resource.Resource {
	return &volumeResource{registry: registry}
}

// Metadata names the resource; its identity, the uri, changes with its account.
func (r *volumeResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_provider_volume"
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (r *volumeResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = configured(req.ProviderData, &resp.Diagnostics)
}
