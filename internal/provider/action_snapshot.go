// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// snapshotAction is bettercompute_volume_snapshot: a snapshot now, which no state has.
type snapshotAction struct{ actionTarget }

var (
	_ action.ActionWithConfigure      = (*snapshotAction)(nil)
	_ action.ActionWithModifyPlan     = (*snapshotAction)(nil)
	_ action.ActionWithValidateConfig = (*snapshotAction)(nil)
)

// Metadata names the action.
func (a *snapshotAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_volume_snapshot"
}

// Schema declares the action.
func (a *snapshotAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Makes a snapshot of a volume now, and waits until it is ready. No state has it: the data source `bettercompute_snapshots` shows it, a volume's `from_snapshot` takes its `uri`, " +
			"and an import makes it a `bettercompute_snapshot`. It counts among the 25 that a volume may have.",
		Attributes: map[string]schema.Attribute{
			"volume": schema.StringAttribute{
				Required: true, MarkdownDescription: "The volume's `uri`, as in `bettercompute_provider_volume.data.uri`.",
			},
			"name": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The snapshot's name, unique among those of the volume. Unset: the time in UTC, such as `at-20261201-093000`, " +
					"so that the action can be invoked again and again.",
				Validators: []validator.String{
					problemRule{"Choose a name such as before-upgrade.", "a snapshot's name", reference.SnapshotNameProblem},
				},
			},
			"timeouts": actionTimeouts(ctx),
		},
	}
}

// snapshotNow is the name of a snapshot that was given none.
func snapshotNow() string { return time.Now().UTC().Format("at-20060102-150405") }

// Invoke makes the snapshot.
func (a *snapshotAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	ctx, cancel := invoking(ctx, req.Config, &resp.Diagnostics)
	defer cancel()
	volume, account, err := a.open(req.Config.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	config, err := newRecord(req.Config.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	name := firstOf(config.text("name"), snapshotNow())
	if problem := reference.SnapshotNameProblem(name); problem != "" { // known too late to be validated
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidInput, "%s", problem).At("name"))
		return
	}
	ref := volume.SnapshotRef(name)
	wish, err := snapshotWish(ctx, account, volume, name)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	wish.Spec.Marks.Claim = reconcile.NewClaim()
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("Making the snapshot %q of the volume %q", name, volume.Volume)})
	created, err := account.CreateSnapshot(ctx, wish)
	switch s := created.Snapshot; {
	case err != nil && s.ID != "" && !backends.HasCode(err, backends.Conflict):
		reportWith(&resp.Diagnostics, err, fmt.Sprintf("The snapshot %s exists, and is not finished. Import it as a bettercompute_snapshot with the id %s, whose apply finishes it, or delete it in the cloud.", s.ID, ref))
	case err != nil:
		reportSnapshotCreate(&resp.Diagnostics, err, ref)
	default:
		resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("The snapshot %q (%s) is ready: %s", name, s.ID, ref)})
	}
}
