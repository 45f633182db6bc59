// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// newVolumesDataSource is bettercompute_provider_volumes.
func newVolumesDataSource(clouds *backends.Registry) datasource.DataSource {
	return &inventory{
		clouds: clouds, name: "provider_volumes", list: "volumes", noun: "volume",
		description: "The volumes that a cloud holds of ours for an account or a pool, block and shared: an inventory, leftovers that no state has, and with " +
			"`import { for_each }` the way to take them in. Volumes that are being deleted are left out; a cloud without volumes has none to show.",
		uri: "The volume's uri, to import it. Null where it can't be told: a uri holds the names of the pool and the volume, of which a volume carries " +
			"only the hash, so read the `pool`, or name it in `pools`. A volume that was renamed in the cloud has lost its own, and so has a share of a cloud " +
			"that has no tags for shares, since its name in the cloud is made of ids.",
		columns: map[string]schema.Attribute{
			"name":       computedText("The name in the cloud."),
			"volume_id":  computedText("The cloud's id."),
			"kind":       computedText("`block` or `shared`."),
			"state":      computedText("`pending`, `ready`, `updating`, `error` or `unknown`."),
			"message":    computedText("Why the state is `error`, if the cloud says so."),
			"network_id": computedText("The cloud's id of a shared volume's network."),
			"device":     computedText("The path in the guest, where the cloud says."),
			"urn":        computedText("The volume's uniform resource name, where the cloud has such names."),
			"size_gib":   schema.Int64Attribute{Computed: true, MarkdownDescription: "The size in GiB."},
			"machine_ids": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "The cloud's ids of the machines that have a block volume attached. Clouds don't know who mounts a shared one.",
			},
			"mount": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "What a guest mounts of a shared volume; null until the cloud reports it.",
				Attributes: map[string]schema.Attribute{
					"source": computedText("`host:path`."),
					"type":   computedText("`nfs4`."),
				},
			},
			"delete_with_instance": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it is deleted with the machine that it is attached to."},
		},
		rows: volumeRows,
	}
}

// volumeRows are the volumes as the data source shows them.
func volumeRows(ctx context.Context, account *reconcile.Account, filter backends.Filter, names inventoryNames) ([]any, error) {
	volumes, err := account.VolumeObjects(ctx, filter)
	rows := make([]any, 0, len(volumes))
	for _, v := range volumes {
		if v.About().Going() {
			continue
		}
		row := names.row(v.About(), v.Region, v.Labels, map[string]string{
			"volume_id": v.ID, "kind": string(v.Kind), "message": v.Message, "network_id": v.Network, "device": v.Device, "urn": v.URN,
		}, func(pool reference.Reference) reference.Reference { return pool.VolumeRef(v.Name) })
		machines := make([]any, len(v.Machines))
		for i, id := range v.Machines {
			machines[i] = id
		}
		row["size_gib"], row["machine_ids"], row["delete_with_instance"] = v.SizeGiB, machines, v.Marks.GoesWithMachine
		if v.Mount != nil {
			row["mount"] = backends.Values{"source": v.Mount.Source, "type": v.Mount.Type}
		}
		rows = append(rows, row)
	}
	return rows, err
}
