// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// adopting is the attributes with a pool that takes over what is there.
func (s *spec) adopting(more given) given {
	out := given{"pool": strings.Replace(s.poolURI, "?", "?pool.adopt=true&", 1)}
	maps.Copy(out, more)
	return out
}

// "The same idempotencyKey with the same input returns the same volume; with other
// input it is CONFLICT": the key is the volume's id, and a pool that adopts says that
// a creation is a retry of one whose state was lost.
func TestVolumeOfTheSameKeyIsTheSameVolumeAndAConflictWithOtherInput(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		made := s.make(volumeType, given{"filesystem": "ext4"})
		for attribute, more := range map[string]given{
			"filesystem": {"filesystem": "xfs"},
			"size_gib":   {"filesystem": "ext4", "size_gib": 10},
		} {
			if attribute == "size_gib" { // the one that is there is the larger one
				made = s.change(volumeType, made, given{"filesystem": "ext4", "size_gib": 20})
			}
			s.wire = s.world.wire()
			if other, problems := s.tried(s.adopting(more)); !other.value.IsNull() || !strings.HasPrefix(problems, "CONFLICT: ") || !strings.Contains(problems, attribute) {
				t.Errorf("%s: %s, recorded %s", attribute, problems, other.value)
			}
		}
		s.wire = s.world.wire()
		again := s.make(volumeType, s.adopting(given{"filesystem": "ext4", "size_gib": s.one().size}))
		if again.text(t, "volume_id") != made.text(t, "volume_id") || again.text(t, "claim") == made.text(t, "claim") {
			t.Errorf("made %s, again %s", made.value, again.value)
		}
		s.one()
	})
}

// A lost state with adopt = true never deletes a volume, whatever fails after the
// adoption: a creation that fails either records nothing, or is no error, which would
// taint what it records and have the next apply replace it.
func TestVolumeThatWasAdoptedIsNeverTainted(t *testing.T) {
	for name, rule := range map[string]emulator.Rule{
		"attaching fails":    {Method: "POST", Path: "/volumes/*/actions*", Kind: emulator.KindFailAction, Times: emulator.Forever},
		"changes are denied": {Method: "POST", Path: "/volumes/*", Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever},
		"marks are denied":   {Method: http.MethodPut, Path: "/volumes/*", Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever},
		"nothing answers":    {Method: "GET", Path: "/volumes/*", Kind: emulator.KindStatus, Status: 503, Times: emulator.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			onBothClouds(t, 0, func(t *testing.T, s *spec) {
				uris, _ := s.two()
				s.make(volumeType, nil)
				before := s.one()
				s.wire = s.world.wire()
				if s.name == "digitalocean" && rule.Method == http.MethodPut {
					rule.Method, rule.Path = "*", "/tags/*" // where DigitalOcean has the marks
				}
				s.broken(rule)
				got, diags := s.wire.apply(t.Context(), volumeType, s.wire.none(volumeType), s.config(volumeType, s.adopting(given{"instances": uris[:1], "size_gib": 20})))
				problems := errorsOf(diags)
				if problems+warned(diags) == "" {
					t.Error("nothing failed: the case needs that something does")
				}
				if problems != "" && !got.value.IsNull() {
					t.Errorf("an error taints what it records: %s", problems)
				}
				if after := s.one(); after.id != before.id {
					t.Errorf("the volume was %+v and is %+v", before, after)
				}
			})
		})
	}
}
