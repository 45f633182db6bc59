// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan fills in what is known, checks what is created or changes, and
// decides between in place and replacement. It runs again during apply, so it is
// deterministic.
func (r *volumeResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		if state, err := newRecord(req.State.Raw); err == nil && moved(state) {
			report(&resp.Diagnostics, notTakenOver(state, reference.KindVolume))
			return
		}
		r.planDestroyed(ctx, req.State.Raw, &resp.Diagnostics)
		return
	}
	ctx, cancel := within(ctx, req.Plan, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	plan, config, err := newRecords(req.Plan.Raw, req.Config.Raw)
	if err != nil || r.data == nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if refuseNulls(&resp.Diagnostics, req.Config.Raw); resp.Diagnostics.HasError() {
		return // an element that was known too late to be validated
	}
	p := &volumePlan{
		volumeDifference: volumeDifferenceOf(ctx, plan.clone(), state, config, req.Private),
		resource:         r, diags: &resp.Diagnostics,
	}
	if !req.State.Raw.IsNull() && lost(state) {
		p.keepLost()
		resp.Plan.Raw = p.plan.raw()
		return
	}
	if plan.isKnown("pool") {
		ref, account, err := r.data.openPool(plan.text("pool"))
		if err != nil {
			report(&resp.Diagnostics, inAttribute("pool", plan.text("pool"), err))
			return
		}
		p.pool, p.account = &ref, account
	}
	switch {
	case req.State.Raw.IsNull():
		p.create(ctx)
	case moved(state):
		if p.takeOver(ctx, readMovedFrom(ctx, req.Private), resp.Private); resp.Diagnostics.HasError() {
			return
		}
		p.update(ctx)
	default:
		p.update(ctx)
	}
	p.note(req.State.Raw.IsNull())
	resp.Plan.Raw = p.plan.raw()
	for _, name := range p.replace {
		resp.RequiresReplace.Append(path.Root(name))
	}
}

// note tells the plans of the volume's attachments what this one has come to, and
// refuses one that says where the volume is beside them.
func (p *volumePlan) note(creates bool) {
	key := p.plan.text("id")
	if key == "" {
		return
	}
	note := volumeNote{
		name: p.plan.text("name"), id: p.state.text("volume_id"), made: creates || len(p.replace) > 0,
		shared: kindOf(p.plan) == backends.SharedVolume,
		named:  !p.config.isNull("instances") && p.config.values["instances"].IsKnown(), goes: p.plan.truth("delete_with_instance"),
	}
	if named, err := namedInstances(p.resource.registry, p.plan, nil); err == nil {
		for _, n := range named {
			note.instances = append(note.instances, n.ref.ID())
		}
	}
	p.resource.data.volumes.plan(key, note)
	if note.named && p.resource.data.volumes.held(key) {
		report(p.diags, bothHold(note.name))
	}
}

// volumePlan is one run of ModifyPlan.
type volumePlan struct {
	volumeDifference
	resource *volumeResource
	diags    *diag.Diagnostics
	pool     *reference.Reference // nil while it isn't known
	account  *reconcile.Account
	replace  []string             // the attributes that force a replacement
	absent   *reference.Reference // the snapshot that from_snapshot names, where it isn't there now
	goes     bool                 // it was said that the data goes with the instance
}

// keepLost plans as little as the cores allow for a volume that is gone: nothing
// may look as if it were made again. Where the configuration and the state both
// have a value, the recorded one may stay; what only one of them has must become
// what the configuration says, and is recorded in place without a call (DESIGN.md
// §5, lost data is loud).
func (p *volumePlan) keepLost() {
	computed := volumeOutputs()
	for _, name := range []string{"region", "kind", "delete_with_instance"} {
		computed[name] = nil
	}
	for name := range p.plan.values {
		_, ours := computed[name]
		if ours && p.config.isNull(name) || !p.config.isNull(name) && !p.state.isNull(name) {
			p.plan.values[name] = p.state.values[name]
		}
	}
}

