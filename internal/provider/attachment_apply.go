// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Create attaches the volume.
func (r *attachmentResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Create)
	defer cancel()
	plan, err := newRecord(req.Plan.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	none := record{typ: plan.typ}
	out, err := r.attach(ctx, plan, none)
	if out.values != nil {
		resp.State.Raw = out.raw()
		attachmentIdentity(ctx, resp.Identity, out)
	}
	if out.values != nil && reconcile.Interrupted(err) {
		// A warning: an error would taint it.
		warn(&resp.Diagnostics, err, "The attachment was interrupted", "It is recorded as pending; the next apply finishes it.")
		return
	}
	reportAttachment(&resp.Diagnostics, err, out.values != nil)
}

// Update brings the volume to another machine, or back to the one it was detached from.
func (r *attachmentResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, changeTimeout, timeouts.Value.Update)
	defer cancel()
	plan, state, err := newRecords(req.Plan.Raw, req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if state.text("state") == attachmentError && plan.isKnown("state") {
		// The volume is gone, so that there is nothing to call.
		resp.State.Raw = plan.raw()
		attachmentIdentity(ctx, resp.Identity, plan)
		return
	}
	out, err := r.attach(ctx, plan, state)
	if out.values != nil {
		resp.State.Raw = out.raw()
		attachmentIdentity(ctx, resp.Identity, out)
	}
	reportAttachment(&resp.Diagnostics, err, out.values != nil)
}

// attach carries a plan out, and returns what is to be recorded; nothing where nothing
// was done. state is where the volume may be taken from.
func (r *attachmentResource) attach(ctx context.Context, plan, state record) (record, error) {
	volume, instance, err := attachmentRefs(r.registry, plan)
	if err != nil {
		return record{}, err
	}
	account, err := r.data.Accounts.Open(volume)
	if err != nil {
		return record{}, inAttribute("volume", plan.text("volume"), err)
	}
	machine, err := machineOf(ctx, account, instance)
	if err != nil {
		return record{}, err
	}
	found, err := account.FindVolume(ctx, volume.PoolID(), backends.BlockVolume, volume.ID())
	if err != nil {
		return record{}, err
	}
	was, from := state.text("volume_id"), state.text("machine_id")
	if found != nil {
		if err := checkMachine(ctx, account, *found, instance, machine); err != nil {
			return record{}, err
		}
		if was != "" && was != found.ID {
			if err := r.detach(ctx, state); err != nil {
				return record{}, err
			}
			from = ""
		}
	}
	v, asked, err := account.AttachVolume(ctx, reconcile.Attachment{Volume: volume, Machine: machine, From: from})
	if err != nil && !asked {
		return record{}, err
	}
	if err != nil && from != "" && from != machine && v.AttachedTo(from) {
		out := state.clone() // it is still where it was, and ours to take from there
		attachmentObserved(out, v, from)
		return out, err
	}
	out := plan.clone()
	out.setText("id", attachmentID(volume, instance))
	attachmentObserved(out, v, machine)
	if err == nil {
		keepPromises(out, plan)
	}
	return out, err
}

// reportAttachment reports what went wrong with an attachment.
func reportAttachment(diags *diag.Diagnostics, err error, recorded bool) {
	switch {
	case err == nil:
	case recorded:
		reportWith(diags, err, "It is recorded, since the cloud may attach the volume all the same; the next apply goes on from what it finds.")
	default:
		report(diags, err)
	}
}

// Delete detaches the volume, unless its own instances has taken the attachment over.
func (r *attachmentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, changeTimeout, timeouts.Value.Delete)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	volume, attachment := noteKeys(r.registry, state)
	r.data.volumes.release(volume, attachment)
	if ref, err := reference.ParseKind(r.registry, reference.KindInstance, state.text("instance")); err == nil {
		if note, ok := r.data.volumes.planned(volume); ok && note.names(ref.ID()) {
			return
		}
	}
	err = r.detach(ctx, state)
	resp.Diagnostics.Append(noteDeleting(ctx, resp.Private, err)...)
	if reconcile.Interrupted(err) {
		reportWith(&resp.Diagnostics, err, "The attachment stays in the state; the next run finds out whether the volume is detached.")
		return
	}
	report(&resp.Diagnostics, err)
}

// detach takes the volume of a state off the state's machine.
func (r *attachmentResource) detach(ctx context.Context, state record) error {
	ref, account, err := r.data.open(reference.KindVolume, state.text("volume"))
	if err != nil {
		return err
	}
	return account.DetachVolume(ctx, ref.PoolID(), state.text("volume_id"), state.text("machine_id"))
}

// Read refreshes where the volume is, through the account's shared lists.
func (r *attachmentResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	attachmentIdentity(ctx, resp.Identity, state)
	ref, account, err := r.data.open(reference.KindVolume, state.text("volume"))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	v, err := account.ReadVolume(ctx, ref.PoolID(), backends.BlockVolume, state.text("volume_id"))
	deleting := wasDeleting(ctx, req.Private)
	switch {
	case backends.HasCode(err, backends.NotFound) && deleting, err == nil && deleting && !v.AttachedTo(state.text("machine_id")):
		resp.State.RemoveResource(ctx) // the deletion took effect, though its end wasn't seen
		return
	case backends.HasCode(err, backends.NotFound):
		r.readGone(ctx, account, ref, state)
		resp.State.Raw = state.raw()
		return
	case unreadable(err):
		r.data.warnUnreadable(&resp.Diagnostics, account, err)
		return
	case err != nil:
		report(&resp.Diagnostics, err)
		return
	}
	resp.Diagnostics.Append(stillThere(ctx, req.Private, resp.Private)...)
	pending := state.text("state") == attachmentPending
	attachmentObserved(state, v, state.text("machine_id"))
	if !pending && state.text("state") == attachmentPending {
		state.setText("state", attachmentDetached)
	}
	resp.State.Raw = state.raw()
}

// readGone records that the volume is gone; or, where another one has its name by now,
// that it isn't attached.
func (r *attachmentResource) readGone(ctx context.Context, account *reconcile.Account, ref reference.Reference, state record) {
	state.setText("state", attachmentError)
	if v, err := account.FindVolume(ctx, ref.PoolID(), backends.BlockVolume, ref.ID()); err == nil && v != nil {
		state.setText("state", attachmentDetached)
	}
}
