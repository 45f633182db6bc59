// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// Each edit of a volume is disturbed in turn; none may end anywhere else than
// undisturbed.
func TestVolumeEdits(t *testing.T) {
	for name, rule := range map[string]emulator.Rule{
		"undisturbed":    {Method: "PATCH"},
		"PUT lost":       {Method: "PUT", Kind: emulator.KindLoseAnswer},
		"PUT reset":      {Method: "PUT", Kind: emulator.KindReset},
		"PUT HTML":       {Method: "PUT", Kind: emulator.KindHTML},
		"PUT rate limit": {Method: "PUT", Kind: emulator.KindRateLimitHour, Times: 3},
		"protect lost":   {Method: "POST", Path: "*/change_protection", Kind: emulator.KindLoseAnswer},
		"protect locked": {Method: "POST", Path: "*/change_protection", Kind: emulator.KindLocked, Times: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Labels = map[string]string{"role": "db", "csi/x": ""} })
				if rule.Kind != "" {
					rule.Service = "hetzner"
					if err := cloud.AddFault(rule); err != nil {
						t.Fatal(err)
					}
				}
				store := volumes{c}
				marks := v.Marks
				marks.Key = "pvol_another"
				v, err := store.Rename(t.Context(), v, "renamed", marks)
				if err != nil || v.Name != "renamed" || v.Marks != marks || len(v.Labels) != 2 {
					t.Fatalf("renamed to %+v, %v", v, err)
				}
				v, err = store.Relabel(t.Context(), v, backends.VolumeSpec{Labels: map[string]string{"role": "db"}},
					backends.VolumeSpec{Labels: map[string]string{"tier": "one"}})
				if want := map[string]string{"tier": "one", "csi/x": ""}; err != nil || !maps.Equal(v.Labels, want) || v.Marks != marks {
					t.Errorf("relabelled to %+v, %v", v, err)
				}
				for _, on := range []bool{true, false} {
					if err := store.Protect(t.Context(), v, on); err != nil || again(t, c, v).Protected != on {
						t.Errorf("protect %t: %v", on, err)
					}
				}
			})
		})
	}
}

// One call each, and none where nothing is to be done.
func TestVolumeEditsCostOneCall(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Labels = map[string]string{"role": "db"} })
	cloud.ClearCalls()
	store, same := volumes{c}, backends.VolumeSpec{Labels: map[string]string{"role": "db"}}
	for what, to := range map[string]backends.VolumeSpec{"equal": same, "hands off": {}} {
		if _, err := store.Relabel(t.Context(), v, same, to); err != nil || len(cloud.Calls()) > 0 {
			t.Errorf("%s: calls %v, %v", what, counts(cloud), err)
		}
	}
	if _, err := store.Rename(t.Context(), v, "renamed", v.Marks); err != nil || !maps.Equal(counts(cloud), map[string]int{"PUT /v1/volumes/ID": 1}) {
		t.Errorf("calls %v, %v", counts(cloud), err)
	}
}

// A name that another volume has is refused, and changes nothing.
func TestVolumeNameIsTaken(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	other := madeVolume(t, c, func(s *backends.VolumeSpec) { s.Name = "other" })
	marks := v.Marks
	marks.Key = "pvol_another"
	begun := time.Now()
	_, err := volumes{c}.Rename(t.Context(), v, "other", marks)
	taken, ok := errors.AsType[*backends.NameTaken](err)
	if !ok || taken.Holder.ID != other.ID || !backends.HasCode(err, backends.Conflict) || time.Since(begun) > nameReleaseWindow {
		t.Errorf("got %v", err)
	}
	if is := again(t, c, v); is.Name != "data" || is.Marks != v.Marks {
		t.Errorf("the volume is %+v", is)
	}
}
