// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// The words of on_image_change and on_user_data_change, and of power.
const (
	onChangeReplace   = "replace"
	onChangeReinstall = "reinstall"
	onChangeIgnore    = "ignore"

	powerOn  = "on"
	powerOff = "off"
)

// Schema declares bettercompute_instance.
func (r *instanceResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := instanceInputs()
	maps.Copy(attributes, instanceOutputs())
	for _, d := range r.registry.All() {
		if len(d.Manifest.Machine) == 0 {
			continue
		}
		attributes[d.Attribute()] = schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "What only " + d.Title + " has. Allowed only where the pool's account is of this cloud. An attribute left out is " +
				"left to the cloud or to other tools. A change is made in place, in place with a restart, or recorded for the next creation, as the cloud can; the plan says which. " +
				"One that is left out later stays as it is.",
			Attributes: resourceAttributes(d.Manifest.Machine),
		}
	}
	attributes["timeouts"] = timeoutsAttribute(ctx)
	resp.Schema = schema.Schema{
		MarkdownDescription: "A virtual machine in a pool. The machine in the cloud is called `name`; who made it and from what is in its labels or tags. " +
			"Other resources refer to it by `uri`; resources of the vendors' own providers take `machine_id`.",
		Attributes: attributes,
	}
}

// timeoutsAttribute is the library's, with our words and rules.
func timeoutsAttribute(ctx context.Context) schema.Attribute {
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Read: true, Update: true, Delete: true,
		CreateDescription: "How long creation may take, waiting for rate limits and for the cloud to be done included, such as `30m`. Default `20m`.",
		ReadDescription:   "How long a refresh may take. Default `5m`.",
		UpdateDescription: "How long an update may take. Default `20m`.",
		DeleteDescription: "How long deletion may take, until the object is gone. Default `20m`.",
	})
	nested, ok := attribute.(schema.SingleNestedAttribute)
	if !ok {
		return attribute // another version of the library, which the schemas' test would report
	}
	nested.MarkdownDescription = "How long operations may take: numbers with a unit, such as `90s`, `30m` or `1h30m`."
	for name, a := range nested.Attributes {
		if text, ok := a.(schema.StringAttribute); ok {
			text.MarkdownDescription = text.Description
			text.Validators = []validator.String{problemRule{timeoutRemedy, "a length of time", timeoutProblem}}
			nested.Attributes[name] = text
		}
	}
	return nested
}

// IdentitySchema declares what names an instance for import blocks: its uri.
func (r *instanceResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = uriIdentity("The instance's uri; the machine id at its end may be left out.")
}

func onChangeRule() validator.String {
	return textRule(stringvalidator.OneOf(onChangeReplace, onChangeReinstall, onChangeIgnore), "Write replace, reinstall or ignore.")
}

