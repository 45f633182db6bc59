// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestVolumeIsGrownAndAttachedBeforeItIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		w.Spec.Restores, w.Spec.Snapshot = true, "s1"
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if v := created.Volume; v.SizeGiB != 10 || !v.AttachedTo("7") || !v.Marks.Complete || v.State != backends.StateReady {
			t.Errorf("created %+v", v)
		}
		if got, want := c.disks.called(), "make data, resize data to 10, attach data to 7, mark data complete=true"; got != want {
			t.Errorf("called %s", got)
		}
	})
}

func TestLostAnswerMakesNoSecondVolume(t *testing.T) {
	for _, kind := range volumeKinds("") {
		synctest.Test(t, func(t *testing.T) {
			c := newDiskCloud()
			c.disks.lose, c.nfs.lose = 1, 1
			c.nfs.listLag, c.disks.listLag = 5*time.Second, 5*time.Second
			account, pool := openDisks(t, c)
			created, err := account.CreateVolume(t.Context(), volumeWish(pool, kind, "data"))
			if err != nil {
				t.Fatal(err)
			}
			if all := append(c.disks.all(), c.nfs.all()...); len(all) != 1 || all[0].ID != created.Volume.ID {
				t.Errorf("the cloud has %+v", all)
			}
		})
	}
}

func TestOfTwoSharesMadeAtTheSameTimeTheOlderWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		c.nfs.listLag = 5 * time.Second
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			account, pool := openDisks(t, c)
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				_, errs[i] = account.CreateVolume(t.Context(), volumeWish(pool, backends.SharedVolume, "files"))
			})
		}
		wg.Wait()
		if all := c.nfs.all(); len(all) != 1 || all[0].ID != "v1" || errs[0] != nil || !backends.HasCode(errs[1], backends.Conflict) {
			t.Errorf("the cloud has %+v; %v", all, errs)
		}
	})
}

// A share's claim is in its name, so that it can't be written over: who adopts it
// records the one it has.
func TestAdoptedShareKeepsItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		first, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.SharedVolume, "files"))
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Volume.Marks.Claim) != backends.FixedClaimLength {
			t.Errorf("the claim is %q", first.Volume.Marks.Claim)
		}
		account, pool = openDisks(t, c)
		if _, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.SharedVolume, "files")); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("without adopt: %v", err)
		}
		pool.Adopt = true
		second, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.SharedVolume, "files"))
		if err != nil || !second.Adopted || second.Volume.Marks.Claim != first.Volume.Marks.Claim {
			t.Errorf("adopted %+v, %v", second, err)
		}
		// Another block of the same configuration never gets it as well.
		if _, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.SharedVolume, "files")); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("a second block: %v", err)
		}
		if len(c.nfs.all()) != 1 {
			t.Errorf("the cloud has %+v", c.nfs.all())
		}
	})
}

func TestLargerVolumeIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		marks := w.Spec.Marks
		marks.Claim, marks.Complete = NewClaim(), true
		v := c.disks.put(backends.Volume{Name: "data", SizeGiB: 20, Region: "here", Marks: marks, Machines: []string{"7"}})
		w.Pool.Adopt = true
		if _, err := account.CreateVolume(t.Context(), w); !backends.HasCode(err, backends.Conflict) || !strings.Contains(err.Error(), "size_gib") {
			t.Errorf("got %v", err)
		}
		c.disks.change(v.ID, func(v *backends.Volume) { v.SizeGiB = 5 })
		account, _ = openDisks(t, c)
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil || !created.Adopted || created.Volume.SizeGiB != 10 || !created.Volume.AttachedTo("7") {
			t.Errorf("adopted %+v, %v", created, err)
		}
	})
}

func change(w VolumeWish, v backends.Volume) VolumeChange {
	return VolumeChange{VolumeOwned: ownedVolume(w, v), In: w.Pool, Spec: w.Spec}
}

func TestVolumeMovesDetachedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		c.disks.calls = nil
		move := change(w, created.Volume)
		move.Machines, move.Release = &[]string{"8"}, []string{"7"}
		updated, err := account.UpdateVolume(t.Context(), move)
		if err != nil || !slices.Equal(updated.Volume.Machines, []string{"8"}) {
			t.Errorf("updated %+v, %v", updated, err)
		}
		// Once more changes nothing; hands off neither.
		move.Release = []string{"8"}
		if _, err := account.UpdateVolume(t.Context(), move); err != nil {
			t.Error(err)
		}
		move.Machines = nil
		if _, err := account.UpdateVolume(t.Context(), move); err != nil {
			t.Error(err)
		}
		if got, want := c.disks.called(), "detach data from 7, attach data to 8"; got != want {
			t.Errorf("called %s", got)
		}
	})
}

func TestAttachmentThatThePlanDidNotShowIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.disks.change(created.Volume.ID, func(v *backends.Volume) { v.Machines = []string{"99"} })
		move := change(w, created.Volume)
		move.Machines = &[]string{"8"}
		if _, err := account.UpdateVolume(t.Context(), move); !backends.HasCode(err, backends.Conflict) || !strings.Contains(err.Error(), "99") {
			t.Errorf("got %v", err)
		}
		// None of ours is wanted, and none is there: another's attachment is left alone.
		move.Machines = &[]string{}
		if updated, err := account.UpdateVolume(t.Context(), move); err != nil || !updated.Volume.AttachedTo("99") {
			t.Errorf("%+v, %v", updated, err)
		}
	})
}

func TestGrowthCountsTowardsTheLimitOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		limit := int64(35)
		pool.Limits.DiskGiB = &limit
		w := volumeWish(pool, backends.BlockVolume, "data")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		share := volumeWish(pool, backends.SharedVolume, "files")
		if _, err := account.CreateVolume(t.Context(), share); err != nil {
			t.Fatal(err)
		}
		grow := change(w, created.Volume)
		for _, try := range []struct {
			size int64
			code backends.Code
		}{{26, backends.QuotaExceeded}, {25, ""}} {
			grow.Spec.SizeGiB = try.size
			if _, err := account.UpdateVolume(t.Context(), grow); (try.code == "" && err != nil) || (try.code != "" && !backends.HasCode(err, try.code)) {
				t.Errorf("to %d GiB: %v", try.size, err)
			}
		}
		if strings.Contains(c.disks.called(), "26") {
			t.Errorf("called %s", c.disks.called())
		}
		// 35 are taken; one that goes makes room at once.
		third := volumeWish(pool, backends.BlockVolume, "more")
		if _, err := account.CreateVolume(t.Context(), third); !backends.HasCode(err, backends.QuotaExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := account.DeleteVolume(t.Context(), ownedVolume(w, created.Volume), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := account.CreateVolume(t.Context(), third); err != nil {
			t.Error(err)
		}
	})
}

func TestDeletingAVolumeDetachesItFromWhatTheStateKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		owned := ownedVolume(w, created.Volume)
		if _, err := account.DeleteVolume(t.Context(), owned, nil); !backends.HasCode(err, backends.InvalidState) || !strings.Contains(err.Error(), "7") {
			t.Errorf("attached to what the state doesn't know: %v", err)
		}
		if left, err := account.DeleteVolume(t.Context(), owned, []string{"7"}); left || err != nil {
			t.Errorf("left %t, %v", left, err)
		}
		if len(c.disks.all()) != 0 || !strings.HasSuffix(c.disks.called(), "detach data from 7, delete data") {
			t.Errorf("called %s", c.disks.called())
		}
		if left, err := account.DeleteVolume(t.Context(), owned, nil); left || err != nil {
			t.Errorf("again: left %t, %v", left, err)
		}
	})
}

// Shares are a product of their own, which many tokens don't reach. That a token may
// not list block volumes is no such thing: a pool must not count as empty for it.
func TestTokenThatMayNotListSharesHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		limit := int64(10)
		pool.Limits.DiskGiB = &limit
		if _, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.BlockVolume, "data")); err != nil {
			t.Fatal(err)
		}
		denied := backends.Errorf(backends.ProviderError, "You do not have access.")
		denied.Reason = backends.ReasonPermission
		c.nfs.listErr = denied
		account, _ = openDisks(t, c)
		filter := backends.Filter{Pool: pool.PoolID()}
		if found, err := account.VolumeObjects(t.Context(), filter); err != nil || len(found) != 1 {
			t.Errorf("%+v, %v", found, err)
		}
		if _, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.BlockVolume, "more")); !backends.HasCode(err, backends.QuotaExceeded) {
			t.Errorf("got %v", err)
		}
		c.disks.listErr = denied
		time.Sleep(time.Second) // a list of this very moment would do
		if _, err := account.VolumeObjects(t.Context(), filter); err == nil {
			t.Error("block volumes that can't be listed count as none")
		}
	})
}

// A cloud may know a new volume by its id in one place and not yet in another.
func TestNewVolumeThatCannotBeChangedYetIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		notYet := backends.Errorf(backends.NotFound, "not found")
		c.disks.fail(notYet)
		time.AfterFunc(defaultListLag/2, func() { c.disks.fail(nil) })
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil || !created.Volume.AttachedTo("7") {
			t.Errorf("created %+v, %v", created, err)
		}
		// Of one that isn't new it means that it is gone.
		time.Sleep(defaultListLag)
		c.disks.fail(notYet)
		begun := time.Now()
		move := change(w, created.Volume)
		move.Machines, move.Release = &[]string{"8"}, []string{"7"}
		if _, err := account.UpdateVolume(t.Context(), move); !backends.HasCode(err, backends.NotFound) || time.Since(begun) > time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

// The machine is deleted at the same time, and takes the volume along.
func TestVolumeThatGoesWhileItIsDetachedIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * defaultListLag)
		time.AfterFunc(c.disks.lag/2, func() { c.disks.drop(created.Volume.ID) })
		if left, err := account.DeleteVolume(t.Context(), ownedVolume(w, created.Volume), []string{"7"}); left || err != nil {
			t.Errorf("left %t, %v", left, err)
		}
	})
}
