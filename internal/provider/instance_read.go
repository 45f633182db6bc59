// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Read refreshes what the cloud shows, through the account's shared lists.
func (r *instanceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := within(ctx, req.State, &resp.Diagnostics, readTimeout, timeouts.Value.Read)
	defer cancel()
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	setIdentity(ctx, resp.Identity, state.text("uri"), &resp.Diagnostics)
	ref, account, err := r.data.open(reference.KindInstance, state.text("uri"))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	m, err := account.Read(ctx, ref.PoolRef().ID(), state.text("machine_id"))
	switch {
	case backends.HasCode(err, backends.NotFound):
		resp.State.RemoveResource(ctx)
		return
	case unreadable(err):
		r.data.warnUnreadable(&resp.Diagnostics, account, err)
		return
	case err != nil:
		report(&resp.Diagnostics, err)
		return
	}
	switch reconcile.Own(m.Marks, state.text("id"), state.text("claim")) {
	case reconcile.Theirs:
		if !state.isNull("claim") {
			resp.Diagnostics.AddWarning("CONFLICT: claimed by another state", fmt.Sprintf("The machine %q (%s) was claimed by another run or state since. "+
				"It is left alone: the recorded values are kept, an update would be refused, and destroying this resource only forgets it.", m.Name, m.ID))
			return
		}
	case reconcile.Foreign:
		resp.Diagnostics.AddWarning("CONFLICT: another resource's machine", fmt.Sprintf("The machine %q (%s) carries the key of another resource; the recorded values are kept.", m.Name, m.ID))
		return
	case reconcile.Unmarked:
		if !state.isNull("claim") {
			resp.Diagnostics.AddWarning("ACCESS_DENIED: the marks are gone", fmt.Sprintf("The machine %q (%s) carries none of our labels or tags any more, so it will not be changed or deleted. "+
				"If it is this resource's machine, remove it from the state and import it again.", m.Name, m.ID))
		}
	case reconcile.Ours, reconcile.Unclaimed:
	}
	if state.isNull("offer") {
		instanceImported(state, m)
	} else {
		warnRecorded(&resp.Diagnostics, state, m)
	}
	instanceObserved(state, m)
	instanceObservedWishes(state, m)
	resp.State.Raw = state.raw()
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, observedMarks(m))...)
}

// warnRecorded tells of differences between the cloud and what is recorded and not
// refreshed.
func warnRecorded(diags *diag.Diagnostics, state record, m backends.Machine) {
	var differ []string
	for _, d := range []struct{ name, seen string }{{"name", m.Name}, {"offer", m.Offer}} {
		if recorded := state.text(d.name); d.seen != "" && recorded != d.seen {
			differ = append(differ, fmt.Sprintf("%s is %q, recorded is %q", d.name, d.seen, recorded))
		}
	}
	for k, v := range state.textMap("labels") {
		if seen, ok := m.Labels[k]; m.Labels != nil && (!ok || seen != v) {
			differ = append(differ, fmt.Sprintf("the label %q is %q, recorded is %q", k, seen, v))
		}
	}
	for _, d := range differ {
		diags.AddWarning("Changed outside", fmt.Sprintf("At the machine %s: %s. It is left as it is.", m.ID, d))
	}
}
