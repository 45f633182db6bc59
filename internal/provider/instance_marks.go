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
}

func observedMarks(m backends.Machine) []byte {
	out, err := json.Marshal(privateObserved{Digest: m.Marks.Digest, Network: m.Network})
	if err != nil {
		return []byte(`{}`) // two strings always encode
	}
	return out
}

type privateGetter interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// differenceOf compares a plan with a state and what was seen of the machine.
func differenceOf(ctx context.Context, plan, state, config record, private privateGetter) instanceDifference {
	raw, _ := private.GetKey(ctx, observedKey)
	var o privateObserved
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &o) // what another version left is as none
	}
	return instanceDifference{
		plan: plan, state: state, config: config, key: state.text("id"),
		marks: backends.Marks{Digest: o.Digest}, network: o.Network,
	}
}
