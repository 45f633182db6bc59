// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// observedKey names the private state that holds a machine's marks as last seen.
// A plan compares what can't be read back with their digest, without a call.
const observedKey = "observed"

type privateObserved struct {
	Digest  string `json:"digest,omitempty"`
	Network string `json:"network,omitempty"`
	Offer   string `json:"offer,omitempty"`
	// Key is the one that the digest is made with. It isn't the state's where a rename
	// was cut off.
	Key string `json:"key,omitempty"`
	// Protected: the cloud refuses to delete the machine, whoever told it to.
	Protected bool `json:"protected,omitempty"`
	// Renaming: the machine carries two keys, as a rename leaves that was cut off.
	Renaming bool `json:"renaming,omitempty"`
	// Machine is the cloud's id, for the second call of a replacement's plan, which
	// isn't handed the state.
	Machine string `json:"machine,omitempty"`
	// Accepted is what an apply last found and left as it is. A refresh warns of what
	// has changed since then, not of what was recorded only.
	Accepted accepted `json:"accepted"`
	// HalfMade: the completion mark is missing, a mark has two values, or a
	// reinstallation didn't come to its end, so the next update finishes it.
	HalfMade bool `json:"half_made,omitempty"`
}

type accepted struct {
	Name    string            `json:"name,omitempty"`
	Offer   string            `json:"offer,omitempty"`
	ImageID string            `json:"image_id,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Reinstalled: an update installed another image and failed before its end, so the
	// image wasn't seen, and the digest may be the old one's.
	Reinstalled bool `json:"reinstalled,omitempty"`
	// Cut: an update failed before its end, so that the next one goes on with it, also
	// where what it had yet to do shows nowhere.
	Cut bool `json:"cut,omitempty"`
	// Attempts are edits that have failed since the last one that went well.
	Attempts []attempt `json:"attempts,omitempty"`
}

func accept(m backends.Machine) accepted {
	return accepted{Name: m.Name, Offer: m.Offer, ImageID: m.ImageID, Labels: m.Labels}
}

func observedMarks(m backends.Machine, a accepted) []byte {
	out, err := json.Marshal(privateObserved{
		Digest: m.Marks.Digest, Network: m.Network, Offer: m.Offer, Machine: m.ID, Accepted: a,
		Key: m.Marks.Key, Protected: m.Protected, Renaming: m.Marks.OtherKey != "",
		HalfMade: halfMade(m) || m.Marks.Doubled || a.Reinstalled,
	})
	if err != nil {
		return []byte(`{}`) // these fields always encode
	}
	return out
}

type privateGetter interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// halfMade tells whether the making of a machine of ours didn't come to its end.
func halfMade(m backends.Machine) bool { return m.Marks.Managed && !m.Marks.Complete }

// differenceOf compares a plan with a state and what was seen of the machine.
func differenceOf(ctx context.Context, plan, state, config record, private privateGetter) instanceDifference {
	return instanceDifference{plan: plan, state: state, config: config, key: state.text("id"), seen: observed(ctx, private)}
}

func observed(ctx context.Context, private privateGetter) privateObserved {
	raw, _ := private.GetKey(ctx, observedKey)
	var seen privateObserved
	if len(raw) > 0 {
		if json.Unmarshal(raw, &seen) != nil {
			seen = privateObserved{} // what another version left is as none, not half of it
		}
	}
	return seen
}
