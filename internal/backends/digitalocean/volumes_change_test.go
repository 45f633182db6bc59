// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func TestVolumeMarks(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	volumes := c.Volumes()
	v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Labels = map[string]string{"role": "db"} })
	cloud.ClearCalls()
	marks := v.Marks
	marks.Complete = true
	v, err := volumes.Mark(t.Context(), v, marks)
	if err != nil || v.Marks != marks {
		t.Fatalf("got %+v, %v", v, err)
	}
	if n := len(cloud.Calls()); n > 3 {
		t.Errorf("the first completion mark needed %v", counts(cloud))
	}
	second := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name = "second" })
	cloud.ClearCalls()
	complete := second.Marks
	complete.Complete = true
	if _, err := volumes.Mark(t.Context(), second, complete); err != nil || len(cloud.Calls()) != 1 {
		t.Errorf("a later one needed %v, %v", counts(cloud), err)
	}
	// Another claim, and the volume stays when its machine goes.
	marks.Claim, marks.GoesWithMachine = "another", false
	if v, err = volumes.Mark(t.Context(), v, marks); err != nil || v.Marks != marks {
		t.Fatalf("got %+v, %v", v, err)
	}
	if seen := again(t, volumes, v); seen.Marks != marks || !maps.Equal(seen.Labels, map[string]string{"role": "db"}) {
		t.Errorf("then %+v", seen)
	}
	if tags := cloud.Volumes()[0].Tags; slices.Contains(tags, "better-compute:claim:c0ffee") {
		t.Errorf("tags %v", tags)
	}
}

func TestAttachAndDetach(t *testing.T) {
	// Every call of the life is disturbed in turn; none may end in an error, nor
	// anywhere else than undisturbed.
	for name, rule := range map[string]emulator.Rule{
		"undisturbed":     {},
		"lost 1":          {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindLoseAnswer, Nth: 1},
		"lost 2":          {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindLoseAnswer, Nth: 2},
		"lost 3":          {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindLoseAnswer, Nth: 3},
		"lost 4":          {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindLoseAnswer, Nth: 4},
		"504 1":           {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindLoseAnswer, Status: 504, Nth: 1},
		"504 4":           {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindLoseAnswer, Status: 504, Nth: 4},
		"pending event 1": {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindPendingEvent, Times: 12},
		"pending event 3": {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindPendingEvent, Nth: 3, Times: 12},
		"HTML":            {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindHTML, Times: 2},
		"burst":           {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindRateLimitBurst, Times: 2},
		"hour":            {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindRateLimitHour, Nth: 2, Times: 9},
		"early 404":       {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindStatus, Status: 404, Times: 3},
		"late 404":        {Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindStatus, Status: 404, Nth: 4, Times: 1},
		"reads fail":      {Method: "GET", Path: "/volumes/*", Kind: emulator.KindStatus, Status: 503, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{Boot: 40 * time.Second})
				m := madeDroplet(t, cloud, "fra1")
				v := madeVolume(t, c) // the Droplet's event still runs
				if rule.Kind != "" {
					fault(t, cloud, rule)
				}
				volumes := c.Volumes()
				if err := volumes.Attach(t.Context(), v, m); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if v = again(t, volumes, v); !v.AttachedTo(m) {
					t.Fatalf("attached to %v", v.Machines)
				}
				if err := volumes.Attach(t.Context(), v, m); err != nil {
					t.Errorf("again: %v", err)
				}
				if err := volumes.Resize(t.Context(), v, 12); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if v = again(t, volumes, v); v.SizeGiB != 12 || !v.AttachedTo(m) {
					t.Errorf("grown: %+v", v)
				}
				if err := volumes.Detach(t.Context(), v, m); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if v = again(t, volumes, v); len(v.Machines) > 0 {
					t.Errorf("detached: %+v", v)
				}
				if err := volumes.Detach(t.Context(), v, m); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		})
	}
}

