// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func testSnapshot(v backends.Volume) backends.SnapshotSpec {
	marks := testSpec().Marks
	marks.Key, marks.Digest, marks.Volume = "psnap_0123456789abcdefghjkmnpqrs", "", v.Name
	return backends.SnapshotSpec{Name: "first", Volume: v.ID, Region: v.Region, Marks: marks}
}

func madeSnapshot(t *testing.T, c *Client, v backends.Volume) backends.Snapshot {
	t.Helper()
	s, err := c.Snapshots().Make(t.Context(), testSnapshot(v))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotOutlivesItsVolume(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	spec := testSnapshot(v)
	spec.Marks.Complete = true
	cloud.ClearCalls()
	s, err := c.Snapshots().Make(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v2/volumes/ID/snapshots": 1}) {
		t.Errorf("calls %v", got)
	}
	marks := spec.Marks
	marks.Complete = false
	if s.Marks != marks || s.Name != "first" || s.Kind != backends.BlockVolume || s.State != backends.StateReady || s.Volume != v.ID ||
		s.SizeGiB != 10 || s.Region != "fra1" || s.Created.IsZero() {
		t.Errorf("got %+v", s)
	}
	marks.Complete = true
	if s, err = c.Snapshots().Mark(t.Context(), s, marks); err != nil || s.Marks != marks {
		t.Errorf("marked: %+v, %v", s, err)
	}
	of, err := c.Snapshots().OfVolume(t.Context(), v.ID)
	if err != nil || len(of) != 1 || of[0].Marks != marks {
		t.Errorf("of the volume: %+v, %v", of, err)
	}
	cloud.DeleteVolume(v.ID)
	of, err = c.Snapshots().OfVolume(t.Context(), v.ID)
	if err != nil || len(of) != 1 {
		t.Errorf("of the volume that is gone: %+v, %v", of, err)
	}
	if s, err = c.Snapshots().Get(t.Context(), s.ID); err != nil || s.Marks != marks || s.Marks.Volume != "data" {
		t.Errorf("read: %+v, %v", s, err)
	}
	for pool, n := range map[string]int{"": 1, marks.Pool: 1, "pool_other": 0} {
		if all, err := backends.ListAll(t.Context(), c.Snapshots().List, backends.Filter{Pool: pool}); err != nil || len(all) != n {
			t.Errorf("listed %q: %v, %v", pool, all, err)
		}
	}
	if err := c.Snapshots().Delete(t.Context(), s); err != nil || len(cloud.VolumeSnapshots()) != 0 {
		t.Errorf("deleted: %v", err)
	}
	if err := c.Snapshots().Delete(t.Context(), s); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("again: %v", err)
	}
}

func TestSecondSnapshotWaitsUntilItCanBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		v := madeVolume(t, c)
		madeSnapshot(t, c, v)
		time.Sleep(3 * time.Minute) // of the bubble's clock
		spec := testSnapshot(v)
		spec.Name = "second"
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		ctx, done := backends.Grace(ctx)
		defer done()
		cloud.ClearCalls()
		begin := time.Now()
		if _, err := c.Snapshots().Make(ctx, spec); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited < 6*time.Minute || waited > 8*time.Minute {
			t.Errorf("it took %s", waited)
		}
		if got := counts(cloud)["POST /v2/volumes/ID/snapshots"]; got > 3 {
			t.Errorf("%d tries", got)
		}
	})
}

func TestSecondSnapshotSaysWhenItCanBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		v := madeVolume(t, c)
		first := madeSnapshot(t, c, v)
		spec := testSnapshot(v)
		spec.Name = "second"
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		ctx, done := backends.Grace(ctx) // as creations are called: it has no deadline
		defer done()
		begin := time.Now()
		_, err := c.Snapshots().Make(ctx, spec)
		e := wantError(t, err)
		if next := first.Created.Add(10 * time.Minute).UTC().Format(time.RFC3339); !strings.Contains(e.Message, next) || e.Details["next"] != next {
			t.Errorf("got %v, want %s", e, next)
		}
		if e.Retryable || e.Ambiguous || time.Since(begin) > time.Second || len(cloud.VolumeSnapshots()) != 1 {
			t.Errorf("after %s: %+v", time.Since(begin), e)
		}
	})
}

func TestSnapshotLimitIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The newest snapshot is gone, so nothing tells when the next can be made.
		c, cloud := emulatedClient(t, emulated.Options{})
		v := madeVolume(t, c)
		cloud.DeleteVolumeSnapshot(madeSnapshot(t, c, v).ID)
		cloud.ClearCalls()
		spec := testSnapshot(v)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.Snapshots().Make(ctx, spec); err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud)["POST /v2/volumes/ID/snapshots"]; got > 12 {
			t.Errorf("%d tries", got)
		}
		// An interrupt ends the wait at once.
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		begin := time.Now()
		spec.Name = "second"
		if _, err := c.Snapshots().Make(ctx, spec); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

func TestSnapshotsAreNeverMadeTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		rule      emulator.Rule
		there     int
		ambiguous bool
		ok        bool
	}{
		"lost answer": {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, there: 1, ambiguous: true},
		"HTML":        {rule: emulator.Rule{Kind: emulator.KindHTML}, ambiguous: true},
		"too soon":    {rule: emulator.Rule{Kind: emulator.KindRateLimitSnapshot, Times: 2}, there: 1, ok: true},
		"hour":        {rule: emulator.Rule{Kind: emulator.KindRateLimitHour, Times: 3}, there: 1, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{SnapshotInterval: -1})
				v := madeVolume(t, c)
				tt.rule.Method, tt.rule.Path = "POST", "/volumes/*/snapshots"
				fault(t, cloud, tt.rule)
				_, err := c.Snapshots().Make(t.Context(), testSnapshot(v))
				if len(cloud.VolumeSnapshots()) != tt.there || (err == nil) != tt.ok {
					t.Fatalf("%d snapshots, %v", len(cloud.VolumeSnapshots()), err)
				}
				if err != nil && wantError(t, err).Ambiguous != tt.ambiguous {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestSnapshotRefusals(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{SnapshotInterval: -1})
	v := madeVolume(t, c)
	first := madeSnapshot(t, c, v)
	_, err := c.Snapshots().Make(t.Context(), testSnapshot(v))
	var taken *backends.NameTaken
	if !errors.As(err, &taken) || taken.Holder.ID != first.ID || taken.Holder.Noun != "snapshot" {
		t.Errorf("the same name: %v", err)
	}
	cloud.DeleteVolume(v.ID)
	_, err = c.Snapshots().Make(t.Context(), testSnapshot(v))
	if e := wantError(t, err); e.Code != backends.ProviderError || e.Path.String() != "volume" {
		t.Errorf("no volume: %+v", e)
	}
	if _, err := c.Snapshots().Get(t.Context(), "4711"); !backends.HasCode(err, backends.InvalidInput) {
		t.Errorf("an image's id: %v", err)
	}
}