func instanceInputs() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The machine's name in the cloud and the guest's hostname: lower-case letters, digits, hyphens and dots (RFC 1123), " +
				"1 to 63 characters. A change renames the machine in place, where the cloud can (the guest's own hostname stays); elsewhere it replaces the machine.",
			// Nothing is mangled to fit: the name in the cloud is the name.
			Validators: []validator.String{problemRule{"Choose a name such as web-0.", "a hostname in lower case", reference.InstanceNameProblem}},
		},
		"pool": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The pool's `uri` (not its `id`), as in `bettercompute_pool.web.uri`. Another pool replaces the machine.",
		},
		"offer": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The size: an offer id of the cloud's catalog, or a flavor of the pool such as `bettercompute_pool.web.flavors.small`. " +
				"Checked against the catalog at plan time. A change resizes the machine in place, with a restart that the plan names: the guest is asked to shut down first. " +
				"A machine that can't become that offer (another architecture, a smaller disk) is refused at plan time. Where the cloud can't resize, a change replaces the machine.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Name an offer of the cloud's catalog, such as one of the data source bettercompute_offers.")},
		},
		"offer_fallbacks": schema.ListAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Offers to make the machine with, in this order, where the cloud is out of stock of `offer`. Which one it was is in `offer_actual`. " +
				"They count when a machine is made; neither a change of them nor a machine that was made with one of them changes anything later. " +
				"A pool's limit of `price_per_hour` counts the dearest of them.",
			Validators: []validator.List{listRule(listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)),
				"Name offers of the cloud's catalog, or leave it out.")},
		},
		"resize_disk": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether another `offer` also grows the disk to its size. No cloud shrinks a disk, so the machine can't go back to a smaller offer then. " +
				"Unset or `false`: the disk stays as it is. It counts when the offer changes.",
		},
		"image": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The image's name or id in the cloud; on Proxmox VE a template's name, VMID, or `node/VMID`. A name is looked up for the offer's architecture. " +
				"What a change does is said by `on_image_change`. The same name pointing to a newer image is no change.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Name an image of the cloud.")},
		},
		"region": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The cloud's region or location. Unset: the account's at creation; the recorded value then stays. A change replaces the machine.",
			Validators:          []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Leave it out for the account's region.")},
		},
		"ssh_keys": schema.ListAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Public keys that may log in, as OpenSSH `authorized_keys` lines. They reach the guest through cloud-init at creation; " +
				"a later change never touches the machine and is recorded with a warning.",
			Validators: []validator.List{listRule(listvalidator.ValueStringsAre(sshKeyLine{}), "Give public keys, one line each.")},
		},
		"user_data": schema.StringAttribute{
			Optional: true, Sensitive: true,
			MarkdownDescription: "Cloud-init user data, handed to the guest byte for byte. Together with `ssh_keys` it must start with `#cloud-config` or `#!`, " +
				"and both are sent as a MIME multipart. It is recorded in the state: for secrets use `user_data_wo`. What a change does is said by `on_user_data_change`.",
		},
		"user_data_wo": schema.StringAttribute{
			Optional: true, Sensitive: true, WriteOnly: true,
			MarkdownDescription: "As `user_data`, and never recorded in plan or state. Change `user_data_wo_version` to say that it changed. " +
				"Needs OpenTofu 1.11 or Terraform 1.11.",
		},
		"user_data_wo_version": schema.NumberAttribute{
			Optional:            true,
			MarkdownDescription: "A whole number to change together with `user_data_wo`.",
			Validators:          []validator.Number{numberRule{"Write a whole number, such as 1, and another one when user_data_wo changes.", anyWhole}},
		},
		"network_id": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The cloud's own id of a private network to join: a Hetzner network, a DigitalOcean VPC, or on Proxmox VE the bridge or VNet of the " +
				"first network card, such as `vmbr0`. Unset: hands off. " +
				"A change is made in place where the cloud can, as the plan says; on DigitalOcean it replaces the machine.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Leave it out for no private network.")},
		},
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Labels of the machine in the cloud, set by the call that makes it. On DigitalOcean they are tags `key:value`, on Proxmox VE tags `key.value`, in lower case. " +
				"A change is made in place, and touches no label that isn't from here. Unset: hands off; `{}` removes those that were set here.",
		},
		"deletion_protection": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "The cloud's own protection against deletion, changed in place. While it is `true`, plans that would destroy or replace the machine are refused. " +
				"Unset: hands off.",
		},
		"power": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(powerOn),
			MarkdownDescription: "`on` (default) or `off`. A machine found in the other state shows in the plan and is switched. Switching off asks the guest first " +
				"and pulls the plug after 60 seconds.",
			Validators: []validator.String{textRule(stringvalidator.OneOf(powerOn, powerOff), "Write on or off.")},
		},
		"on_image_change": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(onChangeReplace),
			MarkdownDescription: "What another `image` does: `replace` (default) the machine, `reinstall` it in place (same id and addresses, the disk is wiped), " +
				"or `ignore`: recorded, with a warning that it takes effect at the next creation.",
			Validators: []validator.String{onChangeRule()},
		},
		"on_user_data_change": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(onChangeIgnore),
			MarkdownDescription: "What other user data does: `ignore` (default): recorded, with a warning that it takes effect at the next creation; `replace` the machine; " +
				"or `reinstall` it in place (the disk is wiped), where the cloud can hand a reinstalled machine new user data.",
			Validators: []validator.String{onChangeRule()},
		},
	}
}

func instanceOutputs() map[string]schema.Attribute {
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"id":    computed("The Better Compute id, derived from the pool and the name and known in the first plan. It is the idempotency key in the cloud."),
		"uri":   computed("How to reach the instance: what other resources refer to, and the import id. Known once the machine exists."),
		"claim": computed("A random token that says which state owns the machine; it is also in the machine's labels or tags."),
		"machine_id": computed("The machine's id in the cloud: what resources of the vendor's own provider take (`server_id`, `droplet_id`), " +
			"which convert it to a number themselves."),
		"offer_actual": computed("The offer that the machine has: `offer`, one of `offer_fallbacks`, or what it was resized to outside."),
		"urn":          computed("The machine's uniform resource name, where the cloud has such names."),
		"state":        computed("`pending`, `running`, `stopped`, `rescue`, `deleting`, `error` or `unknown`. `pending` also means that creation was interrupted: the next apply finishes it."),
		"message":      computed("Why the state is `error`, `unknown` or `pending`, if there is something to say."),
		"image_id":     computed("The cloud's id of the image on the machine."),
		"ipv4":         computed("One public IPv4 address."),
		"ipv6":         computed("One public IPv6 address."),
		"private_ipv4": computed("One private IPv4 address."),
		"address":      computed("The address to connect to: the public IPv4 address, else the public IPv6 address, else the private one."),
		"currency":     computed("The currency of `price_per_hour`, ISO 4217."),
		"price_per_hour": schema.NumberAttribute{
			Computed:            true,
			MarkdownDescription: "The offer's gross price per hour when the machine was made or resized; not updated when the catalog changes.",
		},
		"addresses": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "All addresses of the machine.",
			NestedObject: schema.NestedAttributeObject{
				Attributes: map[string]schema.Attribute{
					"address": computed("The address, without a prefix length."),
					"family":  computed("`ipv4` or `ipv6`."),
					"scope":   computed("`public` or `private`."),
				},
			},
		},
	}
}
