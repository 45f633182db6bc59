// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Schema declares bettercompute_provider_account, with one attribute per cloud.
func (r *accountResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The account's name in its tenant: 1 to 63 lower-case letters, digits, dots, underscores and hyphens. " +
				"A change is a new account: refused while objects in the cloud carry the old one's id.",
		},
		"tenant_id": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The tenant: 1 to 128 letters, digits and `.` `_` `:` `-`. Unset: the provider block's `tenant_id`, else `root`. " +
				"A change is a new account, as with `name`.",
		},
		"id": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "The Better Compute id, derived from tenant, cloud and name and known in the first plan. " +
				"Every object of the account carries it in the cloud.",
		},
		"uri": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "How to reach the account: what pools and data sources refer to, and the import id. It holds the configuration that " +
				"differs from the defaults, with secret references and never a secret.",
		},
		"kind": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The cloud's id, such as `hetzner-cloud`.",
		},
		"capabilities": schema.ListAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "What the cloud can do beyond making and deleting machines, sorted: `deletionProtection`, `list`, `power`, `reinstall`, `reinstallUserData`, `selectiveDestroy`, `sharedSnapshots`, `sharedVolumes`, `snapshots`, `volumes`.",
		},
		"version": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "1 at first, one more with each change of the configuration.",
		},
	}
	for _, d := range r.registry.All() {
		attributes[d.Attribute()] = schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: d.Description + " Exactly one cloud is configured. It is an attribute, not a block: write `" + d.Attribute() + " = { … }`, " +
				"on several lines, and check the names in it: OpenTofu and Terraform drop a misspelt one without a word.",
			Attributes: resourceAttributes(d.Manifest.Account),
		}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "An account at a cloud: where machines are made, and the reference to the credentials. Making one makes nothing in the cloud; " +
			"creation and changes prove the credentials with one cheap call. The credentials themselves are in no state, plan or log.",
		Attributes: attributes,
	}
}

// IdentitySchema declares what names an account for import blocks.
func (r *accountResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = uriIdentity("The account's uri, such as hetzner-cloud://root/main?token=env://HCLOUD_TOKEN.")
}
