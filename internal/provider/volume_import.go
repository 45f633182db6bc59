// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ImportState takes a volume's uri. The volume is found by its key, else by its
// name among those that nobody manages: naming an object is the consent to manage
// it. It records no claim, so the next plan shows the volume being taken over, and
// until that is applied nothing here may change or delete it.
func (r *volumeResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	uri := importedURI(ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, account, err := r.data.open(reference.KindVolume, uri)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	v, err := importedVolume(ctx, account, ref)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	rec, err := newRecord(resp.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	pool := ref.PoolRef()
	rec.setText("name", ref.Volume)
	rec.setText("pool", pool.String())
	rec.setText("kind", string(v.Kind))
	rec.setTruth("delete_with_instance", v.Marks.GoesWithMachine)
	rec.setText("volume_id", v.ID)
	volumeNames(rec, pool, ref.Volume)
	resp.State.Raw = rec.raw()
	setIdentity(ctx, resp.Identity, rec.text("uri"), &resp.Diagnostics)
}

// importedVolume finds the volume that an import names.
func importedVolume(ctx context.Context, account *reconcile.Account, ref reference.Reference) (backends.Volume, error) {
	ours, err := account.FindVolume(ctx, ref.PoolID(), "", ref.ID())
	switch {
	case err != nil:
		return backends.Volume{}, err
	case ours != nil:
		return *ours, nil
	}
	var unmarked []backends.Volume
	var others []string
	for _, kind := range volumeKinds(account) {
		found, err := account.NamedVolumes(ctx, kind, ref.Volume)
		if err != nil {
			return backends.Volume{}, err
		}
		for _, v := range found {
			if v.Marks.Managed {
				others = append(others, v.ID)
				continue
			}
			unmarked = append(unmarked, v)
		}
	}
	switch {
	case len(unmarked) == 1 && !account.CanMark(unmarked[0].Kind):
		return backends.Volume{}, backends.Errorf(backends.Unsupported, "The %s volume %q (%s) was not made by this provider, and can't become ours. "+
			"Its cloud has no tags for such volumes, so our marks are in the name, which is given when it is made.", unmarked[0].Kind, ref.Volume, unmarked[0].ID).
			WithRemedy("Make a new volume by this resource, and copy the data from the old one.")
	case len(unmarked) == 1:
		return unmarked[0], nil
	case len(unmarked) > 1:
		var ids []string
		for _, v := range unmarked {
			ids = append(ids, v.ID)
		}
		return backends.Volume{}, backends.Errorf(backends.Conflict, "%d volumes are called %q, and none of them carries our marks: %s.", len(unmarked), ref.Volume, strings.Join(ids, ", ")).
			WithRemedy("A volume is imported by its name: rename the others in the cloud.")
	case len(others) > 0:
		e := backends.Errorf(backends.Conflict, "The volume %q (%s) belongs to another pool.", ref.Volume, strings.Join(others, ", "))
		return backends.Volume{}, e.WithRemedy("Import it with that pool's uri; this uri's pool is %s.", ref.PoolID())
	default:
		return backends.Volume{}, backends.Errorf(backends.NotFound, "No volume carries the id of %q in this pool, and none in the account is called so.", ref.Volume).
			WithRemedy("Check the names in the uri. A volume that Better Compute didn't make is found by its name in the cloud.")
	}
}

// volumeKinds are the kinds of volumes that the account's cloud has.
func volumeKinds(account *reconcile.Account) []backends.VolumeKind {
	var out []backends.VolumeKind
	if _, ok := account.Backend.(backends.Volumer); ok {
		out = append(out, backends.BlockVolume)
	}
	if _, ok := account.Backend.(backends.SharedVolumer); ok {
		out = append(out, backends.SharedVolume)
	}
	return out
}
