// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var (
	_ resource.ResourceWithConfigure      = (*snapshotResource)(nil)
	_ resource.ResourceWithIdentity       = (*snapshotResource)(nil)
	_ resource.ResourceWithImportState    = (*snapshotResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*snapshotResource)(nil)
	_ resource.ResourceWithValidateConfig = (*snapshotResource)(nil)
)

// snapshotResource is bettercompute_snapshot.
type snapshotResource struct {
	registry *backends.Registry
	data     *providerData
}

func newSnapshotResource(registry *backends.Registry) resource.Resource {
	return &snapshotResource{registry: registry}
}

// Metadata names the resource; its identity, the uri, changes with its account.
func (r *snapshotResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_snapshot"
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (r *snapshotResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = configured(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig checks what the configuration alone can tell; the name's rule is in
// the schema.
func (r *snapshotResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	config, err := newRecord(refuseNulls(&resp.Diagnostics, req.Config.Raw))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if config.has("volume") {
		if _, err := reference.ParseKind(r.registry, reference.KindVolume, config.text("volume")); err != nil {
			report(&resp.Diagnostics, inAttribute("volume", config.text("volume"), err))
		}
	}
}

// snapshotSpec is the snapshot of a volume that a name asks for. volumeID is the
// volume's id in the cloud, region its region; either may be unknown.
func snapshotSpec(volume reference.Reference, name, volumeID, region string) backends.SnapshotSpec {
	ref := volume.SnapshotRef(name)
	return backends.SnapshotSpec{
		Name: name, Volume: volumeID, Region: region,
		Marks: backends.Marks{
			Managed: true, Key: ref.ID(), Account: ref.AccountID(), Pool: ref.PoolID(), Volume: volume.Volume,
		},
	}
}
