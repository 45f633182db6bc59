// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

func TestVolumeMarkKeepsForeignLabels(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Labels = map[string]string{"role": "db", "csi/x": ""} })
	cloud.ClearCalls()
	marks := v.Marks
	marks.Complete, marks.Claim, marks.GoesWithMachine = true, "another", false
	v, err := c.Volumes().Mark(t.Context(), v, marks)
	if err != nil || v.Marks != marks || len(v.Labels) != 2 {
		t.Fatalf("got %+v, %v", v, err)
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"PUT /v1/volumes/ID": 1}) {
		t.Errorf("calls %v", got)
	}
	labels := cloud.Volumes()[0].Labels
	if _, goes := labels["better-compute.io/delete-with-instance"]; goes || labels["role"] != "db" || labels["better-compute.io/claim"] != "another" {
		t.Errorf("labels %v", labels)
	}
}

// attachedTo is the id of the server that the cloud has volume n attached to.
func attachedTo(cloud *emulated.Service, n int) int64 { return cloud.Volumes()[n].Server }

func TestAttachAndDetach(t *testing.T) {
	// Every call of the life is disturbed in turn; none may end in an error, nor
	// anywhere else than undisturbed.
	for name, rule := range map[string]emulator.Rule{
		"undisturbed":        {Method: "PATCH"},
		"attach lost":        {Method: "POST", Path: "*/actions/attach", Kind: emulator.KindLoseAnswer},
		"attach reset":       {Method: "POST", Path: "*/actions/attach", Kind: emulator.KindReset},
		"attach 504 done":    {Method: "POST", Path: "*/actions/attach", Kind: emulator.KindLoseAnswer, Status: 504},
		"attach locked":      {Method: "POST", Path: "*/actions/attach", Kind: emulator.KindLocked, Times: 12},
		"resize lost":        {Method: "POST", Path: "*/actions/resize", Kind: emulator.KindLoseAnswer},
		"resize rate limit":  {Method: "POST", Path: "*/actions/resize", Kind: emulator.KindRateLimitHour, Times: 9},
		"detach lost":        {Method: "POST", Path: "*/actions/detach", Kind: emulator.KindLoseAnswer},
		"detach HTML":        {Method: "POST", Path: "*/actions/detach", Kind: emulator.KindHTML},
		"detach locked":      {Method: "POST", Path: "*/actions/detach", Kind: emulator.KindLocked, Times: 12},
		"reading is refused": {Method: "GET", Path: "/volumes/*", Kind: emulator.KindStatus, Status: 503, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{Boot: 40 * time.Second})
				m := made(t, c)
				v := madeVolume(t, c) // the server is still locked, and so is the volume
				if name != "undisturbed" {
					if err := cloud.AddFault(rule); err != nil {
						t.Fatal(err)
					}
				}
				volumes := c.Volumes()
				if err := volumes.Attach(t.Context(), v, m.ID); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if v = again(t, c, v); !v.AttachedTo(m.ID) {
					t.Fatalf("attached to %v", v.Machines)
				}
				if err := volumes.Attach(t.Context(), v, m.ID); err != nil {
					t.Errorf("again: %v", err)
				}
				if err := volumes.Resize(t.Context(), v, 12); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if v = again(t, c, v); v.SizeGiB != 12 || !v.AttachedTo(m.ID) {
					t.Errorf("grown: %+v", v)
				}
				if err := volumes.Detach(t.Context(), v, m.ID); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if v = again(t, c, v); len(v.Machines) > 0 {
					t.Errorf("detached: %+v", v)
				}
				if err := volumes.Detach(t.Context(), v, m.ID); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		})
	}
}

func TestAnotherServerKeepsItsVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		first := made(t, c)
		second := made(t, c, func(s *backends.MachineSpec) { s.Name = "web-1" })
		v := madeVolume(t, c)
		cloud.AttachVolume(numberOf(t, v.ID), numberOf(t, second.ID))
		// v is as it was seen before.
		e := wantError(t, c.Volumes().Attach(t.Context(), v, first.ID))
		if e.Code != backends.InvalidState || !strings.Contains(e.Message, second.ID) {
			t.Errorf("attaching: %v", e)
		}
		v.Machines = []string{first.ID}
		if err := c.Volumes().Detach(t.Context(), v, first.ID); err != nil || attachedTo(cloud, 0) != numberOf(t, second.ID) {
			t.Errorf("detaching: %v; it is attached to %d", err, attachedTo(cloud, 0))
		}
		if e := wantError(t, c.Volumes().Delete(t.Context(), v)); e.Code != backends.InvalidState || !strings.Contains(e.Message, second.ID) {
			t.Errorf("deleting: %v", e)
		}
		if counts(cloud)["POST /v1/volumes/ID/actions/detach"] > 0 || len(cloud.Volumes()) != 1 {
			t.Errorf("calls %v", counts(cloud))
		}
	})
}

