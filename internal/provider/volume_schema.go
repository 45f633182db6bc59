// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// The filesystems that a volume is formatted with (specification, providerVolumes.create).
const (
	filesystemExt4 = "ext4"
	filesystemXFS  = "xfs"
	filesystemNone = "none"
)

// volumeSizes are the sizes in GiB that a volume may have on any cloud, and
// descriptionLength is how many characters a description has at most (both:
// specification, providerVolumes.create).
var volumeSizes = bounds{1, 16384, true}

const descriptionLength = 256

// Schema declares bettercompute_provider_volume.
func (r *volumeResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := volumeInputs()
	maps.Copy(attributes, volumeOutputs())
	for _, d := range r.registry.All() {
		if len(d.Manifest.Volume) == 0 {
			continue
		}
		attributes[d.Attribute()] = schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "What only " + d.Title + " has. Allowed only where the pool's account is of this cloud. " +
				"Tags change in place; the rest is read at creation, and a later change is recorded, with a warning that it takes effect at the next creation.",
			Attributes: resourceAttributes(d.Manifest.Volume),
		}
	}
	attributes["timeouts"] = timeoutsAttribute(ctx)
	resp.Schema = schema.Schema{
		MarkdownDescription: "A block volume or a shared volume (a network file share) in a pool. It is attached by naming instances in `instances`, without a reboot. " +
			"A volume that was deleted in the cloud is never silently made again: its `state` becomes `error`.",
		Attributes: attributes,
	}
}

// IdentitySchema declares what names a volume for import blocks: its uri.
func (r *volumeResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = uriIdentity("The volume's uri.")
}

func volumeInputs() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The volume's name in the cloud: 1 to 42 lower-case letters, digits and hyphens, a letter first and no hyphen last. " +
				"A change is in place where the cloud can rename a volume (Hetzner Cloud): the volume keeps its data and attachments, and `id` and `uri` follow the name. " +
				"Elsewhere (DigitalOcean) it replaces the volume, and its data is lost; the plan says so.",
			Validators: []validator.String{problemRule{"Choose a name such as data.", "a volume name", reference.VolumeNameProblem}},
		},
		"description": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "A text of at most 256 characters, sent at creation to clouds that keep one. A later change is recorded, with a warning that it takes " +
				"effect at the next creation.",
			Validators: []validator.String{textRule(stringvalidator.UTF8LengthAtMost(descriptionLength), "Shorten it.")},
		},
		"pool": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The pool's `uri` (not its `id`), as in `bettercompute_pool.web.uri`. Another pool replaces the volume, and its data is lost.",
		},
		"region": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The cloud's region or location: that of the instances. Unset: the account's at creation; the recorded value then stays. " +
				"A change replaces the volume, and its data is lost.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Leave it out for the account's region.")},
		},
		"size_gib": schema.NumberAttribute{
			Required: true,
			MarkdownDescription: "The size in GiB: 1 to 16384, and what the cloud makes. It grows in place, attached or not; the guest grows the filesystem itself. " +
				"It can't shrink.",
			Validators: []validator.Number{sizeRule{numberRule{"Write a whole number of GiB, such as 50.", volumeSizes}}},
		},
		"kind": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(string(backends.BlockVolume)),
			MarkdownDescription: "`block` (default): a disk, on one instance at a time; or `shared`: a network file share that instances of one network mount at once. " +
				"A change replaces the volume, and its data is lost.",
			Validators: []validator.String{
				textRule(stringvalidator.OneOf(string(backends.BlockVolume), string(backends.SharedVolume)), "Write block or shared."),
			},
		},
		"network_id": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Of a shared volume, and required there: the cloud's own id of the network whose instances mount it (a DigitalOcean VPC). " +
				"A change replaces the volume, and its data is lost.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Leave it out for a block volume.")},
		},
		"filesystem": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Of a block volume: `ext4` or `xfs`, which the cloud makes on it, or `none` (what unset means too). It is recorded and never looked at again. " +
				"With `from_snapshot` the filesystem is the snapshot's, and this is only recorded, with a warning. Another one than was recorded replaces the volume, and its data is lost; where none was, as after an import, it is recorded in place, with a warning.",
			Validators: []validator.String{
				textRule(stringvalidator.OneOf(filesystemExt4, filesystemXFS, filesystemNone), "Write ext4, xfs or none."),
			},
		},
		"delete_with_instance": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Of a block volume: `true` deletes it together with the instance that it is attached to, whoever deletes that one with this provider. " +
				"Then a plan that moves it to another instance, takes it from its instance, or replaces the instance, replaces the volume too, and says so. " +
				"Default `false`: deleting the instance detaches it.",
		},
		"instances": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "The `uri`s of the instances that have the volume, as in `[bettercompute_instance.web.uri]`: of the same account and region, " +
				"of a shared volume also of its network. A block volume is on at most one. `[]` is none; unset leaves attachments to others. " +
				"With `delete_with_instance = true`, taking an instance out, by `[]` or by leaving this unset, replaces the volume.",
		},
		"from_snapshot": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The `uri` of a snapshot of the same account and region that the volume is made from. `size_gib` is at least the snapshot's, " +
				"and the filesystem is the snapshot's too. It acts at creation only: a later change is recorded, with a warning.",
		},
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Labels of the volume in the cloud, set by the call that makes it and changed in place. Only those that were set here are changed or taken off; " +
				"others stay. `{}` is none; unset leaves them as they are. On DigitalOcean a label is the tag `key:value`, or `key` where the value is empty.",
		},
		"deletion_protection": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "`true` refuses plans that destroy or replace the volume, or destroy or replace an instance that it goes with, also those of other states: the cloud's own protection " +
				"on Hetzner Cloud, a tag on DigitalOcean, which other tools don't heed. It is changed in place; set `false` and apply before you destroy the volume. " +
				"A shared volume on DigitalOcean has no tags: there it is recorded in this state only. Unset leaves the protection as it is.",
		},
		"allow_replacement": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "`false` refuses plans that would replace the volume, and lose its data, for a change of one of its attributes or of its instance, or by `-replace`. " +
				"Destroying it stays possible. Unset is `true`: it is replaced, and the plan warns.",
		},
	}
}

