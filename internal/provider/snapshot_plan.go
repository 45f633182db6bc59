// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan fills in what is known, checks what is created, and decides on
// replacement. It runs again during apply, so it is deterministic.
func (r *snapshotResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.data == nil || req.Plan.Raw.IsNull() {
		if state, err := newRecord(req.State.Raw); err == nil && req.Plan.Raw.IsNull() && moved(state) {
			report(&resp.Diagnostics, notTakenOver(state, reference.KindSnapshot))
		}
		return
	}
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	plan, state, err := newRecords(req.Plan.Raw, req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	p := &snapshotPlan{
		plan: plan, state: state, seen: readSnapshotSeen(ctx, req.Private), data: r.data, diags: &resp.Diagnostics,
	}
	if plan.isKnown("volume") {
		ref, account, err := r.data.open(reference.KindVolume, plan.text("volume"))
		if err != nil {
			report(&resp.Diagnostics, inAttribute("volume", plan.text("volume"), err))
			return
		}
		p.volume, p.account = &ref, account
	}
	switch {
	case req.State.Raw.IsNull():
		p.create(ctx)
	case moved(state):
		if p.takeOver(ctx, readMovedFrom(ctx, req.Private), resp.Private); resp.Diagnostics.HasError() {
			return
		}
		p.update()
	default:
		p.update()
	}
	resp.Plan.Raw = p.plan.raw()
	for _, name := range p.replace {
		resp.RequiresReplace.Append(path.Root(name))
	}
}

// snapshotPlan is one run of ModifyPlan.
type snapshotPlan struct {
	plan, state record
	seen        snapshotSeen
	data        *providerData
	diags       *diag.Diagnostics
	volume      *reference.Reference // nil while it isn't known
	account     *reconcile.Account
	replace     []string // the attributes that force a replacement
}

func (p *snapshotPlan) create(ctx context.Context) {
	for name := range snapshotOutputs() {
		p.plan.setUnknown(name)
	}
	if p.volume == nil {
		return
	}
	name := p.plan.text("name")
	spec := snapshotSpec(*p.volume, name, "", "")
	spec.Unknown = []string{"volume", "region"}
	if !p.plan.has("name") {
		spec.Unknown = append(spec.Unknown, "name")
	} else {
		ref := p.volume.SnapshotRef(name)
		p.plan.setText("id", ref.ID())
		p.plan.setText("uri", ref.String())
	}
	if issues := p.account.CheckSnapshotForm("", spec); len(issues) > 0 {
		reportIssues(p.diags, issues)
		return
	}
	if !p.plan.has("name") {
		return
	}
	switch err := p.look(ctx, spec); {
	case unreadable(err):
		p.data.warnUnchecked(p.diags, p.account.URI, err)
	case err != nil:
		reportSnapshotCreate(p.diags, err, p.volume.SnapshotRef(name))
	}
}

// look holds a new snapshot against what the cloud has.
func (p *snapshotPlan) look(ctx context.Context, spec backends.SnapshotSpec) error {
	volume, err := p.account.FindVolume(ctx, p.volume.PoolID(), "", p.volume.ID())
	if err != nil {
		return err
	}
	var kind backends.VolumeKind // without a volume any snapshot of ours will do
	if volume != nil {
		kind, spec.Volume, spec.Region, spec.Unknown = volume.Kind, volume.ID, volume.Region, nil
		if issues := p.account.CheckSnapshotForm(kind, spec); len(issues) > 0 {
			return joinIssues(issues)
		}
	}
	existing, err := p.account.FindSnapshot(ctx, p.volume.PoolID(), kind, spec.Marks.Key)
	if err != nil {
		return err
	}
	if existing != nil && !p.replacing() {
		p.warnExisting(*existing)
	}
	if existing != nil || volume == nil {
		return nil
	}
	return p.room(ctx, *volume, spec)
}

// replacing tells whether this is the second call of a replacement: then the snapshot
// is known, and is destroyed before the new one is made.
func (p *snapshotPlan) replacing() bool { return p.seen.ID != "" }

// room tells whether the volume may have one more snapshot, by that name. At the
// limit it warns only: this plan may remove another one. The one that is replaced
// is removed first, so that it doesn't count, and what is refused then is refused now.
func (p *snapshotPlan) room(ctx context.Context, volume backends.Volume, spec backends.SnapshotSpec) error {
	err := p.account.CheckSnapshotRoom(ctx, volume.Kind, volume.ID, spec.Name, spec.Marks.Key)
	if !backends.HasCode(err, backends.QuotaExceeded) {
		return err
	}
	if p.replacing() {
		without := p.account.CheckSnapshotRoom(ctx, volume.Kind, volume.ID, spec.Name, p.seen.Key)
		if backends.HasCode(without, backends.QuotaExceeded) {
			return without
		}
		return nil
	}
	warn(p.diags, err, "The apply may be refused", "The limit is checked again, and enforced, when the snapshot is made; "+
		"snapshots that this plan removes first make room.")
	return nil
}

// warnExisting says what an apply would do about a snapshot that exists.
func (p *snapshotPlan) warnExisting(s backends.Snapshot) {
	switch {
	case snapshotUnfinished(s):
	case p.data.adopting(*p.volume):
		p.diags.AddWarning("The snapshot exists", fmt.Sprintf("The snapshot %q (%s) carries this snapshot's id. Since the pool has adopt = true, "+
			"the apply takes it over if it makes or changes the pool or the volume too; for a snapshot alone, import it.", s.Name, s.ID))
	default:
		p.diags.AddWarning("CONFLICT: the snapshot exists", fmt.Sprintf("The snapshot %q (%s) carries this snapshot's id. Unless this plan destroys it first, "+
			"the apply will be refused, and show how to import it.", s.Name, s.ID))
	}
}

func (p *snapshotPlan) update() {
	for name := range snapshotOutputs() {
		p.plan.values[name] = p.state.values[name]
	}
	p.planVolume()
	if p.plan.isKnown("name") && !p.plan.equal("name", p.state) {
		p.replace = append(p.replace, "name")
	}
	if p.seen.Gone {
		p.keep()
		return
	}
	if p.seen.HalfMade {
		p.plan.setUnknown("state", "message", "size_gib", "created_at")
	}
	if p.state.text("claim") != "" {
		p.warnLoss()
		return
	}
	p.plan.setUnknown("claim")
	if len(p.replace) > 0 {
		report(p.diags, backends.Errorf(backends.InvalidState, "The snapshot was imported and is not taken over yet, so it can't be replaced for a change of %s.",
			strings.Join(p.replace, ", ")).
			WithRemedy("Make the configuration match the snapshot and apply once, which takes it over; change it then."))
	}
}

// warnLoss says that a replacement loses what the snapshot holds: no cloud of today renames
// one, and it is of the volume as it was.
func (p *snapshotPlan) warnLoss() {
	if len(p.replace) == 0 {
		return
	}
	p.diags.AddWarning(fmt.Sprintf("What the snapshot holds is lost: %q", p.state.text("name")),
		fmt.Sprintf("The snapshot %q (%s) is replaced: it is deleted, and another one is made, of the volume as it is now. What forces it: %s. To keep what it holds, undo that change, "+
			"and add another block for a new snapshot.", p.state.text("name"), p.state.text("snapshot_id"), strings.Join(p.replace, ", ")))
}

// planVolume follows an account that changed, and replaces the snapshot for another
// volume. A volume that isn't known yet never replaces it: should it turn out to be
// another one, the apply is refused.
func (p *snapshotPlan) planVolume() {
	if p.volume == nil {
		p.plan.setUnknown("uri")
		return
	}
	ref := p.volume.SnapshotRef(p.state.text("name"))
	if ref.ID() != p.state.text("id") {
		p.replace = append(p.replace, "volume")
		return
	}
	p.plan.setText("uri", ref.String())
}

// keep lets a snapshot that is gone be what it was, whatever else is asked for: it
// is never made again but by a replacement that the user asks for. Only an account
// that changed is followed.
func (p *snapshotPlan) keep() {
	if len(p.replace) > 0 || p.volume == nil {
		for _, name := range []string{"volume", "name", "uri"} {
			p.plan.values[name] = p.state.values[name]
		}
		if len(p.replace) > 0 {
			p.diags.AddWarning("Not made again", fmt.Sprintf("The snapshot %q (%s) isn't in the cloud any more, so the change of %s is left out: nothing is made in its place. "+
				"For a new snapshot, apply with -replace and this resource's address.",
				p.state.text("name"), p.state.text("snapshot_id"), strings.Join(p.replace, ", ")))
		}
	}
	p.replace = nil
}
