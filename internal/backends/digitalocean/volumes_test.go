// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// formIssues are a wish's issues in one line.
func formIssues(store backends.VolumeStore, spec backends.VolumeSpec) string {
	var out []string
	for _, e := range store.CheckForm(spec) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Code, e.Path, e.Reason)))
	}
	return strings.Join(out, "; ")
}

func TestVolumeForm(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{}, backends.Values{"regions": []any{"fra1", "sfo3"}})
	for name, tt := range map[string]struct {
		change func(*backends.VolumeSpec)
		want   string
	}{
		"good":             {func(*backends.VolumeSpec) {}, ""},
		"smallest":         {func(s *backends.VolumeSpec) { s.SizeGiB = 1 }, ""},
		"too small":        {func(s *backends.VolumeSpec) { s.SizeGiB = 0 }, "INVALID_INPUT size_gib size"},
		"largest":          {func(s *backends.VolumeSpec) { s.SizeGiB = 16384 }, ""},
		"too large":        {func(s *backends.VolumeSpec) { s.SizeGiB = 16385 }, "INVALID_INPUT size_gib size"},
		"size unknown":     {func(s *backends.VolumeSpec) { s.SizeGiB, s.Unknown = 0, []string{"size_gib"} }, ""},
		"btrfs":            {func(s *backends.VolumeSpec) { s.Filesystem = "btrfs" }, "INVALID_INPUT filesystem"},
		"name of 64":       {func(s *backends.VolumeSpec) { s.Name = strings.Repeat("a", 64) }, ""},
		"name of 65":       {func(s *backends.VolumeSpec) { s.Name = strings.Repeat("a", 65) }, "INVALID_INPUT name"},
		"upper case":       {func(s *backends.VolumeSpec) { s.Name = "Data" }, "INVALID_INPUT name"},
		"begins with 0":    {func(s *backends.VolumeSpec) { s.Name = "0data" }, "INVALID_INPUT name"},
		"another region":   {func(s *backends.VolumeSpec) { s.Region = "nyc3" }, "INVALID_INPUT region"},
		"our label":        {func(s *backends.VolumeSpec) { s.Labels = map[string]string{"better-compute": "x"} }, "INVALID_INPUT labels"},
		"our tag":          {func(s *backends.VolumeSpec) { s.Options = backends.Values{"tags": []any{"better-compute:complete"}} }, "INVALID_INPUT digitalocean.tags[0]"},
		"a label":          {func(s *backends.VolumeSpec) { s.Options = backends.Values{"filesystem_label": "twelve-chars"} }, ""},
		"too long for xfs": {func(s *backends.VolumeSpec) { s.Options = backends.Values{"filesystem_label": "13-characters"} }, "INVALID_INPUT digitalocean.filesystem_label"},
		"a label of none": {
			func(s *backends.VolumeSpec) {
				s.Filesystem, s.Options = "none", backends.Values{"filesystem_label": "x"}
			},
			"INVALID_INPUT digitalocean.filesystem_label",
		},
		"a share's option": {func(s *backends.VolumeSpec) { s.Options = backends.Values{"performance_tier": "high"} }, "INVALID_INPUT digitalocean.performance_tier"},
		"two at once":      {func(s *backends.VolumeSpec) { s.SizeGiB, s.Name = 0, "-" }, "INVALID_INPUT name; INVALID_INPUT size_gib size"},
	} {
		spec := testVolume()
		tt.change(&spec)
		if got := formIssues(c.Volumes(), spec); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if len(cloud.Calls()) > 0 {
		t.Errorf("the form needed calls: %v", counts(cloud))
	}
}