func TestAttachSaysWhatIsGone(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	e := wantError(t, c.Volumes().Attach(t.Context(), v, "999"))
	if e.Code != backends.ProviderError || e.Reason != backends.ReasonInvalid || !strings.Contains(e.Remedy, "999") {
		t.Errorf("no server: %+v", e)
	}
	m := made(t, c)
	cloud.DeleteVolume(numberOf(t, v.ID))
	if err := c.Volumes().Attach(t.Context(), v, m.ID); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("no volume: %v", err)
	}
	if err := c.Volumes().Detach(t.Context(), v, m.ID); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("no volume: %v", err)
	}
	for _, machine := range []string{"", "0x1", "../1"} {
		if e := wantError(t, c.Volumes().Attach(t.Context(), v, machine)); e.Code != backends.InvalidInput {
			t.Errorf("%q: %v", machine, e)
		}
	}
}

func TestVolumesOfOtherLocationsAreRefused(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Region = "nbg1" })
	e := wantError(t, c.Volumes().Attach(t.Context(), v, made(t, c).ID))
	if e.Code != backends.ProviderError || !strings.Contains(e.Message, "same location") || e.Retryable {
		t.Errorf("got %+v", e)
	}
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
}

func TestDeletingVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		v := madeVolume(t, c)
		post(t, cloud, "/volumes/"+v.ID+"/actions/change_protection", map[string]any{"delete": true})
		v = again(t, c, v)
		e := wantError(t, c.Volumes().Delete(t.Context(), v))
		if !v.Protected || e.Reason != backends.ReasonProtected || strings.Contains(e.Remedy, "deletion_protection") || len(cloud.Volumes()) != 1 {
			t.Errorf("protected: %+v", e)
		}
		post(t, cloud, "/volumes/"+v.ID+"/actions/change_protection", map[string]any{"delete": false})
		if err := cloud.AddFault(emulator.Rule{Method: "DELETE", Kind: emulator.KindLoseAnswer}); err != nil {
			t.Fatal(err)
		}
		if err := c.Volumes().Delete(t.Context(), v); !backends.HasCode(err, backends.NotFound) || len(cloud.Volumes()) != 0 {
			t.Errorf("the lost answer: %v", err)
		}
		v = madeVolume(t, c)
		if err := c.Volumes().Delete(t.Context(), v); err != nil || len(cloud.Volumes()) != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestLockedVolumesAreWaitedForAsLongAsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		v, m := madeVolume(t, c), made(t, c)
		if err := cloud.AddFault(emulator.Rule{Method: "POST", Kind: emulator.KindLocked, Times: emulator.Forever}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		err := c.Volumes().Attach(ctx, v, m.ID)
		if e := wantError(t, err); e.Reason != backends.ReasonLocked || time.Since(begin) != time.Minute || len(cloud.Calls()) > 14 {
			t.Errorf("after %s and %d calls: %v", time.Since(begin), len(cloud.Calls()), err)
		}
	})
}

func TestVolumeDiagnose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 8 * time.Second})
		m, v := made(t, c), madeVolume(t, c)
		diagnose := func() error {
			t.Helper()
			time.Sleep(time.Minute) // of the bubble's clock
			return c.Volumes().(backends.VolumeDiagnoser).Diagnose(t.Context(), v)
		}
		if err := diagnose(); err != nil {
			t.Errorf("nothing failed: %v", err)
		}
		if err := cloud.AddFault(emulator.Rule{Method: "POST", Path: "*/actions/attach", Kind: emulator.KindFailAction}); err != nil {
			t.Fatal(err)
		}
		if err := c.Volumes().Attach(t.Context(), v, m.ID); err != nil {
			t.Fatal(err)
		}
		if e := wantError(t, diagnose()); e.Reason != backends.ReasonAction || e.Details["command"] != "attach_volume" {
			t.Errorf("got %+v", e)
		}
		if err := c.Volumes().Attach(t.Context(), v, m.ID); err != nil {
			t.Fatal(err)
		}
		if err := diagnose(); err != nil {
			t.Errorf("old news: %v", err)
		}
	})
}

// TestDetachedMeanwhile: the volume is let go between our look at it and our call.
func TestDetachedMeanwhile(t *testing.T) {
	attached := `{"volume":{"id":4711,"name":"data","size":10,"status":"available","server":77}}`
	c := clientOf(t, &script{answer: func(r *http.Request, nth int) answer {
		switch {
		case r.Method == http.MethodPost:
			return jsonAnswer(422, `{"error":{"code":"service_error","message":"volume not attached to a server","details":null}}`)
		case nth == 1:
			return jsonAnswer(200, attached)
		}
		return jsonAnswer(200, strings.Replace(attached, "77", "null", 1))
	}}, &fixedSecrets{token: testToken})
	if err := c.Volumes().Detach(t.Context(), backends.Volume{ID: "4711"}, "77"); err != nil {
		t.Error(err)
	}
	c = clientOf(t, &script{answer: func(r *http.Request, _ int) answer {
		if r.Method == http.MethodPost {
			return jsonAnswer(422, `{"error":{"code":"service_error","message":"something else","details":null}}`)
		}
		return jsonAnswer(200, attached)
	}}, &fixedSecrets{token: testToken})
	if e := wantError(t, c.Volumes().Detach(t.Context(), backends.Volume{ID: "4711"}, "77")); !strings.Contains(e.Message, "something else") {
		t.Errorf("got %v", e)
	}
}
