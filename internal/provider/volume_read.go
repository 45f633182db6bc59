// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
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
func (r *volumeResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
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
	ref, account, err := r.data.openRecorded(reference.KindVolume, state, "volume_id")
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	kind := kindOf(state)
	if state.isNull("kind") {
		kind = "" // an older state's: either
	}
	v, err := account.ReadVolume(ctx, ref.PoolRef().ID(), kind, state.text("volume_id"))
	switch {
	case backends.HasCode(err, backends.NotFound) && wasDeleting(ctx, req.Private):
		resp.State.RemoveResource(ctx) // the deletion took effect, though its end wasn't seen
		return
	case backends.HasCode(err, backends.NotFound):
		resp.Diagnostics.AddWarning(fmt.Sprintf("NOT_FOUND: the volume is gone: %q", state.text("name")), fmt.Sprintf("The volume %q (%s) isn't in the cloud any more, and its data is gone. "+
			"Its state is error, and nothing makes it again by itself: an empty volume in its place could pass for the old one. "+
			"Remove the resource, or make a new volume with -replace=ADDRESS. "+
			"If all objects of the account are missing, its credentials may be those of another project.", state.text("name"), state.text("volume_id")))
		markLost(state)
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
	if !owned(&resp.Diagnostics, v, state) {
		return
	}
	seen := volumeSeen(ctx, req.Private)
	was, asked := seen.Accepted, seen.Asked
	lostOne := lostMarks(v.Marks, ref, state.text("claim"), true)
	v.Marks.Doubled = v.Marks.Doubled || lostOne // they are to be written again
	if lostOne || unfinished(v) && seen.Digest != "" && !seen.Unfinished {
		warnLostMarks(&resp.Diagnostics, v.About())
	}
	volumeUnrecorded(state, v)
	if state.isNull("size_gib") {
		volumeImported(state, v)
		was = acceptVolume(v)
	} else {
		warnVolumeChanged(&resp.Diagnostics, state, v, was)
	}
	named, err := r.stillAttached(ctx, account, state, v)
	switch {
	case unreadable(err):
		r.data.warnUnreadable(&resp.Diagnostics, account, err)
		return
	case err != nil:
		report(&resp.Diagnostics, err)
		return
	}
	if !state.isNull("instances") {
		named = append(named, missing(nowAttached(r.registry, asked, v), named)...)
	}
	asked = unsettled(asked, v, named)
	keepNamed(state, named)
	volumeObserved(state, v, named, asked)
	if v.Marks.Managed {
		state.setTruth("delete_with_instance", v.Marks.GoesWithMachine)
	}
	observeProtection(state, v, account)
	if v.State == backends.StateReady && !unfinished(v) && v.SizeGiB < state.whole("size_gib") {
		state.setWhole("size_gib", v.SizeGiB) // the plan grows it
	}
	warnForeign(&resp.Diagnostics, state, v, named)
	resp.State.Raw = state.raw()
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, observedKey, volumeMarks(v, state.text("id"), was, asked))...)
}

// owned tells whether a refresh may record what a volume shows. Where it may not,
// the recorded values are kept, with a warning.
func owned(diags *diag.Diagnostics, v backends.Volume, state record) bool {
	claim := state.text("claim")
	switch reconcile.Own(v.Marks, state.text("id"), claim) {
	case reconcile.Theirs:
		if claim != "" {
			diags.AddWarning("CONFLICT: claimed by another state", fmt.Sprintf("The volume %q (%s) was claimed by another run or state since. "+
				"It is left alone: the recorded values are kept, an update would be refused, and destroying this resource only forgets it.", v.Name, v.ID))
			return false
		}
	case reconcile.Foreign:
		diags.AddWarning("CONFLICT: another resource's volume", fmt.Sprintf("The volume %q (%s) carries the id of another resource; the recorded values are kept.", v.Name, v.ID))
		return false
	case reconcile.Unmarked:
		if claim != "" {
			diags.AddWarning("ACCESS_DENIED: the marks are gone", fmt.Sprintf("The volume %q (%s) carries none of our labels or tags any more, so it will not be changed or deleted. "+
				"If it is this resource's volume, remove it from the state and import it again.", v.Name, v.ID))
		}
	case reconcile.Ours, reconcile.Unclaimed:
	}
	return true
}

// stillAttached are those of the state's instances whose machines have the volume.
// A cloud doesn't know who mounts a shared volume: of that, they are those whose
// machines are there, and in its network.
func (r *volumeResource) stillAttached(ctx context.Context, account *reconcile.Account, state record, v backends.Volume) (
	[]namedInstance, error) {
	named := recordedInstances(r.registry, state)
	if err := lookUp(ctx, account, named); err != nil {
		return nil, err
	}
	var out []namedInstance
	for _, n := range named {
		has := n.machine != "" && v.AttachedTo(n.machine)
		if v.Kind == backends.SharedVolume && n.machine != "" {
			m, err := account.Read(ctx, n.ref.PoolRef().ID(), n.machine)
			if err != nil && !backends.HasCode(err, backends.NotFound) {
				return nil, err
			}
			has = err == nil && m.Network == v.Network
		}
		if has {
			out = append(out, n)
		}
	}
	return out, nil
}

// nowAttached are the instances that were asked for and that have the volume by now.
func nowAttached(registry *backends.Registry, asked []askedInstance, v backends.Volume) []namedInstance {
	return slices.DeleteFunc(askedInstances(registry, asked), func(n namedInstance) bool { return !v.AttachedTo(n.machine) })
}

// warnForeign tells of machines that have the volume and that `instances`, where it
// is set, doesn't name.
func warnForeign(diags *diag.Diagnostics, state record, v backends.Volume, named []namedInstance) {
	if state.isNull("instances") {
		return
	}
	ours := machines(named)
	foreign := slices.DeleteFunc(slices.Clone(v.Machines), func(id string) bool { return slices.Contains(ours, id) })
	if len(foreign) > 0 {
		diags.AddWarning("Attached outside", fmt.Sprintf("The volume %q (%s) is attached to a machine that instances doesn't name: %s. "+
			"It stays there until instances names another one, which it then moves to.", v.Name, v.ID, strings.Join(foreign, ", ")))
	}
}

// warnVolumeChanged tells of what changed in the cloud since the last apply and
// isn't refreshed, in one warning per volume.
func warnVolumeChanged(diags *diag.Diagnostics, state record, v backends.Volume, was volumeAccepted) {
	if unfinished(v) {
		return
	}
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
	if !halfRenamed(v, state.text("id")) {
		compare("name", v.Name, was.Name)
	}
	for _, k := range slices.Sorted(maps.Keys(state.textMap("labels"))) {
		compare("the label "+k, v.Labels[k], was.Labels[k])
	}
	if asked := state.whole("size_gib"); v.SizeGiB > asked {
		differ = append(differ, fmt.Sprintf("size_gib is %d and the cloud shows %d", asked, v.SizeGiB))
	}
	if len(differ) > 0 {
		diags.AddWarning("Changed outside", fmt.Sprintf("At the volume %q (%s): %s. It is left as it is; write what it is into the configuration to accept it.",
			v.Name, v.ID, strings.Join(differ, "; ")))
	}
}