func TestVolumeRegionIsChecked(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	check := func(region string) []*backends.Error {
		t.Helper()
		spec := testVolume()
		spec.Region = region
		issues, err := c.Volumes().Check(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return issues
	}
	if issues := check("fra1"); len(issues) > 0 {
		t.Errorf("fra1: %v", issues)
	}
	if issues := check("mars1"); len(issues) != 1 || issues[0].Path.String() != "region" {
		t.Errorf("mars1: %v", issues)
	}
	// The catalog has regions without volumes, and ones that take nothing new.
	catalog, err := c.catalog.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	without, closed := 0, 0
	for name, r := range catalog.regions {
		has, issues := slices.Contains(r.Features, featureStorage), check(name)
		switch {
		case !has:
			without++
			if len(issues) != 1 || issues[0].Code != backends.InvalidInput || !strings.Contains(issues[0].Remedy, "fra1") {
				t.Errorf("%s: %v", name, issues)
			}
		case !r.Available:
			closed++
			if len(issues) != 1 || issues[0].Code != backends.CapacityUnavailable || issues[0].Reason != backends.ReasonCapacity {
				t.Errorf("%s: %v", name, issues)
			}
		case len(issues) > 0:
			t.Errorf("%s: %v", name, issues)
		}
	}
	if without == 0 || closed == 0 {
		t.Errorf("the emulator has %d regions without volumes, and %d closed ones", without, closed)
	}
}

func TestVolumeIsMadeInOneCall(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	spec := testVolume()
	spec.Labels = map[string]string{"role": "db", "plain": ""}
	spec.Options = backends.Values{"tags": []any{"raw", "Role:DB"}, "filesystem_label": "data"}
	spec.Description, spec.Marks.Complete = "the data", true
	v, err := c.Volumes().Make(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v2/volumes": 1}) {
		t.Errorf("calls %v", got)
	}
	marks := spec.Marks
	marks.Complete = false
	labels := map[string]string{"role": "db", "plain": "", "raw": ""}
	if v.State != backends.StateReady || v.Marks != marks || v.SizeGiB != 10 || v.Region != "fra1" || v.Kind != backends.BlockVolume ||
		v.Created.IsZero() || v.Device != "/dev/disk/by-id/scsi-0DO_Volume_data" || v.Device != c.Volumes().Device("data") ||
		v.URN != "do:volume:"+v.ID || len(v.Machines) > 0 || !maps.Equal(v.Labels, labels) {
		t.Errorf("got %+v", v)
	}
	if o := cloud.Volumes()[0]; o.FilesystemType != "xfs" || o.Description != "the data" {
		t.Errorf("the cloud got %+v", o)
	}
	if seen := again(t, c.Volumes(), v); seen.Marks != marks || !maps.Equal(seen.Labels, labels) {
		t.Errorf("then %+v", seen)
	}
	madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name, s.Filesystem = "raw", "none" })
	if o := cloud.Volumes()[1]; o.FilesystemType != "" {
		t.Errorf("formatted as %s", o.FilesystemType)
	}
}

func TestVolumeFromASnapshotHasTheSnapshotsSize(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	s := madeSnapshot(t, c, madeVolume(t, c))
	v := madeVolume(t, c, func(w *backends.VolumeSpec) {
		w.Name, w.SizeGiB, w.Restores, w.Snapshot = "restored", 50, true, s.ID
	})
	if v.SizeGiB != s.SizeGiB || s.SizeGiB != 10 {
		t.Errorf("the volume has %d GiB, the snapshot %d", v.SizeGiB, s.SizeGiB)
	}
	spec := testVolume()
	spec.Name, spec.Restores = "another", true
	for _, id := range []string{"", "11111111-2222-3333-4444-555555555555"} {
		spec.Snapshot = id
		_, err := c.Volumes().Make(t.Context(), spec)
		if e := wantError(t, err); e.Path.String() != "from_snapshot" || e.Code == backends.NotFound {
			t.Errorf("%q: %+v", id, e)
		}
	}
}

func TestVolumesAreNeverMadeTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		rule         emulator.Rule
		posts, there int
		ambiguous    bool
		reason       backends.Reason
		ok           bool
	}{
		"lost answer":      {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, posts: 1, there: 1, ambiguous: true, reason: backends.ReasonUnreachable},
		"504, carried out": {rule: emulator.Rule{Kind: emulator.KindLoseAnswer, Status: 504}, posts: 1, there: 1, ambiguous: true},
		"reset":            {rule: emulator.Rule{Kind: emulator.KindReset}, posts: 1, ambiguous: true, reason: backends.ReasonUnreachable},
		"HTML":             {rule: emulator.Rule{Kind: emulator.KindHTML}, posts: 1, ambiguous: true},
		"capacity":         {rule: emulator.Rule{Kind: emulator.KindCapacity}, posts: 1, reason: backends.ReasonQuota},
		"burst":            {rule: emulator.Rule{Kind: emulator.KindRateLimitBurst, Times: 2}, posts: 3, there: 1, ok: true},
		"hour":             {rule: emulator.Rule{Kind: emulator.KindRateLimitHour, Times: 3}, posts: 4, there: 1, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				tt.rule.Method, tt.rule.Path = "POST", "/volumes"
				fault(t, cloud, tt.rule)
				_, err := c.Volumes().Make(t.Context(), testVolume())
				if got := counts(cloud)["POST /v2/volumes"]; got != tt.posts || len(cloud.Volumes()) != tt.there {
					t.Errorf("%d posts made %d volumes", got, len(cloud.Volumes()))
				}
				if tt.ok {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if e := wantError(t, err); e.Ambiguous != tt.ambiguous || e.Reason != tt.reason || strings.Contains(e.Message, "<") {
					t.Errorf("got %+v", e)
				}
				found, err := c.Volumes().Named(t.Context(), "data")
				if err != nil || len(found) != tt.there {
					t.Errorf("found again: %v, %v", found, err)
				}
			})
		})
	}
}

