// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
)

// warnSnapshots warns of the snapshots of a share that is to be deleted: only a block
// volume's outlive it. A share that has some is not deleted, since they would go too.
func warnSnapshots(ctx context.Context, diags *diag.Diagnostics, account *reconcile.Account, kind backends.VolumeKind,
	name, volume string) {
	if kind != backends.SharedVolume || volume == "" {
		return
	}
	found, err := account.SnapshotsOfVolume(ctx, kind, volume)
	snapshots := aboutAll(found)
	if err != nil || len(snapshots) == 0 {
		return
	}
	diags.AddWarning(fmt.Sprintf("The shared volume has snapshots: %q", name), fmt.Sprintf("The shared volume %q (%s) can't be deleted while it has snapshots: %s. "+
		"Only snapshots of block volumes outlive their volume. Unless this plan deletes these too, or they are deleted before, the apply is refused with INVALID_STATE.",
		name, volume, nameObjects(snapshots)))
}
