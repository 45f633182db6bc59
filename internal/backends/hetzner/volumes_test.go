// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

func TestVolumeForm(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	issue := func(change func(*backends.VolumeSpec)) string {
		spec := testVolume()
		change(&spec)
		var out []string
		for _, e := range c.Volumes().CheckForm(spec) {
			out = append(out, fmt.Sprintf("%s %s %s", e.Code, e.Path, e.Reason))
		}
		return strings.Join(out, "; ")
	}
	for name, tt := range map[string]struct {
		change func(*backends.VolumeSpec)
		want   string
	}{
		"good":            {func(*backends.VolumeSpec) {}, ""},
		"largest":         {func(s *backends.VolumeSpec) { s.SizeGiB = 10240 }, ""},
		"too small":       {func(s *backends.VolumeSpec) { s.SizeGiB = 9 }, "INVALID_INPUT size_gib size"},
		"too large":       {func(s *backends.VolumeSpec) { s.SizeGiB = 10241 }, "INVALID_INPUT size_gib size"},
		"size unknown":    {func(s *backends.VolumeSpec) { s.SizeGiB, s.Unknown = 0, []string{"size_gib"} }, ""},
		"unformatted":     {func(s *backends.VolumeSpec) { s.Filesystem = "none" }, ""},
		"btrfs":           {func(s *backends.VolumeSpec) { s.Filesystem = "btrfs" }, "INVALID_INPUT filesystem "},
		"no filesystem":   {func(s *backends.VolumeSpec) { s.Filesystem = "" }, ""},
		"name of 64":      {func(s *backends.VolumeSpec) { s.Name = strings.Repeat("a", 64) }, ""},
		"name of 65":      {func(s *backends.VolumeSpec) { s.Name = strings.Repeat("a", 65) }, "INVALID_INPUT name "},
		"name with space": {func(s *backends.VolumeSpec) { s.Name = "a b" }, "INVALID_INPUT name "},
		"our label": {
			func(s *backends.VolumeSpec) {
				s.Labels = map[string]string{"better-compute.io/delete-with-instance": "true"}
			},
			"INVALID_INPUT labels ",
		},
		"two at once": {func(s *backends.VolumeSpec) { s.SizeGiB, s.Name = 1, "-" }, "INVALID_INPUT name ; INVALID_INPUT size_gib size"},
		"an option":   {func(s *backends.VolumeSpec) { s.Options = backends.Values{"automount": true} }, "INVALID_INPUT hetzner_cloud.automount "},
	} {
		if got := issue(tt.change); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if len(cloud.Calls()) > 0 {
		t.Errorf("the form needed calls: %v", counts(cloud))
	}
}

func TestVolumeRegionIsChecked(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	spec := testVolume()
	if issues, err := c.Volumes().Check(t.Context(), spec); err != nil || len(issues) > 0 {
		t.Errorf("%v, %v", issues, err)
	}
	spec.Region, spec.SizeGiB = "mars", 1
	issues, err := c.Volumes().Check(t.Context(), spec)
	if err != nil || len(issues) != 2 || issues[0].Reason != backends.ReasonSize || issues[1].Path.String() != "region" {
		t.Errorf("%v, %v", issues, err)
	}
}

func TestVolumeIsMadeInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 8 * time.Second})
		spec := testVolume()
		spec.Labels = map[string]string{"role": "db"}
		spec.Description, spec.Marks.Complete = "dropped", true
		v, err := c.Volumes().Make(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v1/volumes": 1}) {
			t.Errorf("calls %v", got)
		}
		marks := spec.Marks
		marks.Complete = false
		if v.State != backends.StatePending || v.Marks != marks || v.SizeGiB != 10 || v.Region != "fsn1" || v.Kind != backends.BlockVolume ||
			v.Created.IsZero() || v.Device == "" || len(v.Machines) > 0 || !maps.Equal(v.Labels, spec.Labels) {
			t.Errorf("got %+v", v)
		}
		if o := cloud.Volumes()[0]; o.Format != "xfs" || o.Labels["better-compute.io/delete-with-instance"] != "true" {
			t.Errorf("the cloud got %+v", o)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		if v = again(t, c, v); v.State != backends.StateReady {
			t.Errorf("then %s", v.State)
		}
		madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name, s.Filesystem = "raw", "none" })
		if o := cloud.Volumes()[1]; o.Format != "" {
			t.Errorf("formatted as %s", o.Format)
		}
	})
}

