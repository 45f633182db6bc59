// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// uriIdentity is the identity of every resource: its uri. It changes with the
// account's configuration, so a resource that has it declares a mutable identity.
func uriIdentity(description string) identityschema.Schema {
	return identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"uri": identityschema.StringAttribute{RequiredForImport: true, Description: description},
		},
	}
}

// setIdentity records a uri as identity, for a core that knows identities.
func setIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, uri string, diags *diag.Diagnostics) {
	if identity != nil && uri != "" {
		diags.Append(identity.SetAttribute(ctx, path.Root("uri"), uri)...)
	}
}

// importedURI is the uri that an import names, as its id or its identity.
func importedURI(ctx context.Context, req resource.ImportStateRequest, diags *diag.Diagnostics) string {
	if req.ID != "" || req.Identity == nil {
		return req.ID
	}
	var uri types.String
	diags.Append(req.Identity.GetAttribute(ctx, path.Root("uri"), &uri)...)
	return uri.ValueString()
}
