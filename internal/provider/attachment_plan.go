// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan fills in what is known and refuses what can't be. All changes are in place,
// but for a volume that is made anew: then the attachment goes before the old volume
// does, and comes after the new one. It runs again during apply, so it is deterministic.
func (r *attachmentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.data == nil {
		return
	}
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if req.Plan.Raw.IsNull() {
		r.data.volumes.release(noteKeys(r.registry, state))
		return
	}
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	plan, err := newRecord(req.Plan.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	p := &attachmentPlan{plan: plan, state: state, exists: !req.State.Raw.IsNull(), resource: r, diags: &resp.Diagnostics}
	if p.volume, p.instance, err = attachmentRefs(r.registry, plan); err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if p.volume.Kind != "" {
		if p.account, err = r.data.Accounts.Open(p.volume); err != nil {
			report(&resp.Diagnostics, inAttribute("volume", plan.text("volume"), err))
			return
		}
	}
	p.fill(ctx)
	resp.Plan.Raw = p.plan.raw()
	if p.anew {
		resp.RequiresReplace.Append(path.Root("volume_id"))
	}
}

// noteKeys are the ids under which an attachment is noted.
func noteKeys(registry *backends.Registry, r record) (volume, attachment string) {
	v, i, err := attachmentRefs(registry, r)
	if err != nil || v.Kind == "" || i.Kind == "" {
		return "", ""
	}
	return v.ID(), attachmentID(v, i)
}

// attachmentPlan is one run of ModifyPlan.
type attachmentPlan struct {
	plan, state      record
	exists           bool // there is a state
	resource         *attachmentResource
	diags            *diag.Diagnostics
	volume, instance reference.Reference // the zero value while it isn't known
	account          *reconcile.Account  // nil while the volume isn't known
	note             volumeNote          // what is planned for the volume
	anew             bool                // the volume is made anew
}

// fill plans the attributes that are computed, and checks the rest.
func (p *attachmentPlan) fill(ctx context.Context) {
	for name := range attachmentOutputs() {
		p.plan.values[name] = p.state.values[name]
		if !p.exists {
			p.plan.setUnknown(name)
		}
	}
	switch {
	case p.volume.Kind == "" || p.instance.Kind == "":
		p.plan.setUnknown("id")
	default:
		p.plan.setText("id", attachmentID(p.volume, p.instance))
	}
	if p.volume.Kind == "" {
		p.plan.setUnknown("volume_id", "device", "state")
		return
	}
	p.note, _ = p.resource.data.volumes.planned(p.volume.ID())
	if p.refuseShared(); p.diags.HasError() {
		return
	}
	if p.note.made {
		p.anew = p.exists
		p.plan.setUnknown("volume_id", "device", "state")
		if device := p.account.Device(backends.BlockVolume, p.volume.Volume); device != "" {
			p.plan.setText("device", device)
		}
		p.planMachine(ctx, nil)
		return
	}
	v, err := p.found(ctx)
	if err != nil {
		if unreadable(err) {
			p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		} else {
			report(p.diags, err)
		}
		return
	}
	p.planVolume(v)
	p.planMachine(ctx, v)
}

// refuseShared refuses what two resources say of one volume.
func (p *attachmentPlan) refuseShared() {
	if p.note.named {
		report(p.diags, bothHold(p.volume.Volume))
		return
	}
	if p.note.shared {
		report(p.diags, reconcile.SharedAttachment(backends.Volume{Name: p.note.name, ID: p.note.id}))
		return
	}
	if p.note.goes {
		report(p.diags, reconcile.GoesAttached(p.volume.Volume))
		return
	}
	if p.instance.Kind == "" {
		return
	}
	if other := p.resource.data.volumes.hold(p.volume.ID(), attachmentID(p.volume, p.instance), p.instance.ID()); other != "" {
		report(p.diags, backends.Errorf(backends.Conflict, "Two bettercompute_volume_attachment hold the volume %q: that of the instance %q, and one of another instance (%s).",
			p.volume.Volume, p.instance.Instance, other).
			WithRemedy("A block volume is on one instance: keep one of them."))
	}
}

// bothHold is the error of a volume whose instances is set and which has an attachment
// of its own.
func bothHold(volume string) *backends.Error {
	return backends.Errorf(backends.Conflict, "The volume %q has both instances and a bettercompute_volume_attachment: each would undo what the other does.", volume).
		WithRemedy("Keep one of them: leave instances out of the volume (not [], which means none), or remove the attachment.")
}

// found is the volume as a recent list shows it; nil when there is none.
func (p *attachmentPlan) found(ctx context.Context) (*backends.Volume, error) {
	if p.note.id != "" { // under its old name, it may be about to be renamed
		v, err := p.account.ReadVolume(ctx, p.volume.PoolID(), backends.BlockVolume, p.note.id)
		if backends.HasCode(err, backends.NotFound) {
			return nil, nil
		}
		return &v, err
	}
	return p.account.FindVolume(ctx, p.volume.PoolID(), "", p.volume.ID())
}

// planVolume plans what follows from the volume.
func (p *attachmentPlan) planVolume(v *backends.Volume) {
	switch {
	case v == nil && (!p.exists || p.state.text("volume_id") == ""):
		p.plan.setUnknown("volume_id", "device", "state")
		return
	case v == nil:
		return // it is lost: nothing is done until it is made anew
	case v.Kind == backends.SharedVolume:
		report(p.diags, reconcile.SharedAttachment(*v))
		return
	}
	p.plan.setText("volume_id", v.ID)
	p.plan.setText("device", firstOf(p.account.Device(v.Kind, p.volume.Volume), v.Device))
	if v.Device == "" && p.plan.isNull("device") {
		p.plan.setUnknown("device")
	}
	if p.state.text("volume_id") != v.ID {
		p.plan.setUnknown("state")
	}
}

// planMachine plans what follows from the machine, and says where the volume would be
// taken from.
func (p *attachmentPlan) planMachine(ctx context.Context, v *backends.Volume) {
	if p.instance.Kind == "" {
		p.plan.setUnknown("machine_id", "state")
		return
	}
	machine, err := machineOf(ctx, p.account, p.instance)
	switch {
	case unreadable(err):
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		return
	case err != nil:
		report(p.diags, err)
		return
	case machine == "":
		p.plan.setUnknown("machine_id", "state") // the same apply may make it
		return
	}
	p.plan.setText("machine_id", machine)
	as := p.state.text("state")
	stays := machine == p.state.text("machine_id") && p.plan.equal("volume_id", p.state)
	if stays && (as == attachmentAttached || as == attachmentError) {
		return
	}
	p.plan.setUnknown("state")
	if v == nil {
		return
	}
	if err := checkMachine(ctx, p.account, *v, p.instance, machine); err != nil {
		if !unreadable(err) {
			report(p.diags, err)
		}
		return
	}
	at := reconcile.Attachment{Volume: p.volume, Machine: machine, From: p.state.text("machine_id")}
	seen := *v
	seen.Marks.GoesWithMachine = seen.Marks.GoesWithMachine && p.note.name == "" // what is planned counts
	if e := reconcile.CheckAttachment(seen, at); e != nil {
		if e.Code != backends.Conflict {
			report(p.diags, e)
			return
		}
		warn(p.diags, e, fmt.Sprintf("Attached elsewhere: %q", p.volume.Volume), "Unless this plan detaches it there first, the apply will be refused.")
	}
}
