// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Two things keep a volume from being deleted or replaced. deletion_protection stands in
// the cloud, so it holds for every state; where the cloud has no place for it, it is what
// this state records. allow_replacement is what one configuration says about itself.

// volumeProtection is the wish for deletion protection; nil leaves it alone.
func volumeProtection(plan record, account *reconcile.Account) *bool {
	if !plan.has("deletion_protection") || !account.ProtectsVolumes(kindOf(plan)) {
		return nil
	}
	on := plan.truth("deletion_protection")
	return &on
}

// observeProtection records the protection that a volume has, where it is managed.
func observeProtection(r record, v backends.Volume, account *reconcile.Account) {
	if !r.isNull("deletion_protection") && account.ProtectsVolumes(v.Kind) {
		r.setTruth("deletion_protection", v.Protected)
	}
}

// protectedVolume refuses what a volume with deletion protection must not become.
func protectedVolume(state record, what string) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The volume %q (%s) has deletion protection, so it can't be %s.", state.text("name"), state.text("volume_id"), what)
	e.Reason = backends.ReasonProtected
	return e.WithRemedy("Set deletion_protection = false on it and apply that first.")
}

// volumeProtected tells whether a volume is protected: by what its state records, or by what
// the cloud shows, whichever state asked for it there. Of one that isn't this state's any
// more, or can't be read, it knows nothing: who deletes it finds out.
func volumeProtected(ctx context.Context, account *reconcile.Account, pool string, state record) bool {
	v, err := account.ReadVolume(ctx, pool, kindOf(state), state.text("volume_id"))
	switch {
	case backends.HasCode(err, backends.NotFound):
		return false // there is nothing to protect
	case err != nil:
		return state.truth("deletion_protection")
	case reconcile.Own(v.Marks, state.text("id"), state.text("claim")) != reconcile.Ours:
		return false
	}
	return v.Protected || state.truth("deletion_protection") && !account.ProtectsVolumes(v.Kind)
}

// planDestroyed refuses the destruction of a protected volume, and warns where it will be
// refused for something else. What can't be read is passed over: the destruction doesn't
// depend on it.
func (r *volumeResource) planDestroyed(ctx context.Context, stateRaw tftypes.Value, diags *diag.Diagnostics) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	state, err := newRecord(stateRaw)
	if err != nil || r.data == nil || lost(state) {
		return
	}
	ref, account, err := r.data.open(reference.KindVolume, state.text("uri"))
	if err != nil {
		return
	}
	if volumeProtected(ctx, account, ref.PoolID(), state) {
		report(diags, protectedVolume(state, "destroyed"))
		return
	}
	warnSnapshots(ctx, diags, account, kindOf(state), state.text("name"), state.text("volume_id"))
}

// refuseReplacement refuses to replace what this state never took over, what is
// protected, and what the configuration wants kept.
func (p *volumePlan) refuseReplacement(ctx context.Context) {
	if len(p.replace) == 0 {
		return
	}
	why := strings.Join(p.replace, ", ")
	ref, account, err := p.recorded()
	switch {
	case p.imported():
		report(p.diags, backends.Errorf(backends.InvalidState, "The volume was imported and is not taken over yet, so it can't be replaced for a change of %s.", why).
			WithRemedy("Make the configuration match the volume and apply once, which takes it over; change it then."))
	case err == nil && volumeProtected(ctx, account, ref.PoolID(), p.state):
		report(p.diags, protectedVolume(p.state, "replaced for a change of "+why))
	case p.keeps():
		report(p.diags, keptVolume(p.state.text("name"), p.state.text("volume_id"), "for a change of "+why))
	}
}

// refuseAsked refuses a replacement that the user asks for, by -replace, of a volume that
// is protected or that the configuration wants kept. A provider isn't told of it but by
// the second call for a plan, which has no state.
func (p *volumePlan) refuseAsked(ctx context.Context) {
	if !p.replacing() || p.seen.Volume == "" {
		return
	}
	v, err := p.account.ReadVolume(ctx, p.pool.PoolID(), p.seen.Kind, p.seen.Volume)
	if err != nil {
		return // it is gone, or who deletes it finds out
	}
	switch {
	case v.Protected:
		e := backends.Errorf(backends.InvalidState, "The volume %q (%s) has deletion protection, so it can't be replaced.", v.Name, v.ID)
		e.Reason = backends.ReasonProtected
		report(p.diags, e.WithRemedy("Set deletion_protection = false on it and apply that first."))
	case p.keeps():
		report(p.diags, keptVolume(v.Name, v.ID, "as the plan was asked to"))
	}
}

// keeps tells whether the configuration wants no replacement.
func (p *volumePlan) keeps() bool {
	r := p.plan
	if !r.isKnown("allow_replacement") {
		r = p.state
	}
	return r.has("allow_replacement") && !r.truth("allow_replacement")
}

func keptVolume(name, id, why string) *backends.Error {
	return backends.Errorf(backends.InvalidState, "The volume %q (%s) has allow_replacement = false, so it isn't replaced %s.", name, id, why).
		At("allow_replacement").
		WithRemedy("A replacement deletes the volume, and its data with it. To keep it, undo the change; to replace it, set allow_replacement = true.")
}

// checkProtection says where deletion protection doesn't reach.
func (p *volumePlan) checkProtection() {
	if p.account == nil {
		return
	}
	if p.plan.truth("deletion_protection") && !p.account.ProtectsVolumes(kindOf(p.plan)) && !p.state.truth("deletion_protection") {
		p.diags.AddAttributeWarning(path.Root("deletion_protection"), fmt.Sprintf("Protected by this state only: %q", p.plan.text("name")),
			fmt.Sprintf("%s has no protection for %s volumes, and no place for a mark of ours. So it is recorded in this state, whose plans are refused; other states and tools don't know it.",
				p.account.Definition.Title, kindOf(p.plan)))
	}
	if p.state.truth("deletion_protection") && p.plan.isNull("deletion_protection") && p.account.ProtectsVolumes(kindOf(p.plan)) {
		p.diags.AddAttributeWarning(path.Root("deletion_protection"), "Protection stays on",
			"Without deletion_protection the volume's protection is left as it is: on. To lift it, set deletion_protection = false.")
	}
}