func TestAnotherDropletKeepsItsVolume(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	first, second := madeDroplet(t, cloud, "fra1"), madeDroplet(t, cloud, "fra1")
	v := madeVolume(t, c)
	cloud.AttachVolume(v.ID, droplet(t, second))
	e := wantError(t, c.Volumes().Attach(t.Context(), v, first))
	if e.Code != backends.InvalidState || !strings.Contains(e.Message, second) {
		t.Errorf("attaching: %v", e)
	}
	v.Machines = []string{first} // as it was seen before
	if err := c.Volumes().Detach(t.Context(), v, first); err != nil || cloud.Volumes()[0].Droplet != droplet(t, second) {
		t.Errorf("detaching: %v; it is attached to %d", err, cloud.Volumes()[0].Droplet)
	}
	if e := wantError(t, c.Volumes().Delete(t.Context(), v)); e.Code != backends.InvalidState || len(cloud.Volumes()) != 1 {
		t.Errorf("deleting: %v", e)
	}
}

func TestAttachSaysWhatIsGone(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	e := wantError(t, c.Volumes().Attach(t.Context(), v, "999"))
	if e.Code != backends.ProviderError || e.Reason != backends.ReasonInvalid || !strings.Contains(e.Remedy, "999") {
		t.Errorf("no Droplet: %+v", e)
	}
	if err := c.Volumes().Detach(t.Context(), v, "999"); err != nil {
		t.Errorf("detaching from none: %v", err)
	}
	m := madeDroplet(t, cloud, "fra1")
	cloud.DeleteVolume(v.ID)
	if err := c.Volumes().Attach(t.Context(), v, m); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("no volume: %v", err)
	}
	if err := c.Volumes().Detach(t.Context(), v, m); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("no volume: %v", err)
	}
	for _, machine := range []string{"", "0x1", "../1"} {
		if e := wantError(t, c.Volumes().Attach(t.Context(), v, machine)); e.Code != backends.InvalidInput {
			t.Errorf("%q: %v", machine, e)
		}
	}
}

func TestAttachRefusals(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := madeDroplet(t, cloud, "fra1")
	far := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Region = "sfo3" })
	if e := wantError(t, c.Volumes().Attach(t.Context(), far, m)); e.Reason != backends.ReasonInvalid || !strings.Contains(e.Message, "same region") {
		t.Errorf("another region: %+v", e)
	}
	for i := range 16 {
		v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name = fmt.Sprintf("data-%d", i) })
		err := c.Volumes().Attach(t.Context(), v, m)
		if i < 15 && err != nil {
			t.Fatal(i, err)
		}
		if i == 15 {
			if e := wantError(t, err); e.Reason != backends.ReasonQuota || e.Retryable || !strings.Contains(e.Remedy, "15") {
				t.Errorf("one too many: %+v", e)
			}
		}
	}
}

func TestPendingEventsAreWaitedForAsLongAsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		v, m := madeVolume(t, c), madeDroplet(t, cloud, "fra1")
		fault(t, cloud, emulator.Rule{Method: "POST", Kind: emulator.KindPendingEvent, Times: emulator.Forever})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		cloud.ClearCalls()
		err := c.Volumes().Attach(ctx, v, m)
		if e := wantError(t, err); e.Reason != backends.ReasonLocked || time.Since(begin) != time.Minute || len(cloud.Calls()) > 14 {
			t.Errorf("after %s and %d calls: %v", time.Since(begin), len(cloud.Calls()), err)
		}
	})
}

func TestResizeRefusals(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.SizeGiB = 20 })
	if e := wantError(t, c.Volumes().Resize(t.Context(), v, 15)); e.Reason != backends.ReasonInvalid {
		t.Errorf("shrinking: %+v", e)
	}
	if e := wantError(t, c.Volumes().Resize(t.Context(), v, 20000)); e.Reason != backends.ReasonSize {
		t.Errorf("too large: %+v", e)
	}
	if err := c.Volumes().Resize(t.Context(), v, 20); err != nil || cloud.Volumes()[0].Size != 20 {
		t.Errorf("the same: %v", err)
	}
	const text = "Block Storage resizing is temporarily disabled for this Droplet"
	c = scripted(t, always(refusal(422, "unprocessable_entity", text)))
	if e := wantError(t, c.Volumes().Resize(t.Context(), v, 30)); !strings.Contains(e.Message, text) || e.Reason != "" || e.Retryable || e.Remedy == "" {
		t.Errorf("disabled: %+v", e)
	}
}