func volumeOutputs() map[string]schema.Attribute {
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"id":        computed("The Better Compute id, derived from the pool and the name and known in the first plan. It is the idempotency key in the cloud."),
		"uri":       computed("How to reach the volume: what other resources refer to, and the import id. Known in the first plan."),
		"claim":     computed("A random token that says which state owns the volume; it is also on the volume in the cloud."),
		"volume_id": computed("The volume's id in the cloud."),
		"urn":       computed("The volume's uniform resource name, where the cloud has such names."),
		"state": computed("`pending`, `ready`, `updating`, `deleting`, `error` or `unknown`. `pending` also means that creation was interrupted: the next apply finishes it. " +
			"`error` also means that the volume is gone from the cloud, and its data with it."),
		"message": computed("Why the state is `error`, `unknown` or `pending`, if there is something to say."),
		"device":  computed("The path at which a guest sees a block volume; known in the plan where the cloud derives it from the name."),
		"observed_size_gib": schema.NumberAttribute{
			Computed: true, MarkdownDescription: "The size in GiB that the cloud shows.",
		},
		"attachments": schema.ListNestedAttribute{
			Computed: true,
			MarkdownDescription: "The machines that have the volume, those that `instances` doesn't name included. Clouds don't know who mounts a shared volume: " +
				"there it is what `instances` says.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"instance_id":   computed("The `id` of the instance; null for a machine that `instances` doesn't name."),
				"machine_id":    computed("The machine's id in the cloud."),
				"state":         computed("`attached`; or `pending`: it should be, or an apply that was interrupted asked for it and the cloud may not be done."),
				"desired_state": computed("What `instances` wants: `attached` or `detached`; null where `instances` is unset."),
			}},
		},
		"mount": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "What a guest mounts of a shared volume; null of a block volume.",
			Attributes: map[string]schema.Attribute{
				"source": computed("The source, `host:path`."),
				"type":   computed("The type of the mount, `nfs4`."),
			},
		},
	}
}
