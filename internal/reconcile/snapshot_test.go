// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

func snapshotWish(pool reference.Reference, volume, name string) SnapshotWish {
	key := reference.SnapshotID(reference.VolumeID(pool.PoolRef().ID(), "data"), name)
	return SnapshotWish{Pool: pool, Kind: backends.BlockVolume, Spec: backends.SnapshotSpec{
		Name: name, Volume: volume,
		Marks: backends.Marks{
			Managed: true, Key: key, Account: pool.AccountRef().ID(), Pool: pool.PoolRef().ID(), Claim: NewClaim(), Volume: "data",
		},
	}}
}

func TestSnapshotsOfAVolumeCountEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		for i := range 20 {
			c.snaps.put(backends.Snapshot{Name: fmt.Sprintf("by-hand-%d", i), Volume: "v1"})
		}
		c.snaps.put(backends.Snapshot{Name: "another-volumes", Volume: "v2"})
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[string]int{}
		for i := range 8 {
			wg.Go(func() {
				_, err := account.CreateSnapshot(t.Context(), snapshotWish(pool, "v1", fmt.Sprintf("daily-%d", i)))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					codes["made"]++
				case backends.HasCode(err, backends.QuotaExceeded):
					codes["quota"]++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if codes["made"] != 5 || codes["quota"] != 3 {
			t.Errorf("got %v", codes)
		}
	})
}

func TestSnapshotNameIsUniqueOnItsVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		c.snaps.put(backends.Snapshot{Name: "daily", Volume: "v1"})
		if _, err := account.CreateSnapshot(t.Context(), snapshotWish(pool, "v1", "daily")); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("got %v", err)
		}
		if _, err := account.CreateSnapshot(t.Context(), snapshotWish(pool, "v2", "daily")); err != nil {
			t.Error(err)
		}
	})
}

// A snapshot of the volume that had the name before is not the one that is wanted.
func TestSnapshotOfAnotherVolumeIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		pool.Adopt = true
		old := snapshotWish(pool, "v1", "daily")
		old.Spec.Marks.Complete = true
		c.snaps.put(backends.Snapshot{Name: "daily", Volume: "v1", Marks: old.Spec.Marks})
		if _, err := account.CreateSnapshot(t.Context(), snapshotWish(pool, "v2", "daily")); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("got %v", err)
		}
		created, err := account.CreateSnapshot(t.Context(), snapshotWish(pool, "v1", "daily"))
		if err != nil || !created.Adopted {
			t.Errorf("adopted %+v, %v", created, err)
		}
		s := created.Snapshot
		left, err := account.DeleteSnapshot(t.Context(), SnapshotOwned{Owned: Owned{Pool: s.Marks.Pool, ID: s.ID, Key: s.Marks.Key, Claim: s.Marks.Claim}})
		if left || err != nil || len(c.snaps.snapshots) != 0 {
			t.Errorf("left %t, %v", left, err)
		}
	})
}
