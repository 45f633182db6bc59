// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var (
	_ resource.ResourceWithConfigure      = (*attachmentResource)(nil)
	_ resource.ResourceWithIdentity       = (*attachmentResource)(nil)
	_ resource.ResourceWithImportState    = (*attachmentResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*attachmentResource)(nil)
	_ resource.ResourceWithValidateConfig = (*attachmentResource)(nil)
)

// attachmentResource is bettercompute_volume_attachment: a block volume on an instance.
// With it the volume's own plan doesn't depend on the instance, so that the volume can
// feed the instance's user data.
type attachmentResource struct {
	registry *backends.Registry
	data     *providerData
}

func newAttachmentResource(registry *backends.Registry) resource.Resource {
	return &attachmentResource{registry: registry}
}

// Metadata names the resource; its identity, the two uris, changes with its account.
func (r *attachmentResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_volume_attachment"
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (r *attachmentResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = configured(req.ProviderData, &resp.Diagnostics)
}

// Schema declares bettercompute_volume_attachment.
func (r *attachmentResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"volume": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The volume's `uri` (not its `id`), as in `bettercompute_provider_volume.data.uri`: a block volume whose `instances` is unset " +
				"and which doesn't have `delete_with_instance = true`. It needn't be of this configuration.",
		},
		"instance": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The instance's `uri` (not its `id`), as in `bettercompute_instance.web.uri`, of the same account and region. " +
				"Another instance, or the same one made anew, is attached in place, without a reboot.",
		},
		"timeouts": timeoutsAttribute(ctx),
	}
	maps.Copy(attributes, attachmentOutputs())
	resp.Schema = schema.Schema{
		MarkdownDescription: "A block volume on an instance, as a resource of its own. The volume then doesn't refer to the instance, so that the instance's `user_data` " +
			"can hold the volume's `device` or `volume_id`. For all else `instances` of the volume is simpler; a volume has one of the two, never both.",
		Attributes: attributes,
	}
}

func attachmentOutputs() map[string]schema.Attribute {
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"id":         computed("The `id`s of the volume and the instance, joined by a slash."),
		"volume_id":  computed("The volume's id in the cloud."),
		"machine_id": computed("The machine's id in the cloud."),
		"device":     computed("The path at which the guest sees the volume; known in the plan once the volume exists, or where the cloud derives it from the name."),
		"state": computed("`attached`; `pending`: an apply was interrupted, and the cloud may not be done; `detached`: it was detached outside, and the next apply attaches it again; " +
			"`error`: the volume is gone from the cloud."),
	}
}

// The states of an attachment besides those of [attachments].
const attachmentError = "error"

// IdentitySchema declares what names an attachment for import blocks: both uris.
func (r *attachmentResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"volume":   identityschema.StringAttribute{RequiredForImport: true, Description: "The volume's uri."},
		"instance": identityschema.StringAttribute{RequiredForImport: true, Description: "The instance's uri."},
	}}
}

// attachmentIdentity records an attachment's identity, for a core that knows identities.
func attachmentIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, r record) {
	if identity == nil || r.text("volume") == "" || r.text("instance") == "" {
		return
	}
	for _, name := range []string{"volume", "instance"} {
		_ = identity.SetAttribute(ctx, path.Root(name), r.text(name)) // the schema says it is a string
	}
}

// ValidateConfig checks what the configuration alone can tell.
func (r *attachmentResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	config, err := newRecord(refuseNulls(&resp.Diagnostics, req.Config.Raw))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	_, _, err = attachmentRefs(r.registry, config)
	report(&resp.Diagnostics, err)
}

// attachmentRefs are the volume and the instance that a record names; the zero value of
// what it doesn't know. They must be of one account.
func attachmentRefs(registry *backends.Registry, r record) (volume, instance reference.Reference, err error) {
	if r.has("volume") {
		if volume, err = reference.ParseKind(registry, reference.KindVolume, r.text("volume")); err != nil {
			return volume, instance, inAttribute("volume", r.text("volume"), err)
		}
	}
	if r.has("instance") {
		if instance, err = reference.ParseKind(registry, reference.KindInstance, r.text("instance")); err != nil {
			return volume, instance, inAttribute("instance", r.text("instance"), err)
		}
	}
	if volume.Kind != "" && instance.Kind != "" && volume.AccountID() != instance.AccountID() {
		return volume, instance, backends.Errorf(backends.InvalidInput, "The instance %q is of another account (%s) than the volume %q (%s).",
			instance.Instance, accountName(instance), volume.Volume, accountName(volume)).At("instance").
			WithRemedy("A volume is attached to instances of its own account.")
	}
	return volume, instance, nil
}

// attachmentID is the id of an attachment.
func attachmentID(volume, instance reference.Reference) string {
	return volume.ID() + "/" + instance.ID()
}

// machineOf is the machine of an instance; "" while nothing is known to carry its key.
func machineOf(ctx context.Context, account *reconcile.Account, instance reference.Reference) (string, error) {
	named := []namedInstance{{ref: instance, machine: instance.MachineID}}
	err := lookUp(ctx, account, named)
	return named[0].machine, err
}

// checkMachine refuses a machine that can't have a volume: one that isn't there, is of
// another region, or is being deleted.
func checkMachine(ctx context.Context, account *reconcile.Account, v backends.Volume, instance reference.Reference, machine string) error {
	spec := backends.VolumeSpec{Kind: backends.BlockVolume, Region: v.Region}
	issues, err := checkAttachable(ctx, account, spec, []namedInstance{{ref: instance, machine: machine}})
	for i, e := range issues {
		issues[i] = e.At("instance")
	}
	if len(issues) > 0 {
		return joinIssues(issues)
	}
	return err
}

// attachmentObserved is what a volume shows of an attachment.
func attachmentObserved(r record, v backends.Volume, machine string) {
	r.setText("volume_id", v.ID)
	r.setText("machine_id", machine)
	r.setText("device", v.Device)
	state := attachmentPending
	if v.AttachedTo(machine) {
		state = attachmentAttached
	}
	r.setText("state", state)
}
