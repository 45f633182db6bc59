// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Schema declares bettercompute_pool.
func (r *poolResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A group of machines, volumes and snapshots in one account, with names for sizes and limits. Making one makes nothing in the cloud: " +
			"the pool's id is in the labels or tags of what is in it.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The pool's name in its account: 1 to 63 lower-case letters, digits, dots, underscores and hyphens. " +
					"A change is a new pool: refused while objects in the cloud carry the old one's id.",
			},
			"provider_account": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The account's `uri` (not its `id`), as in `bettercompute_provider_account.main.uri`. " +
					"Another account is a new pool, as with `name`; another configuration of the same account is not.",
			},
			"site_id": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Where the pool stands, in your own words. Only recorded.",
			},
			"flavors": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Your names for offers of the cloud: `{ small = \"cx23\" }`. Each is checked against the catalog when it is " +
					"added or changed. Instances use them as `bettercompute_pool.web.flavors.small`.",
			},
			"limits": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "What the pool may hold; unset is unlimited. The pool's machines and volumes in the cloud count, those of other states too. " +
					"A creation or growth over a limit is `QUOTA_EXCEEDED` before anything is made.",
				Attributes: map[string]schema.Attribute{
					"instances": schema.NumberAttribute{Optional: true, MarkdownDescription: "The number of machines. `0` lets none be made."},
					"disk_gib":  schema.NumberAttribute{Optional: true, MarkdownDescription: "The size of all volumes together in GiB, block and shared, growth included. Snapshots don't count. `0` lets none be made."},
					"price_per_hour": schema.NumberAttribute{
						Optional: true,
						MarkdownDescription: "The gross price of all machines together per hour, in the cloud's currency, at today's prices. " +
							"`UNSUPPORTED` where the cloud has no prices.",
					},
				},
			},
			"adopt": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Let creations take over machines, volumes and snapshots that exist already, carry the same id and were made from the same inputs: " +
					"the way back when a state was lost. Any other state then loses its claim to them. Default: `false`.",
			},
			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The Better Compute id, derived from the account's id and the name and known in the first plan.",
			},
			"uri": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "How to reach the pool: what instances and volumes refer to, and the import id.",
			},
			"class": schema.StringAttribute{Computed: true, MarkdownDescription: "Always `provider`: the pool's objects are a cloud's."},
			"agent": schema.StringAttribute{Computed: true, MarkdownDescription: "Always `none`: no agent runs on the pool's machines."},
		},
	}
}

// IdentitySchema declares what names a pool for import blocks.
func (r *poolResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = uriIdentity("The pool's uri, such as hetzner-cloud://root/main/web?token=env://HCLOUD_TOKEN.")
}
