// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// TestNoRoomForAClone: a storage that is full, of whatever kind, is a refusal for want of
// capacity that leaves nothing, so that another offer can be tried.
func TestNoRoomForAClone(t *testing.T) {
	for _, image := range []string{"9000", "pve1/9001"} { // on Ceph, and on a thin pool
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, slow())
			if err := cluster.AddFault(emulator.Rule{Method: "POST", Path: "*/clone", Kind: emulator.KindCapacity}); err != nil {
				t.Fatal(err)
			}
			spec := testSpec()
			spec.Image = image
			m, err := c.MakeMachine(t.Context(), spec)
			if e := wantError(t, err); e.Reason != backends.ReasonCapacity || e.Ambiguous || m.ID != "" || e.Remedy == "" {
				t.Errorf("%s: %+v, %+v", image, m, e)
			}
			if left := cluster.Machines(); len(left) > 0 {
				t.Errorf("%s: left %+v", image, left)
			}
			mustCreate(t, c, spec)
		})
	}
}
