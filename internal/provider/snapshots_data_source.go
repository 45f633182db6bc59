// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// newSnapshotsDataSource is bettercompute_snapshots.
func newSnapshotsDataSource(clouds *backends.Registry) datasource.DataSource {
	return &inventory{
		clouds: clouds, name: "snapshots", list: "snapshots", noun: "snapshot",
		description: "The snapshots of volumes that a cloud holds of ours for an account or a pool: an inventory, leftovers that no state has, and with " +
			"`import { for_each }` the way to take them in. Snapshots that are being deleted are left out; a cloud without snapshots has none to show.",
		uri: "The snapshot's uri, to import it. Null where it can't be told: a uri holds the names of the pool, the volume and the snapshot, so read the " +
			"`pool`, or name it in `pools`. A snapshot that was renamed in the cloud has lost its own, and so has one of a share of a cloud that has no tags " +
			"for those, since its name in the cloud is made of ids.",
		columns: map[string]schema.Attribute{
			"name":        computedText("The name in the cloud."),
			"snapshot_id": computedText("The cloud's id."),
			"kind":        computedText("`block` or `shared`: the kind of its volume."),
			"state":       computedText("`pending`, `ready`, `error` or `unknown`."),
			"message":     computedText("Why the state is `error`, if the cloud says so."),
			"volume":      computedText("The name of its volume, which may be gone; null where the snapshot doesn't carry it."),
			"volume_id":   computedText("The cloud's id of its volume, which may be gone."),
			"size_gib":    schema.Int64Attribute{Computed: true, MarkdownDescription: "The size in GiB that a volume made from it has at least."},
		},
		rows: snapshotRows,
	}
}

// snapshotRows are the snapshots as the data source shows them.
func snapshotRows(ctx context.Context, account *reconcile.Account, filter backends.Filter, names inventoryNames) ([]any, error) {
	snapshots, err := account.SnapshotObjects(ctx, filter)
	rows := make([]any, 0, len(snapshots))
	for _, s := range snapshots {
		if s.About().Going() {
			continue
		}
		row := names.row(s.About(), s.Region, s.Labels, map[string]string{
			"snapshot_id": s.ID, "kind": string(s.Kind), "message": s.Message, "volume": s.Marks.Volume, "volume_id": s.Volume,
		}, func(pool reference.Reference) reference.Reference {
			return pool.VolumeRef(s.Marks.Volume).SnapshotRef(s.Name)
		})
		row["size_gib"] = s.SizeGiB
		rows = append(rows, row)
	}
	return rows, err
}
