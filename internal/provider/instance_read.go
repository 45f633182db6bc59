// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	if moved(state) {
		noIdentity(ctx, resp.Identity)
		return // nothing says which account it is in; the plan knows
	}
	setIdentity(ctx, resp.Identity, state.text("uri"), &resp.Diagnostics)
	ref, account, err := r.data.openRecorded(reference.KindInstance, state, "machine_id")
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	m, err := account.ReadOwned(ctx, reconcile.Owned{
		Pool: ref.PoolRef().ID(), ID: state.text("machine_id"), Key: state.text("id"), Claim: state.text("claim"), Name: state.text("name"),
	})
	switch {
	case backends.HasCode(err, backends.NotFound):
		resp.Diagnostics.AddWarning("NOT_FOUND: the machine is gone", fmt.Sprintf("The machine %q (%s) isn't in the cloud any more, so a new one is planned. "+
			"If all machines of the account are missing, its credentials may be those of another project: then don't apply.",
			state.text("name"), state.text("machine_id")))
		resp.State.RemoveResource(ctx)
		return
	case unreadable(err):
		r.data.warnUnreadable(&resp.Diagnostics, account, err)
		return
	case err != nil:
		report(&resp.Diagnostics, err)
		return
	}
	if m.Partial {
		resp.Diagnostics.AddWarning("Not reachable now", fmt.Sprintf("Of the machine %q (%s) little can be read: %s The recorded values are kept.", cmp.Or(m.Name, state.text("name")), m.ID, m.Message))
		return
	}
	switch reconcile.Own(m.Marks, state.text("id"), state.text("claim")) {
	case reconcile.Theirs:
		if state.text("claim") != "" {
			resp.Diagnostics.AddWarning("CONFLICT: claimed by another state", fmt.Sprintf("The machine %q (%s) was claimed by another run or state since. "+
				"It is left alone: the recorded values are kept, an update would be refused, and destroying this resource only forgets it.", m.Name, m.ID))
			return
		}
	case reconcile.Foreign:
		resp.Diagnostics.AddWarning("CONFLICT: another resource's machine", fmt.Sprintf("The machine %q (%s) carries the id of another resource; the recorded values are kept.", m.Name, m.ID))
		return
	case reconcile.Unmarked:
		if state.text("claim") != "" {
			resp.Diagnostics.AddWarning("ACCESS_DENIED: the marks are gone", fmt.Sprintf("The machine %q (%s) carries none of our labels or tags any more, so it will not be changed or deleted. "+
				"If it is this resource's machine, remove it from the state and import it again.", m.Name, m.ID))
		}
	case reconcile.Ours, reconcile.Unclaimed:
	}
	before := observed(ctx, req.Private)
	was := before.Accepted
	lostOne := lostMarks(m.Marks, ref, state.text("claim"), true)
	m.Marks.Doubled = m.Marks.Doubled || lostOne // they are to be written again
	if state.isNull("offer") {
		instanceImported(state, m)
		was = accept(m)
	} else {
		// A machine that was complete and isn't any more has lost marks of ours.
		lost := lostOne || halfMade(m) && before.Digest != "" && !before.HalfMade
		warnRecorded(&resp.Diagnostics, state, m, was, lost)
	}
	m.Addresses = account.Addresses(ctx, m, instanceSpec(state, ref.PoolRef(), account.Definition, ""), recordedAddresses(state))
	instanceObserved(state, m)
	instanceObservedWishes(state, m)
	resp.State.Raw = state.raw()
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, observedMarks(m, was))...)
}

// warnRecorded tells of what changed in the cloud since the last apply and isn't
// refreshed, in one warning per machine.
func warnRecorded(diags *diag.Diagnostics, state record, m backends.Machine, was accepted, lost bool) {
	var differ []string
	compare := func(name, seen, before string) {
		switch {
		case seen == before || before == "":
		case seen == "":
			differ = append(differ, fmt.Sprintf("%s was %q and is gone", name, before))
		default:
			differ = append(differ, fmt.Sprintf("%s was %q and is %q", name, before, seen))
		}
	}
	compare("name", m.Name, was.Name)
	if m.Offer != "" { // else the cloud doesn't say it
		compare("offer", m.Offer, was.Offer)
	}
	if m.ImageID != "" { // an image that was deleted is no change of the machine
		compare("image_id", m.ImageID, was.ImageID)
	}
	for _, k := range slices.Sorted(maps.Keys(state.textMap("labels"))) {
		seen, there := m.Labels[k]
		before, had := was.Labels[k]
		switch {
		case had && !there:
			differ = append(differ, fmt.Sprintf("the label %s was %q and is gone", k, before))
		case before == "" && had && seen != "":
			differ = append(differ, fmt.Sprintf("the label %s was empty and is %q", k, seen))
		default:
			compare("the label "+k, seen, before)
		}
	}
	if lost {
		warnLostMarks(diags, m.About())
	}
	if len(differ) > 0 && (lost || !halfMade(m)) {
		diags.AddWarning("Changed outside", fmt.Sprintf("At the machine %q (%s): %s. It is left as it is; write what it is into the configuration to accept it.",
			m.Name, m.ID, strings.Join(differ, "; ")))
	}
}