func TestVolumeNameTakenInARegion(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	other := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Region = "sfo3" })
	first := madeVolume(t, c)
	_, err := c.Volumes().Make(t.Context(), testVolume())
	var taken *backends.NameTaken
	if !errors.As(err, &taken) || taken.Holder.ID != first.ID || taken.Holder.Marks != first.Marks || taken.Holder.Noun != "volume" {
		t.Errorf("got %v", err)
	}
	found, err := c.Volumes().Named(t.Context(), "data")
	if err != nil || len(found) != 2 || len(cloud.Volumes()) != 2 {
		t.Errorf("named: %v, %v, besides %s", found, err, other.ID)
	}
	// A holder that the lists don't show yet isn't named.
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		fault(t, cloud, emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindHideFromLists})
		madeVolume(t, c)
		_, err := c.Volumes().Make(t.Context(), testVolume())
		if e := wantError(t, err); !errors.As(err, &taken) || taken.Holder.ID != "" || e.Ambiguous || e.Details["status"] != 409 {
			t.Errorf("hidden: %v", err)
		}
	})
}

func TestVolumeListsReadAllPages(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for i := range 410 {
		madeVolume(t, c, func(s *backends.VolumeSpec) {
			s.Name = fmt.Sprintf("data-%d", i)
			if i%2 == 1 {
				s.Marks.Pool = "pool_other"
			}
		})
	}
	madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name, s.Marks = "stranger", backends.Marks{} })
	for _, tt := range []struct {
		filter backends.Filter
		found  int
	}{
		{backends.Filter{}, 410},
		{backends.Filter{Account: testSpec().Marks.Account}, 410},
		{backends.Filter{Pool: "pool_other"}, 205},
		{backends.Filter{Pool: "pool_none"}, 0},
	} {
		cloud.ClearCalls()
		all, err := backends.ListAll(t.Context(), c.Volumes().List, tt.filter)
		if err != nil || len(all) != tt.found || counts(cloud)["GET /v2/volumes"] != 3 {
			t.Errorf("%v: %d volumes in %v, %v", tt.filter, len(all), counts(cloud), err)
		}
		seen := map[string]bool{}
		for _, v := range all {
			if seen[v.ID] || !v.Marks.Managed {
				t.Errorf("twice or a stranger: %s", v.ID)
			}
			seen[v.ID] = true
		}
	}
	if !c.Volumes().Unfiltered() {
		t.Error("a list of one pool costs one of all, and says that it doesn't")
	}
	synctest.Test(t, func(t *testing.T) {
		fault(t, cloud, emulator.Rule{Method: "GET", Path: "/volumes", Kind: emulator.KindStatus, Nth: 2, Times: emulator.Forever, Status: 400})
		if all, err := backends.ListAll(t.Context(), c.Volumes().List, backends.Filter{}); err == nil {
			t.Errorf("a list without a page has %d volumes", len(all))
		}
	})
}

func TestVolumeGoneIsNotFoundOnlyInTheAPIsWords(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	cloud.DeleteVolume(v.ID)
	if _, err := c.Volumes().Get(t.Context(), v.ID); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("got %v", err)
	}
	if err := c.Volumes().Delete(t.Context(), v); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("deleting: %v", err)
	}
	if _, err := c.Volumes().Get(t.Context(), "../droplets"); !backends.HasCode(err, backends.InvalidInput) {
		t.Errorf("no id: %v", err)
	}
	c = scripted(t, always(answer{status: 404, contentType: "text/html", body: "<html>"}))
	if _, err := c.Volumes().Get(t.Context(), v.ID); backends.HasCode(err, backends.NotFound) || err == nil {
		t.Errorf("a page: %v", err)
	}
}

// TestVolumesThatMoveBetweenPagesAreListedOnce: while one is deleted the pages shift.
func TestVolumesThatMoveBetweenPagesAreListedOnce(t *testing.T) {
	c := scripted(t, &script{answer: func(r *http.Request, _ int) answer {
		name := `"id":"a"`
		if r.URL.Query().Get("page") == "2" {
			name = `"id":"a"},{"id":"b"`
		}
		next := `"links":{"pages":{"last":"https://api.test/v2/volumes?page=2"}}`
		return jsonAnswer(200, `{"volumes":[{`+name+`}],"meta":{"total":2},`+next+`}`)
	}})
	found, err := c.Volumes().Named(t.Context(), "")
	if err != nil || len(found) != 2 {
		t.Errorf("got %v, %v", found, err)
	}
}