// TestActionsNameTheDroplet: without it the API finds no attachment.
func TestActionsNameTheDroplet(t *testing.T) {
	s := always(jsonAnswer(http.StatusAccepted, `{"action":{"id":1,"status":"in-progress","type":"x"}}`))
	c := scripted(t, s)
	v := backends.Volume{ID: "11111111-2222-3333-4444-555555555555", Region: "fra1"}
	if err := c.Volumes().Attach(t.Context(), v, "77"); err != nil {
		t.Fatal(err)
	}
	if err := c.Volumes().Detach(t.Context(), v, "77"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"type":"attach","droplet_id":77,"region":"fra1"}`, `{"type":"detach","droplet_id":77,"region":"fra1"}`} {
		if got := strings.TrimSpace(s.bodies[i]); got != want {
			t.Errorf("sent %s", got)
		}
	}
}

func TestDeletingVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		v := madeVolume(t, c)
		fault(t, cloud, emulator.Rule{Method: "DELETE", Path: "/volumes/*", Kind: emulator.KindLoseAnswer})
		if err := c.Volumes().Delete(t.Context(), v); !backends.HasCode(err, backends.NotFound) || len(cloud.Volumes()) != 0 {
			t.Errorf("the lost answer: %v", err)
		}
		v = madeVolume(t, c)
		if err := c.Volumes().Delete(t.Context(), v); err != nil || len(cloud.Volumes()) != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestVolumeDiagnose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 8 * time.Second})
		m, v := madeDroplet(t, cloud, "fra1"), madeVolume(t, c)
		diagnose := func() error {
			t.Helper()
			time.Sleep(time.Minute) // of the bubble's clock
			return c.Volumes().(backends.VolumeDiagnoser).Diagnose(t.Context(), v)
		}
		if err := diagnose(); err != nil {
			t.Errorf("nothing failed: %v", err)
		}
		fault(t, cloud, emulator.Rule{Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindFailAction})
		if err := c.Volumes().Attach(t.Context(), v, m); err != nil {
			t.Fatal(err)
		}
		if e := wantError(t, diagnose()); e.Reason != backends.ReasonAction || e.Details["type"] != "attach_volume" {
			t.Errorf("got %+v", e)
		}
		if err := c.Volumes().Attach(t.Context(), v, m); err != nil {
			t.Fatal(err)
		}
		if err := diagnose(); err != nil {
			t.Errorf("old news: %v", err)
		}
	})
}

// TestAttachmentOnItsWayIsWaitedFor: the API says that the volume is attached, and the
// volume that it isn't yet. Where it ends up decides.
func TestAttachmentOnItsWayIsWaitedFor(t *testing.T) {
	const id = "11111111-2222-3333-4444-555555555555"
	for ends, ok := range map[string]bool{"77": true, "78": false} {
		synctest.Test(t, func(t *testing.T) {
			c := scripted(t, &script{answer: func(r *http.Request, nth int) answer {
				droplets := ""
				switch {
				case r.Method == http.MethodPost:
					return refusal(422, "unprocessable_entity", "This volume is already attached")
				case nth > 7:
					droplets = ends
				}
				return jsonAnswer(200, fmt.Sprintf(`{"volume":{"id":%q,"name":"data","droplet_ids":[%s]}}`, id, droplets))
			}})
			err := c.Volumes().Attach(t.Context(), backends.Volume{ID: id}, "77")
			if (err == nil) != ok || !ok && wantError(t, err).Code != backends.InvalidState {
				t.Errorf("on %s: %v", ends, err)
			}
		})
	}
}
