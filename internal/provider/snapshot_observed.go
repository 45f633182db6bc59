// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// snapshotSeen is what the private state holds of a snapshot as last seen. A plan
// and a destroy go by it, without a call.
type snapshotSeen struct {
	ID     string              `json:"id,omitempty"`
	Key    string              `json:"key,omitempty"`
	Kind   backends.VolumeKind `json:"kind,omitempty"`   // of its volume
	Volume string              `json:"volume,omitempty"` // the cloud's id of its volume
	Region string              `json:"region,omitempty"`
	// HalfMade: the next update finishes it.
	HalfMade bool `json:"half_made,omitempty"`
	// Gone: the cloud doesn't have it any more. What is recorded stays, and nothing asks
	// the cloud to change or delete it (DESIGN.md §5, "Lost data is loud").
	Gone bool `json:"gone,omitempty"`
}

func seenSnapshot(key string, s backends.Snapshot) snapshotSeen {
	return snapshotSeen{ID: s.ID, Key: key, Kind: s.Kind, Volume: s.Volume, Region: s.Region, HalfMade: snapshotUnfinished(s)}
}

func (s snapshotSeen) encode() []byte {
	out, err := json.Marshal(s)
	if err != nil {
		return []byte(`{}`) // these fields always encode
	}
	return out
}

func readSnapshotSeen(ctx context.Context, private privateGetter) snapshotSeen {
	raw, _ := private.GetKey(ctx, observedKey)
	var seen snapshotSeen
	if len(raw) > 0 {
		if json.Unmarshal(raw, &seen) != nil {
			seen = snapshotSeen{} // what another version left is as none, not half of it
		}
	}
	return seen
}

// snapshotUnfinished tells whether the making of a snapshot of ours didn't come to
// its end. One that failed has: nothing finishes it.
func snapshotUnfinished(s backends.Snapshot) bool {
	return s.Marks.Managed && !s.Marks.Complete && s.State != backends.StateError
}

// snapshotObserved is what a snapshot shows, attribute by attribute: the one mapping
// that create, read and update share.
func snapshotObserved(r record, s backends.Snapshot) {
	r.setText("snapshot_id", s.ID)
	state, message := s.State, s.Message
	if snapshotUnfinished(s) {
		state = backends.StatePending
		message = "Creation was not completed; the next apply finishes it."
	}
	r.setText("state", string(state))
	r.setText("message", message)
	r.setNumber("size_gib", nil)
	if s.SizeGiB > 0 {
		r.setNumber("size_gib", new(big.Rat).SetInt64(s.SizeGiB))
	}
	r.setText("created_at", "")
	if !s.Created.IsZero() {
		r.setText("created_at", s.Created.UTC().Format(time.RFC3339))
	}
}

// snapshotGone records that the cloud doesn't have the snapshot any more.
func snapshotGone(r record) {
	r.setText("state", string(backends.StateError))
	r.setText("message", fmt.Sprintf("The snapshot %s isn't in the cloud any more. It is not made again by itself, since what it held is gone: "+
		"remove the resource, or replace it (-replace) for a new snapshot of the volume as it is now.", r.text("snapshot_id")))
}
