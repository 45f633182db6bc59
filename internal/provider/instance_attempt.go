// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"math"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// attempt is what an edit that failed was to make of a machine. It is kept in private
// state: what the edit has put on the machine may be there, and is ours to take away
// again, also where the configuration goes back to what it was.
type attempt struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Network string            `json:"network,omitempty"`
	Options backends.Values   `json:"options,omitempty"`
}

// maxAttempts bounds how many failed edits are kept; the last ones are.
const maxAttempts = 4

// attempted are the attempts before, and the one that has failed now.
func attempted(before []attempt, spec backends.MachineSpec) []attempt {
	out := append(slices.Clone(before), attempt{Labels: spec.Labels, Network: spec.Network, Options: spec.Options})
	return out[max(0, len(out)-maxAttempts):]
}

// spec is the wish of an attempt, with the rest from the state's.
func (a attempt) spec(recorded backends.MachineSpec) backends.MachineSpec {
	out := recorded
	out.Labels, out.Network = a.Labels, a.Network
	out.Options, _ = whole(a.Options).(backends.Values)
	return out
}

// whole gives a tree that was read from JSON the types of [backends.Values].
func whole(v any) any {
	switch x := v.(type) {
	case backends.Values:
		out := make(backends.Values, len(x))
		for k, e := range x {
			out[k] = whole(e)
		}
		return out
	case map[string]any:
		return whole(backends.Values(x))
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = whole(e)
		}
		return out
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x)
		}
	}
	return v
}
