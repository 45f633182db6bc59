// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// A snapshot is made of a volume that is there and ready, be it growing.
func TestVolumeUnusable(t *testing.T) {
	ref := reference.Reference{Volume: "data"}
	for state, want := range map[backends.State]backends.Code{
		backends.StatePending: backends.InvalidState, backends.StateError: backends.InvalidState,
		backends.StateDeleting: backends.InvalidState, backends.StateDeleted: backends.InvalidState,
		backends.StateReady: "", backends.StateUpdating: "",
	} {
		err := volumeUnusable(ref, &backends.Volume{ID: "7", Name: "data", State: state})
		if want == "" && err != nil || want != "" && !backends.HasCode(err, want) {
			t.Errorf("%s: got %v, want %s", state, err, want)
		}
	}
	if err := volumeUnusable(ref, nil); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("no volume: %v", err)
	}
}