func (p *volumePlan) create(ctx context.Context) {
	for name := range volumeOutputs() {
		p.plan.setUnknown(name)
	}
	if p.config.isNull("region") {
		p.plan.setUnknown("region")
		if p.account != nil {
			p.plan.setText("region", p.account.Region)
		}
	}
	if p.pool == nil {
		return
	}
	if issues := checkWords(p.plan); len(issues) > 0 {
		reportIssues(p.diags, issues)
		return
	}
	if p.plan.has("name") {
		volumeNames(p.plan, *p.pool, p.plan.text("name"))
		if device := p.account.Device(kindOf(p.plan), p.plan.text("name")); device != "" {
			p.plan.setText("device", device)
		}
	}
	if p.refuseAsked(ctx); p.diags.HasError() {
		return
	}
	p.checkOptions()
	p.checkProtection()
	p.warnFilesystem()
	spec := volumeSpec(p.plan, *p.pool, p.account.Definition)
	wrong, refusals, ok := p.checkNew(ctx, &spec)
	reportIssues(p.diags, wrong)
	if !ok {
		return
	}
	existing := p.existing(ctx, spec)
	if len(refusals) > 0 && p.willKeep(existing) {
		for _, e := range refusals {
			warn(p.diags, e, "No such volume could be made now", "The volume exists, so the apply finishes it or takes it over.")
		}
	} else {
		reportIssues(p.diags, refusals)
	}
	if p.diags.HasError() || !p.plan.has("name") {
		return
	}
	p.warnExisting(existing)
	if p.absent != nil && !p.willKeep(existing) {
		p.warnAbsent(*p.absent)
	}
	if p.plan.has("size_gib") {
		p.checkLimit(ctx, spec)
	}
}

// checkNew holds a new volume against the catalog, the snapshot and the instances
// that it names. What is wrong in itself is apart from what only keeps a new one
// from being made. ok is false when the rest of the plan is to be left out.
func (p *volumePlan) checkNew(ctx context.Context, spec *backends.VolumeSpec) (wrong, refusals []*backends.Error, ok bool) {
	if p.plan.has("from_snapshot") {
		ref, err := snapshotOf(p.resource.registry, p.plan, p.pool)
		if err != nil {
			report(p.diags, err)
			return nil, nil, false
		}
		if spec.Kind != "" {
			found, issues, err := restore(ctx, p.account, ref, spec)
			if err != nil && !p.unchecked(err) {
				return nil, nil, false
			}
			refusals = issues
			switch {
			case found || err != nil:
			case p.replacing():
				refusals = append(refusals, absentInReplacement(ref))
			default:
				p.absent = &ref
			}
		}
	}
	issues, err := p.account.CheckVolume(ctx, *spec)
	if err != nil {
		p.unchecked(err)
		return issues, nil, false
	}
	wrong, more := partIssues(p.account.CheckVolumeForm(*spec), issues)
	named, ok := p.named(ctx, p.plan)
	if !ok {
		return wrong, more, false
	}
	return wrong, append(refusals, more...), p.checkInstances(ctx, *spec, named)
}

// partIssues parts issues into those of the form and the rest.
func partIssues(form, issues []*backends.Error) (wrong, rest []*backends.Error) {
	for _, e := range issues {
		if !slices.ContainsFunc(form, func(w *backends.Error) bool { return w.Error() == e.Error() }) {
			rest = append(rest, e)
		}
	}
	return form, rest
}

// unchecked tells whether an error is one of credentials, with which a plan goes on
// unchecked, with a warning; else it is reported.
func (p *volumePlan) unchecked(err error) bool {
	if unreadable(err) {
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		return true
	}
	report(p.diags, err)
	return false
}

// named are the instances that a record names, with their machines as far as they
// are there; ok is false when something is wrong with them, or can't be found out.
func (p *volumePlan) named(ctx context.Context, r record) (named []namedInstance, ok bool) {
	named, err := namedInstances(p.resource.registry, r, p.pool)
	if err != nil {
		report(p.diags, err)
		return nil, false
	}
	if p.account != nil {
		if err := lookUp(ctx, p.account, named); err != nil {
			p.unchecked(err)
			return nil, false
		}
	}
	if err := repeated(named); err != nil {
		report(p.diags, err)
		return nil, false
	}
	return named, true
}

