// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func testShareSnapshot(v backends.Volume) backends.SnapshotSpec {
	marks := testShare("").Marks
	marks.Key, marks.Digest, marks.Volume = "psnap_0123456789abcdefghjkmnpqrs", "", "data"
	return backends.SnapshotSpec{Name: "first", Volume: v.ID, Region: v.Region, Marks: marks}
}

// activeShare is a share that can be used.
func activeShare(t *testing.T, c *Client, cloud *emulated.Service) backends.Volume {
	t.Helper()
	v, err := c.SharedVolumes().Make(t.Context(), testShare(madeVPC(t, cloud, "main", shareRegion)))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // of the bubble's clock
	return again(t, c.SharedVolumes(), v)
}

func TestShareSnapshotLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 20 * time.Second})
		v := activeShare(t, c, cloud)
		snapshots, spec := c.SharedSnapshots(), testShareSnapshot(v)
		cloud.ClearCalls()
		s, err := snapshots.Make(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud); len(cloud.Calls()) != 1 || got["POST /v2/nfs/ID/actions"] != 1 {
			t.Errorf("calls %v", got)
		}
		seen, err := snapshots.Get(t.Context(), s.ID)
		if err != nil || seen.Name != s.Name || seen.Marks != s.Marks || seen.Volume != v.ID || seen.Region != s.Region ||
			seen.State != s.State || !seen.Created.Equal(s.Created) {
			t.Errorf("made %+v, seen %+v, %v", s, seen, err)
		}
		if m := s.Marks; s.State != backends.StatePending || !m.Fixed || m.Complete || m.Key != spec.Marks.Key || s.Kind != backends.SharedVolume ||
			!(backends.Filter{Pool: spec.Marks.Pool}).Holds(m) || m.Claim != spec.Marks.Claim[:backends.FixedClaimLength] {
			t.Errorf("got %+v", s)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		if s, err = snapshots.Get(t.Context(), s.ID); err != nil || s.State != backends.StateReady || !s.Marks.Complete || s.SizeGiB != 50 {
			t.Errorf("then %+v, %v", s, err)
		}
		for pool, n := range map[string]int{"": 1, spec.Marks.Pool: 1, "pool_other": 0} {
			if all, err := backends.ListAll(t.Context(), snapshots.List, backends.Filter{Pool: pool}); err != nil || len(all) != n {
				t.Errorf("listed %q: %v, %v", pool, all, err)
			}
		}
		if of, err := snapshots.OfVolume(t.Context(), v.ID); err != nil || len(of) != 1 {
			t.Errorf("of the share: %v, %v", of, err)
		}
		// Deleting the share would take its snapshots: it is refused, never asked for.
		if e := wantError(t, c.SharedVolumes().Delete(t.Context(), v)); e.Code != backends.InvalidState || len(cloud.ShareSnapshots()) != 1 {
			t.Errorf("deleting the share: %+v", e)
		}
		if err := snapshots.Delete(t.Context(), s); err != nil || len(cloud.ShareSnapshots()) != 0 {
			t.Errorf("deleting: %v", err)
		}
		if err := snapshots.Delete(t.Context(), s); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("again: %v", err)
		}
		if err := c.SharedVolumes().Delete(t.Context(), v); err != nil {
			t.Errorf("deleting the share: %v", err)
		}
		if _, err := snapshots.Make(t.Context(), spec); wantError(t, err).Path.String() != "volume" {
			t.Errorf("of no share: %v", err)
		}
	})
}

func TestShareSnapshotFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		kind  emulator.Kind
		there int
		state backends.State
	}{
		"lost answer": {emulator.KindLoseAnswer, 1, ""},
		"HTML":        {emulator.KindHTML, 0, ""},
		"failed":      {emulator.KindFailAction, 1, backends.StateError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{Boot: 20 * time.Second})
				spec := testShareSnapshot(activeShare(t, c, cloud))
				fault(t, cloud, emulator.Rule{Method: "POST", Path: "/nfs/*/actions", Kind: tt.kind})
				s, err := c.SharedSnapshots().Make(t.Context(), spec)
				if (err == nil) != (tt.state != "") || err != nil && !wantError(t, err).Ambiguous {
					t.Fatal(s, err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				all, err := backends.ListAll(t.Context(), c.SharedSnapshots().List, backends.Filter{Pool: spec.Marks.Pool})
				if err != nil || len(all) != tt.there || tt.there > 0 && all[0].Marks.Key != spec.Marks.Key ||
					tt.state != "" && (all[0].State != tt.state || all[0].Message == "" || all[0].Marks.Complete) {
					t.Errorf("found %+v, %v", all, err)
				}
			})
		})
	}
}

// TestShareSnapshotOfAnOddAction: an action whose resource isn't the snapshot leaves
// it to be found by its name; one that isn't found may be there.
func TestShareSnapshotOfAnOddAction(t *testing.T) {
	const share, snapshot = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
	spec := testShareSnapshot(backends.Volume{ID: share, Region: shareRegion})
	name, err := markedName(idSnapshot, spec.Marks)
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) string {
		return fmt.Sprintf(`{"snapshots":[{"id":%q,"name":%q,"share_id":%q,"status":"CREATING"}],"meta":{"total":1}}`, snapshot, name, share)
	}
	for what, tt := range map[string]struct {
		resource, listed string
		found            bool
	}{
		"the share":          {share, name, true},
		"nothing":            {"", name, true},
		"nothing, not found": {"", "other", false},
	} {
		c := scripted(t, &script{answer: func(r *http.Request, _ int) answer {
			if r.Method == http.MethodPost {
				return jsonAnswer(201, fmt.Sprintf(`{"action":{"id":"1","status":"IN_PROGRESS","resource_id":%q}}`, tt.resource))
			}
			return jsonAnswer(200, list(tt.listed))
		}})
		s, err := c.SharedSnapshots().Make(t.Context(), spec)
		switch {
		case tt.found && (err != nil || s.ID != snapshot || s.Marks.Key != spec.Marks.Key):
			t.Errorf("%s: %+v, %v", what, s, err)
		case !tt.found && !wantError(t, err).Ambiguous:
			t.Errorf("%s: %v", what, err)
		}
	}
	c := scripted(t, always(jsonAnswer(201, `{"action":{"id":"1","type":"CREATE_SNAPSHOT","status":"ACTION_FAILED"}}`)))
	_, err = c.SharedSnapshots().Make(t.Context(), spec)
	if e := wantError(t, err); e.Reason != backends.ReasonAction || !strings.Contains(e.Message, "CREATE_SNAPSHOT") {
		t.Errorf("failed: %+v", e)
	}
}
