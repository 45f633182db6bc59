// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// volumePrivate is the private state of a volume: its marks as last seen. A plan
// compares what can't be read back with their digest, without a call.
type volumePrivate struct {
	Digest string `json:"digest,omitempty"`
	// Accepted is what an apply last found and left as it is. A refresh warns of what
	// has changed since then.
	Accepted volumeAccepted `json:"accepted"`
	// Key is the one that the volume carries: salt of its digest. It is another one than
	// the state's where a rename was cut off.
	Key string `json:"key,omitempty"`
	// Unfinished: the next update finishes the making, or a rename.
	Unfinished bool `json:"unfinished,omitempty"`
	// Asked are instances that an apply asked for without seeing the end of it.
	Asked []askedInstance `json:"asked,omitempty"`
	// Volume and Kind name the volume for the second call of a replacement's plan,
	// which isn't handed the state.
	Volume string              `json:"volume,omitempty"`
	Kind   backends.VolumeKind `json:"kind,omitempty"`

	known bool // there was some
}

type volumeAccepted struct {
	Name   string            `json:"name,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func acceptVolume(v backends.Volume) volumeAccepted {
	return volumeAccepted{Name: v.Name, Labels: v.Labels}
}

// volumeMarks is the private state of a volume whose key is that of the state.
func volumeMarks(v backends.Volume, key string, a volumeAccepted, asked []askedInstance) []byte {
	out, err := json.Marshal(volumePrivate{
		Digest: v.Marks.Digest, Key: v.Marks.Key, Unfinished: unfinished(v) || v.Marks.Doubled || halfRenamed(v, key),
		Accepted: a, Asked: asked, Volume: v.ID, Kind: v.Kind,
	})
	if err != nil {
		return []byte(`{}`) // these fields always encode
	}
	return out
}

// halfRenamed tells whether a volume of ours carries another key than that of the state:
// the state doesn't know yet how a rename ended.
func halfRenamed(v backends.Volume, key string) bool {
	return v.Marks.Managed && !v.Marks.Fixed && v.Marks.Key != key
}

func volumeSeen(ctx context.Context, private privateGetter) volumePrivate {
	raw, _ := private.GetKey(ctx, observedKey)
	var seen volumePrivate
	if len(raw) > 0 {
		if json.Unmarshal(raw, &seen) != nil {
			seen = volumePrivate{} // what another version left is as none, not half of it
		}
		seen.known = true
	}
	return seen
}

// volumeDifference compares a plan with a state, as [instanceDifference] does.
type volumeDifference struct {
	plan, state, config record
	seen                volumePrivate
	key                 string
}

// volumeDifferenceOf compares a plan with a state and what was seen of the volume.
func volumeDifferenceOf(ctx context.Context, plan, state, config record, private privateGetter) volumeDifference {
	seen := volumeSeen(ctx, private)
	return volumeDifference{plan: plan, state: state, config: config, key: firstOf(seen.Key, state.text("id")), seen: seen}
}

// imported tells whether the state never took the volume.
func (d volumeDifference) imported() bool { return d.state.text("claim") == "" }

func (d volumeDifference) differs(name string) bool { return !d.plan.equal(name, d.state) }

// changes tells whether a value is known to become another one. What isn't known
// yet is no change: it must not destroy data.
func (d volumeDifference) changes(name string) bool {
	return d.plan.isKnown(name) && d.differs(name)
}

// filesystem tells whether another filesystem is asked for than the volume was made
// with. Unset is hands off: it wipes nothing. Where none was recorded, neither in the
// state nor in the marks, nobody knows what is on the volume: someone else may have
// made it, or its guest have formatted it. That is [volumeDifference.unrecorded], and
// no reason to destroy it.
func (d volumeDifference) filesystem() bool {
	if !d.changes("filesystem") || d.plan.isNull("filesystem") {
		return false
	}
	want := filesystemOf(d.plan.text("filesystem"))
	if !d.state.isNull("filesystem") {
		return want != filesystemOf(d.state.text("filesystem"))
	}
	return !d.noFilesystemMarked() && !backends.DigestMatches(d.seen.Digest, d.key, backends.DigestFilesystem, want)
}

// unrecorded tells whether a filesystem is asked for where none was recorded.
func (d volumeDifference) unrecorded() bool {
	return d.changes("filesystem") && d.state.isNull("filesystem") && filesystemOf(d.plan.text("filesystem")) != "" && d.noFilesystemMarked()
}

// noFilesystemMarked tells whether the volume's marks name no filesystem.
func (d volumeDifference) noFilesystemMarked() bool {
	return backends.DigestMatches(d.seen.Digest, d.key, backends.DigestFilesystem, "")
}
