// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Rename implements [backends.VolumeRenamer].
func (d *disks) Rename(ctx context.Context, v backends.Volume, name string, marks backends.Marks) (backends.Volume, error) {
	d.log("rename %s to %s", v.Name, name)
	if err := d.failing(); err != nil {
		return v, err
	}
	for _, o := range d.all() {
		if o.Name == name && o.ID != v.ID {
			return v, &backends.NameTaken{Holder: o.About()}
		}
	}
	d.change(v.ID, func(v *backends.Volume) { v.Name, v.Marks = name, marks })
	return d.Get(ctx, v.ID)
}

// LabelOptions implements [backends.VolumeLabeler].
func (d *disks) LabelOptions() []string { return nil }

// Relabel implements [backends.VolumeLabeler].
func (d *disks) Relabel(ctx context.Context, v backends.Volume, from, to backends.VolumeSpec) (backends.Volume, error) {
	d.log("relabel %s", v.Name)
	d.change(v.ID, func(v *backends.Volume) {
		labels := map[string]string{}
		maps.Copy(labels, v.Labels)
		for key := range from.Labels {
			delete(labels, key)
		}
		maps.Copy(labels, to.Labels)
		v.Labels = labels
	})
	return d.Get(ctx, v.ID)
}

// Protect implements [backends.VolumeProtector].
func (d *disks) Protect(_ context.Context, v backends.Volume, protected bool) error {
	d.log("protect %s %t", v.Name, protected)
	if err := d.failing(); err != nil {
		return err
	}
	d.change(v.ID, func(v *backends.Volume) { v.Protected = protected })
	return nil
}

// volumeRenamed is a change that gives a wish's volume another name.
func volumeRenamed(w VolumeWish, v backends.Volume, name string) VolumeChange {
	c := change(w, v)
	to := volumeWish(w.Pool, w.Spec.Kind, name)
	c.Spec.Name, c.Spec.Marks.Key, c.Spec.Marks.Digest = name, to.Spec.Marks.Key, to.Spec.Marks.Digest
	return c
}

func TestVolumeIsRenamedWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		w.Spec.Filesystem = "xfs"
		w.Spec.Marks.Digest = backends.Digest(w.Spec.Marks.Key, map[backends.DigestField]string{
			backends.DigestKind: "block", backends.DigestRegion: "here", backends.DigestFilesystem: "xfs",
		})
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		c.disks.calls = nil
		rename := volumeRenamed(w, created.Volume, "other")
		updated, err := account.UpdateVolume(t.Context(), rename)
		if err != nil {
			t.Fatal(err)
		}
		v, key := updated.Volume, rename.Spec.Marks.Key
		if v.Name != "other" || v.Marks.Key != key || updated.Claim != created.Volume.Marks.Claim || !v.AttachedTo("7") || !v.Marks.Complete {
			t.Errorf("renamed to %+v", v)
		}
		for f, value := range map[backends.DigestField]string{
			backends.DigestKind: "block", backends.DigestRegion: "here", backends.DigestFilesystem: "xfs",
		} {
			if !backends.DigestMatches(v.Marks.Digest, key, f, value) {
				t.Errorf("the digest %q doesn't say %s = %s", v.Marks.Digest, f, value)
			}
		}
		if got, want := c.disks.called(), "rename data to other"; got != want {
			t.Errorf("called %s", got)
		}
		// The old name is free.
		if _, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.BlockVolume, "data")); err != nil {
			t.Error(err)
		}
	})
}

// A rename whose end wasn't recorded: the cloud shows the new name, the state the old
// one. It goes on, or back, or the volume is deleted.
func TestRenameOfAVolumeThatWasNotRecorded(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, a *Account, w VolumeWish, v backends.Volume) (string, error){
		"goes on": func(t *testing.T, a *Account, w VolumeWish, v backends.Volume) (string, error) {
			t.Helper()
			_, err := a.UpdateVolume(t.Context(), volumeRenamed(w, v, "other"))
			return "other", err
		},
		"goes back": func(t *testing.T, a *Account, w VolumeWish, v backends.Volume) (string, error) {
			t.Helper()
			_, err := a.UpdateVolume(t.Context(), change(w, v))
			return "data", err
		},
		"to a third name": func(t *testing.T, a *Account, w VolumeWish, v backends.Volume) (string, error) {
			t.Helper()
			_, err := a.UpdateVolume(t.Context(), volumeRenamed(w, v, "third"))
			return "third", err
		},
		"deleted": func(t *testing.T, a *Account, w VolumeWish, v backends.Volume) (string, error) {
			t.Helper()
			left, err := a.DeleteVolume(t.Context(), ownedVolume(w, v), nil)
			if left {
				t.Error("it was left")
			}
			return "", err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newDiskCloud()
			account, pool := openDisks(t, c)
			w := volumeWish(pool, backends.BlockVolume, "data")
			created, err := account.CreateVolume(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := account.UpdateVolume(t.Context(), volumeRenamed(w, created.Volume, "other")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			later, _ := openDisks(t, c)
			want, err := next(t, later, w, created.Volume)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			all := c.disks.all()
			if want == "" {
				if len(all) > 0 {
					t.Errorf("%s: the cloud has %+v", name, all)
				}
				return
			}
			key := reference.VolumeID(pool.PoolID(), want)
			if len(all) != 1 || all[0].Name != want || all[0].Marks.Key != key || !backends.DigestMatches(all[0].Marks.Digest, key, backends.DigestRegion, "here") {
				t.Errorf("%s: the cloud has %+v", name, all)
			}
		})
	}
}