func TestRestoringIsNeverAnEmptyVolume(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	spec := testVolume()
	spec.Restores = true
	_, err := c.Volumes().Make(t.Context(), spec)
	if e := wantError(t, err); e.Code != backends.Unsupported || e.Reason != backends.ReasonSnapshots || len(cloud.Calls()) > 0 {
		t.Errorf("got %v after %v", e, counts(cloud))
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
		"lost answer": {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, posts: 1, there: 1, ambiguous: true, reason: backends.ReasonUnreachable},
		"reset":       {rule: emulator.Rule{Kind: emulator.KindReset}, posts: 1, ambiguous: true, reason: backends.ReasonUnreachable},
		"HTML":        {rule: emulator.Rule{Kind: emulator.KindHTML}, posts: 1, ambiguous: true},
		"capacity":    {rule: emulator.Rule{Kind: emulator.KindCapacity}, posts: 1, reason: backends.ReasonCapacity},
		"rate limit":  {rule: emulator.Rule{Kind: emulator.KindRateLimitHour, Times: 3}, posts: 4, there: 1, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				tt.rule.Method, tt.rule.Path = "POST", "/volumes"
				if err := cloud.AddFault(tt.rule); err != nil {
					t.Fatal(err)
				}
				_, err := c.Volumes().Make(t.Context(), testVolume())
				if got := counts(cloud)["POST /v1/volumes"]; got != tt.posts || len(cloud.Volumes()) != tt.there {
					t.Errorf("%d posts made %d volumes", got, len(cloud.Volumes()))
				}
				if tt.ok {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if e := wantError(t, err); e.Ambiguous != tt.ambiguous || e.Reason != tt.reason {
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

func TestVolumeNameTaken(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	first := madeVolume(t, c)
	_, err := c.Volumes().Make(t.Context(), testVolume())
	var taken *backends.NameTaken
	if !errors.As(err, &taken) || taken.Holder.ID != first.ID || taken.Holder.Marks != first.Marks || taken.Holder.Noun != "volume" {
		t.Errorf("got %v", err)
	}
}

func TestVolumeListsReadAllPages(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for i := range 120 {
		madeVolume(t, c, func(s *backends.VolumeSpec) {
			s.Name = fmt.Sprintf("data-%d", i)
			if i%2 == 1 {
				s.Marks.Pool = "pool_other"
			}
		})
	}
	madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name, s.Marks = "stranger", backends.Marks{} })
	for _, tt := range []struct {
		filter       backends.Filter
		found, calls int
	}{
		{backends.Filter{}, 120, 3},
		{backends.Filter{Account: testSpec().Marks.Account}, 120, 3},
		{backends.Filter{Pool: "pool_other"}, 60, 2},
		{backends.Filter{Pool: "a,b"}, 0, 0},
	} {
		cloud.ClearCalls()
		all, err := backends.ListAll(t.Context(), c.Volumes().List, tt.filter)
		if err != nil || len(all) != tt.found || counts(cloud)["GET /v1/volumes"] != tt.calls {
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
	found, err := c.Volumes().Named(t.Context(), "stranger")
	if err != nil || len(found) != 1 || found[0].Marks != (backends.Marks{}) {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestVolumeStates(t *testing.T) {
	for status, want := range map[string]backends.State{
		"creating": backends.StatePending, "available": backends.StateReady, "": backends.StateUnknown, "new-word": backends.StateUnknown,
	} {
		c := clientOf(t, always(jsonAnswer(200, fmt.Sprintf(`{"volume":{"id":4711,"name":"data","size":10,"status":%q}}`, status))),
			&fixedSecrets{token: testToken})
		v, err := c.Volumes().Get(t.Context(), "4711")
		if err != nil || v.State != want || (v.Message != "") != (want == backends.StateUnknown) {
			t.Errorf("%q: %+v, %v", status, v, err)
		}
	}
}

func TestVolumeGoneIsNotFoundOnlyInTheAPIsWords(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	cloud.DeleteVolume(numberOf(t, v.ID))
	if _, err := c.Volumes().Get(t.Context(), v.ID); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("got %v", err)
	}
	if err := c.Volumes().Delete(t.Context(), v); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("deleting: %v", err)
	}
	c = clientOf(t, always(answer{status: 404, contentType: "text/html", body: "<html>"}), &fixedSecrets{token: testToken})
	if _, err := c.Volumes().Get(t.Context(), v.ID); backends.HasCode(err, backends.NotFound) || err == nil {
		t.Errorf("a page: %v", err)
	}
}
