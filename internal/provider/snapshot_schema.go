// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Schema declares bettercompute_snapshot.
func (r *snapshotResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"volume": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The volume's `uri` (not its `id`), as in `bettercompute_provider_volume.data.uri`. Another volume replaces the snapshot; " +
				"a volume that is made again under its name doesn't, since its snapshots outlive it.",
		},
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The snapshot's name, unique among those of the volume: 1 to 42 lower-case letters, digits and hyphens, " +
				"a letter first and no hyphen last. A change replaces the snapshot.",
			Validators: []validator.String{problemRule{"Choose a name such as before-upgrade.", "a snapshot's name", reference.SnapshotNameProblem}},
		},
		"timeouts": timeoutsAttribute(ctx),
	}
	maps.Copy(attributes, snapshotOutputs())
	resp.Schema = schema.Schema{
		MarkdownDescription: "A snapshot of a volume, as it is when the snapshot is made. A volume has at most 25. " +
			"A snapshot outlives its volume; a new volume is made from it by `from_snapshot`.",
		Attributes: attributes,
	}
}

func snapshotOutputs() map[string]schema.Attribute {
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"id":          computed("The Better Compute id, derived from the volume and the name and known in the first plan. It is the idempotency key in the cloud."),
		"uri":         computed("How to reach the snapshot: what `from_snapshot` of a volume takes, and the import id. Known in the first plan."),
		"claim":       computed("A random token that says which state owns the snapshot; it is also in the snapshot's labels, tags or name in the cloud."),
		"snapshot_id": computed("The snapshot's id in the cloud."),
		"state": computed("`pending`, `ready`, `deleting`, `error` or `unknown`. `pending` also means that creation was interrupted: the next apply finishes it. " +
			"`error` also means that the snapshot was deleted outside: see `message`."),
		"message":    computed("Why the state is `error`, `unknown` or `pending`, if there is something to say."),
		"created_at": computed("When the cloud made it, RFC 3339 in UTC."),
		"size_gib": schema.Int64Attribute{
			Computed: true, MarkdownDescription: "The size in GiB that a volume made from it has at least.",
		},
	}
}

// IdentitySchema declares what names a snapshot for import blocks: its uri.
func (r *snapshotResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = uriIdentity("The snapshot's uri, such as digitalocean://root/main/web/volumes/data/snapshots/first?region=fra1&token=env://DIGITALOCEAN_TOKEN.")
}
