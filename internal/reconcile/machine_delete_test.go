// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// With the machine go the volumes that are marked so and hang on it, and no others;
// in one call where the cloud can, after the machine elsewhere.
func TestVolumesGoWithTheirMachine(t *testing.T) {
	for name, selective := range map[string]bool{"selective destroy": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newDiskCloud()
				var b backends.Backend = c
				if selective {
					b = selectiveCloud{c}
				}
				account, pool := openDisks(t, b)
				created, err := account.Create(t.Context(), wish(pool, "web-0"))
				if err != nil {
					t.Fatal(err)
				}
				id := created.Machine.ID
				put := func(name string, goes bool, machines ...string) {
					marks := volumeWish(pool, backends.BlockVolume, name).Spec.Marks
					marks.GoesWithMachine, marks.Complete = goes, true
					c.disks.put(backends.Volume{Name: name, Marks: marks, Machines: machines})
				}
				put("goes", true, id)
				put("stays", false, id)
				put("elsewhere", true, "99")
				put("detached", true)
				going, err := account.GoingWith(t.Context(), id)
				if err != nil || len(going) != 1 || going[0].Name != "goes" {
					t.Fatalf("going: %+v, %v", going, err)
				}
				m := created.Machine
				left, err := account.Delete(t.Context(), Owned{Pool: m.Marks.Pool, ID: id, Key: m.Marks.Key, Claim: m.Marks.Claim})
				if left || err != nil {
					t.Fatal(left, err)
				}
				var names []string
				for _, v := range c.disks.all() {
					names = append(names, v.Name)
				}
				if slices.Sort(names); !slices.Equal(names, []string{"detached", "elsewhere", "stays"}) {
					t.Errorf("left are %v", names)
				}
				want := "delete goes"
				if selective {
					want = "delete goes with " + id
				}
				if got := c.disks.called(); got != want {
					t.Errorf("called %s", got)
				}
			})
		})
	}
}
