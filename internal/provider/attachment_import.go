// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// ImportState takes the uris of the volume and the instance, joined by "|", or an
// identity with both. The attachment must exist: an import changes nothing.
func (r *attachmentResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	rec, err := newRecord(resp.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if req.ID != "" || req.Identity == nil {
		volume, instance, ok := strings.Cut(req.ID, "|")
		if !ok {
			report(&resp.Diagnostics, backends.Errorf(backends.InvalidInput, "An attachment is imported by two uris, of the volume and of the instance, with | between them.").
				WithRemedy("Write id = \"${bettercompute_provider_volume.data.uri}|${bettercompute_instance.web.uri}\", or both as literals."))
			return
		}
		rec.setText("volume", volume)
		rec.setText("instance", instance)
	} else {
		for _, name := range []string{"volume", "instance"} {
			var uri types.String
			resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root(name), &uri)...)
			rec.setText(name, uri.ValueString())
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.importAttachment(ctx, rec); err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	resp.State.Raw = rec.raw()
	attachmentIdentity(ctx, resp.Identity, rec)
}

// importAttachment fills a record that names an attachment with what the cloud shows.
func (r *attachmentResource) importAttachment(ctx context.Context, rec record) error {
	volume, instance, err := attachmentRefs(r.registry, rec)
	if err != nil {
		return err
	}
	account, err := r.data.Accounts.Open(volume)
	if err != nil {
		return inAttribute("volume", rec.text("volume"), err)
	}
	v, err := account.FindVolume(ctx, volume.PoolID(), backends.BlockVolume, volume.ID())
	if err != nil {
		return err
	}
	machine, err := machineOf(ctx, account, instance)
	switch {
	case err != nil:
		return err
	case v == nil:
		return backends.Errorf(backends.NotFound, "No volume carries the id of %q in its pool.", volume.Volume).
			WithRemedy("Check the names in the uri. A volume that Better Compute didn't make is imported itself first, and applied.")
	case machine == "" || !v.AttachedTo(machine):
		return backends.Errorf(backends.NotFound, "The volume %q (%s) isn't attached to the instance %q.", v.Name, v.ID, instance.Instance).
			WithRemedy("There is nothing to import: an apply of the resource attaches it.")
	}
	rec.setText("instance", instance.InstanceRef(instance.Instance, machine).String())
	rec.setText("id", attachmentID(volume, instance))
	attachmentObserved(rec, *v, machine)
	return nil
}