// A key that someone took away is put back.
func TestKeyOfAVolumeIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.disks.change(created.Volume.ID, func(v *backends.Volume) { v.Marks.Key = "" })
		updated, err := account.UpdateVolume(t.Context(), change(w, created.Volume))
		if err != nil || updated.Volume.Marks != created.Volume.Marks {
			t.Errorf("%+v, %v", updated.Volume.Marks, err)
		}
		if strings.Contains(c.disks.called(), "rename") {
			t.Errorf("called %s", c.disks.called())
		}
	})
}

func TestNameOfAnotherVolumeIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		c.disks.put(backends.Volume{Name: "other"})
		c.disks.calls = nil
		if _, err := account.UpdateVolume(t.Context(), volumeRenamed(w, created.Volume, "other")); !backends.HasCode(err, backends.Conflict) {
			t.Errorf("got %v", err)
		}
		if c.disks.called() != "" {
			t.Errorf("called %s", c.disks.called())
		}
	})
}

func TestVolumeLabelsOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.disks.change(created.Volume.ID, func(v *backends.Volume) { v.Labels = map[string]string{"a": "1", "theirs": "x"} })
		edit := change(w, created.Volume)
		edit.From = &backends.VolumeSpec{Labels: map[string]string{"a": "1"}}
		edit.Spec.Labels = map[string]string{"b": "2"}
		updated, err := account.UpdateVolume(t.Context(), edit)
		if err != nil || !maps.Equal(updated.Volume.Labels, map[string]string{"b": "2", "theirs": "x"}) {
			t.Errorf("%v, %v", updated.Volume.Labels, err)
		}
	})
}

func TestProtectedVolumeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data", "7")
		w.Protect = new(true)
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil || !created.Volume.Protected {
			t.Fatalf("%+v, %v", created.Volume, err)
		}
		owned := ownedVolume(w, created.Volume)
		c.disks.calls = nil
		if _, err := account.DeleteVolume(t.Context(), owned, []string{"7"}); !backends.HasReason(err, backends.ReasonProtected) {
			t.Errorf("got %v", err)
		}
		if c.disks.called() != "" {
			t.Errorf("called %s", c.disks.called())
		}
		edit := change(w, created.Volume)
		edit.Protect = new(false)
		if updated, err := account.UpdateVolume(t.Context(), edit); err != nil || updated.Volume.Protected {
			t.Errorf("%+v, %v", updated.Volume, err)
		}
		if left, err := account.DeleteVolume(t.Context(), owned, []string{"7"}); left || err != nil {
			t.Errorf("left %t, %v", left, err)
		}
	})
}

// What a dead run left half made and protected is made anew all the same.
func TestHalfMadeProtectedVolumeIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		marks := w.Spec.Marks
		marks.Claim, marks.Digest = NewClaim(), "k000000"
		old := c.disks.put(backends.Volume{Name: "data", SizeGiB: 10, Region: "here", Marks: marks, Protected: true})
		created, err := account.CreateVolume(t.Context(), w)
		if err != nil || created.Volume.ID == old.ID {
			t.Errorf("%+v, %v", created.Volume, err)
		}
	})
}

// A machine isn't deleted together with a volume that is protected.
func TestMachineWithAProtectedVolumeThatGoesStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, selective := range []bool{false, true} {
			c := newDiskCloud()
			var b backends.Backend = c
			if selective {
				b = selectiveCloud{c}
			}
			account, pool := openDisks(t, b)
			m, owned := created(t, account, pool)
			w := volumeWish(pool, backends.BlockVolume, "data", m.ID)
			w.Spec.Marks.GoesWithMachine, w.Protect = true, new(true)
			if _, err := account.CreateVolume(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if _, err := account.Delete(t.Context(), owned); !backends.HasReason(err, backends.ReasonProtected) || !strings.Contains(err.Error(), "delete_with_instance") {
				t.Errorf("got %v", err)
			}
			if len(c.all()) != 1 || len(c.disks.all()) != 1 {
				t.Errorf("the cloud has %+v, %+v", c.all(), c.disks.all())
			}
		}
	})
}

// What was never completed is given up by whoever made it, protected or not.
func TestHalfMadeProtectedVolumeIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		w := volumeWish(pool, backends.BlockVolume, "data")
		v := c.disks.put(backends.Volume{Name: "data", SizeGiB: 10, Region: "here", Marks: w.Spec.Marks, Protected: true})
		if left, err := account.DeleteVolume(t.Context(), ownedVolume(w, v), nil); left || err != nil || len(c.disks.all()) > 0 {
			t.Errorf("left %t, %v", left, err)
		}
	})
}