// checkInstances refuses instances that can't have the volume. One that isn't known
// yet is checked by the apply, before its first call. It tells whether all is well.
func (p *volumePlan) checkInstances(ctx context.Context, spec backends.VolumeSpec, named []namedInstance) bool {
	if err := tooMany(spec.Kind, named); err != nil {
		report(p.diags, err)
		return false
	}
	issues, err := checkAttachable(ctx, p.account, spec, named)
	reportIssues(p.diags, issues)
	return (err == nil || p.unchecked(err)) && len(issues) == 0
}

// existing is the volume that carries the planned one's key already. What can't be
// found out counts as none.
func (p *volumePlan) existing(ctx context.Context, spec backends.VolumeSpec) *backends.Volume {
	if !p.plan.has("name") || spec.Kind == "" {
		return nil
	}
	v, err := p.account.FindVolume(ctx, spec.Marks.Pool, spec.Kind, spec.Marks.Key)
	if err != nil {
		return nil
	}
	return v
}

// replacing tells whether this is the second call of a replacement: then the volume
// is known, and is destroyed before the new one is made. What would be refused then
// must be refused now.
func (p *volumePlan) replacing() bool { return p.seen.known }

// willKeep tells whether an apply finishes or takes over the volume that exists,
// instead of making one.
func (p *volumePlan) willKeep(v *backends.Volume) bool {
	return v != nil && !p.replacing() && (unfinished(*v) || p.pool.Adopt)
}

// warnExisting says what an apply would do about a volume that exists.
func (p *volumePlan) warnExisting(v *backends.Volume) {
	switch {
	case v == nil || unfinished(*v) || p.replacing():
	case p.pool.Adopt:
		p.diags.AddWarning("The volume exists", fmt.Sprintf("The volume %q (%s) carries this volume's id. Since the pool has adopt = true, "+
			"the apply takes it over if it was made from the same inputs.", v.Name, v.ID))
	default:
		p.diags.AddWarning("CONFLICT: the volume exists", fmt.Sprintf("The volume %q (%s) carries this volume's id. Unless this plan destroys it first, and its data with it, "+
			"the apply will be refused, and show how to import it.", v.Name, v.ID))
	}
}

// warnFilesystem says that a volume made from a snapshot has the snapshot's filesystem,
// whatever is asked for.
func (p *volumePlan) warnFilesystem() {
	if p.config.isNull("from_snapshot") || p.plan.isNull("filesystem") {
		return
	}
	p.diags.AddAttributeWarning(path.Root("filesystem"), "Worth a look", "The volume is made from a snapshot, so its filesystem is the snapshot's: nothing is formatted, "+
		"and filesystem is only recorded. A later change of it replaces the volume. Leave it out, or write what the snapshot has.")
}

// checkLimit holds the volume's size against the pool's limit of disk_gib.
func (p *volumePlan) checkLimit(ctx context.Context, spec backends.VolumeSpec) {
	if p.replacing() {
		if err := p.account.FitsVolume(ctx, *p.pool, spec.Marks.Key, spec.SizeGiB); err != nil && !unreadable(err) {
			report(p.diags, err)
			return
		}
	}
	p.warnLimit(ctx, spec)
}

// warnLimit warns where the pool's limit of disk_gib may refuse the apply.
func (p *volumePlan) warnLimit(ctx context.Context, spec backends.VolumeSpec) {
	switch err := p.account.PlanVolume(ctx, *p.pool, spec.Marks.Key, spec.SizeGiB); {
	case backends.HasCode(err, backends.QuotaExceeded):
		warn(p.diags, err, "The apply may be refused", "The limit is checked again, and enforced, when the volume is created or grows; "+
			"what this plan removes first makes room.")
	case err != nil:
		p.unchecked(err)
	}
}

// checkOptions refuses another cloud's options.
func (p *volumePlan) checkOptions() {
	reportIssues(p.diags, foreignOptions(p.resource.registry, p.plan, p.account.Definition))
}
