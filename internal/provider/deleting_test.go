// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// What an apply deleted is no lost data, though it didn't see the end of it. What it
// failed to delete, and someone else deletes later, is.
func TestDeletionWhoseEndWasNotSeen(t *testing.T) {
	for name, test := range map[string]struct {
		fault emulator.Rule
		// refreshed: a refresh finds the volume, before someone deletes it.
		refreshed bool
		lost      bool
	}{
		"carried out": {fault: emulator.Rule{Kind: emulator.KindLoseAnswer}},
		"refused":     {fault: emulator.Rule{Kind: emulator.KindStatus, Status: http.StatusForbidden}, refreshed: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newWorld(t)
				w := cloud.wire()
				volume, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, nil))
				volume = done(t, volume, diags)
				test.fault.Method, test.fault.Times = http.MethodDelete, emulator.Forever
				cloud.fault(test.fault)
				left, diags := w.destroy(volumeType, volume)
				if errorsOf(diags) == "" || left.value.IsNull() {
					t.Fatal("the deletion didn't fail")
				}
				cloud.hetzner.ClearFaults()
				if test.refreshed {
					left, diags = cloud.wire().read(volumeType, left)
					left = done(t, left, diags)
					cloud.lose()
				}
				read, diags := cloud.wire().read(volumeType, left)
				switch {
				case test.lost && read.text(t, "state") != "error":
					t.Errorf("recorded %s", read.value)
				case !test.lost && (!read.value.IsNull() || len(diags) > 0):
					t.Errorf("recorded %s, %s", read.value, warned(diags))
				}
			})
		})
	}
}
