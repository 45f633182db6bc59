// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ImportState takes a snapshot's uri. Naming an object is the consent to manage it,
// marked or not; but it records no claim, so the next plan shows the snapshot being
// taken over, and until that is applied nothing here may change or delete it.
func (r *snapshotResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	uri := importedURI(ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, account, err := r.data.open(reference.KindSnapshot, uri)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	s, err := importedSnapshot(ctx, account, ref)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	rec, err := newRecord(resp.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	rec.setText("name", ref.Snapshot)
	rec.setText("volume", ref.VolumeRef(ref.Volume).String())
	rec.setText("snapshot_id", s.ID)
	rec.setText("id", ref.ID())
	rec.setText("uri", ref.String())
	resp.State.Raw = rec.raw()
	setIdentity(ctx, resp.Identity, ref.String(), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, seenSnapshot(ref.ID(), s).encode())...)
}

// importedSnapshot finds the snapshot that an import names: the one with its key,
// which may have outlived its volume, else the one with its name among the volume's
// that nobody manages.
func importedSnapshot(ctx context.Context, account *reconcile.Account, ref reference.Reference) (backends.Snapshot, error) {
	if issues := account.CheckSnapshotForm("", snapshotSpec(ref.VolumeRef(ref.Volume), ref.Snapshot, "", "")); len(issues) > 0 {
		return backends.Snapshot{}, joinIssues(issues)
	}
	marked, err := account.FindSnapshot(ctx, ref.PoolID(), "", ref.ID())
	if err != nil {
		return backends.Snapshot{}, err
	}
	if marked != nil {
		return *marked, nil
	}
	volumes, err := importedVolumes(ctx, account, ref)
	if err != nil {
		return backends.Snapshot{}, err
	}
	if len(volumes) == 0 {
		return backends.Snapshot{}, backends.Errorf(backends.NotFound, "No snapshot carries the id of %q, and there is no volume %q to look for it by name.", ref.Snapshot, ref.Volume).
			WithRemedy("Check the names in the uri. A snapshot that Better Compute didn't make is found by its name among those of its volume only.")
	}
	var named []backends.Snapshot
	for _, v := range volumes {
		all, err := account.SnapshotsOfVolume(ctx, v.Kind, v.ID)
		if err != nil {
			return backends.Snapshot{}, err
		}
		named = append(named, slices.DeleteFunc(all, func(s backends.Snapshot) bool { return s.Name != ref.Snapshot || s.About().Going() })...)
	}
	unmarked := slices.DeleteFunc(slices.Clone(named), func(s backends.Snapshot) bool { return s.Marks.Managed })
	switch {
	case len(unmarked) == 1 && !account.CanMarkSnapshot(unmarked[0].Kind):
		return backends.Snapshot{}, backends.Errorf(backends.Unsupported, "The snapshot %q (%s) was not made by this provider, and can't become ours. "+
			"Its cloud has no tags for such snapshots, so our marks are in the name, which is given when it is made.", ref.Snapshot, unmarked[0].ID).
			WithRemedy("Make a new snapshot by this resource, and leave the old one to whoever made it.")
	case len(unmarked) == 1:
		return unmarked[0], nil
	case len(unmarked) > 1:
		return backends.Snapshot{}, backends.Errorf(backends.Conflict, "%d snapshots of the volume %q are called %q: %s.",
			len(unmarked), ref.Volume, ref.Snapshot, nameObjects(aboutAll(unmarked))).
			WithRemedy("Delete or rename those that are not meant, then import again.")
	case len(named) > 0:
		return backends.Snapshot{}, backends.Errorf(backends.Conflict, "The snapshot %q (%s) belongs to another volume's resource or pool (%s).",
			named[0].Name, named[0].ID, named[0].Marks.Pool).
			WithRemedy("Import it with the uri under which it was made.")
	default:
		return backends.Snapshot{}, backends.Errorf(backends.NotFound, "The volume %q has no snapshot %q.", ref.Volume, ref.Snapshot).
			WithRemedy("Check the names in the uri.")
	}
}

// importedVolumes are the volumes whose snapshots an import looks through: the one
// of the pool, else those of its name that nobody manages, which may be imported
// together with their snapshots.
func importedVolumes(ctx context.Context, account *reconcile.Account, ref reference.Reference) ([]backends.Volume, error) {
	volume := ref.VolumeRef(ref.Volume)
	found, err := account.FindVolume(ctx, volume.PoolID(), "", volume.ID())
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return []backends.Volume{*found}, nil
	}
	var out []backends.Volume
	capabilities := backends.Capabilities(account.Backend)
	for kind, capability := range map[backends.VolumeKind]string{backends.BlockVolume: "volumes", backends.SharedVolume: "sharedVolumes"} {
		if !slices.Contains(capabilities, capability) {
			continue
		}
		named, err := account.NamedVolumes(ctx, kind, ref.Volume)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(named, func(v backends.Volume) bool { return v.Marks.Managed })...)
	}
	return out, nil
}
