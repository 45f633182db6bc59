// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// lostMessage is the message of a volume that is gone from the cloud. Together with
// the state error it is the mark by which plans, updates and deletes know a lost
// volume. It is in the state, not in private data, since the delete of a replaced
// or tainted resource isn't handed the private data of the object that it deletes.
const lostMessage = "The volume is gone from the cloud, and its data with it. It is not made again by itself."

// lost tells whether the last refresh found the volume gone.
func lost(r record) bool {
	return r.text("state") == string(backends.StateError) && r.text("message") == lostMessage
}

// markLost records that the volume is gone; all else stays as it was, and a later
// refresh that finds it sets all of it anew.
func markLost(r record) {
	r.setText("state", string(backends.StateError))
	r.setText("message", lostMessage)
}

// unfinished tells whether the making of a volume of ours didn't come to its end,
// and still can. One in error never does: it is shown for what it is.
func unfinished(v backends.Volume) bool {
	return v.Marks.Managed && !v.Marks.Complete && v.State != backends.StateError
}

// volumeObserved is what a volume shows, attribute by attribute: the one mapping
// that create, read and update share. named are the instances that the record's
// instances name, asked those that were asked for without an end.
func volumeObserved(r record, v backends.Volume, named []namedInstance, asked []askedInstance) {
	r.setText("volume_id", v.ID)
	r.setText("urn", v.URN)
	r.setText("device", v.Device)
	r.setWhole("observed_size_gib", v.SizeGiB)
	state, message := v.State, v.Message
	if unfinished(v) {
		state = backends.StatePending
		message = "Creation was not completed; the next apply finishes it."
	}
	r.setText("state", string(state))
	r.setText("message", message)
	r.setObject("mount", mountOf(v))
	r.setObjects("attachments", attachments(v, named, asked, !r.isNull("instances")))
}

func mountOf(v backends.Volume) map[string]string {
	if v.Mount == nil {
		return nil
	}
	return map[string]string{"source": v.Mount.Source, "type": v.Mount.Type}
}

// The words of an attachment's state and desired_state.
const (
	attachmentAttached = "attached"
	attachmentDetached = "detached"
	attachmentPending  = "pending"
)

// attachments are the machines that have the volume, those that should, and those
// that may still get it, by their ids. wanted tells whether `instances` is set.
func attachments(v backends.Volume, named []namedInstance, asked []askedInstance, wanted bool) []map[string]string {
	ids := withAsked(slices.Concat(v.Machines, machines(named)), asked)
	rows := make([]map[string]string, len(ids))
	for i, id := range ids {
		row := map[string]string{"machine_id": id, "instance_id": "", "state": attachmentAttached, "desired_state": ""}
		if wanted {
			row["desired_state"] = attachmentDetached
		}
		for _, n := range named {
			if n.machine == id {
				row["instance_id"], row["desired_state"] = n.ref.ID(), attachmentAttached
			}
		}
		// Who mounts a shared volume isn't known: it is what the state says.
		if v.Kind != backends.SharedVolume && !v.AttachedTo(id) {
			row["state"] = attachmentPending
		}
		rows[i] = row
	}
	return rows
}

// attachmentsOf are the rows of a record's attachments.
func attachmentsOf(r record) []backends.Values {
	rows, _ := treeOf(r.values["attachments"]).([]any)
	var out []backends.Values
	for _, row := range rows {
		if attributes, ok := row.(backends.Values); ok {
			out = append(out, attributes)
		}
	}
	return out
}

// attachedMachines are the machines that a record's attachments show.
func attachedMachines(r record) []string {
	var out []string
	for _, row := range attachmentsOf(r) {
		if id, ok := row["machine_id"].(string); ok {
			out = append(out, id)
		}
	}
	return out
}

// releasable are the machines that an apply may take a volume from: those that its
// plan showed. A foreign one gives way only to an instance that is named.
func releasable(state record, had, want []namedInstance) []string {
	out := machines(had)
	if len(want) > 0 {
		out = append(out, attachedMachines(state)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// keepNamed makes a record's instances those that are named; nothing where they are
// null.
func keepNamed(r record, named []namedInstance) {
	if r.isNull("instances") {
		return
	}
	uris := make([]string, len(named))
	for i, n := range named {
		uris[i] = n.uri
	}
	r.setTexts("instances", uris)
}

// volumeImported fills what an import could not know: what the volume shows. The
// filesystem can't be read back: the digest tells whether it is the same. Labels
// and instances are left to the configuration, since unset means hands off.
func volumeImported(r record, v backends.Volume) {
	r.setWhole("size_gib", v.SizeGiB)
	r.setText("region", v.Region)
	r.setText("network_id", v.Network)
	r.setText("kind", string(v.Kind))
	r.setTruth("delete_with_instance", v.Marks.GoesWithMachine)
}

// volumeUnrecorded fills what an older state doesn't hold and what would make another
// volume were it to become something else: it must not, for that.
func volumeUnrecorded(r record, v backends.Volume) {
	for name, is := range map[string]string{"region": v.Region, "network_id": v.Network, "kind": string(v.Kind)} {
		if r.isNull(name) && (name != "network_id" || v.Kind == backends.SharedVolume) {
			r.setText(name, is)
		}
	}
}

// volumeNames sets what follows from the pool and the name.
func volumeNames(r record, pool reference.Reference, name string) {
	ref := pool.VolumeRef(name)
	r.setText("id", ref.ID())
	r.setText("uri", ref.String())
}
