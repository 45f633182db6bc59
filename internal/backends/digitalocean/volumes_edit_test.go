// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// userTags are the tags of the first volume that aren't ours.
func userTags(cloud *emulated.Service) []string {
	out := slices.DeleteFunc(cloud.Volumes()[0].Tags, func(tag string) bool { return strings.HasPrefix(tag, "better-compute") })
	slices.Sort(out)
	return out
}

func labelled(labels map[string]string, tags ...string) backends.VolumeSpec {
	spec := backends.VolumeSpec{Labels: labels, Options: backends.Values{}}
	if tags != nil {
		list := make([]any, len(tags))
		for i, tag := range tags {
			list[i] = tag
		}
		spec.Options["tags"] = list
	}
	return spec
}

// Each call of an edit is disturbed in turn; none may end anywhere else than undisturbed.
func TestVolumeRelabel(t *testing.T) {
	for name, rule := range map[string]emulator.Rule{
		"undisturbed":     {Method: "PATCH"},
		"tagging lost":    {Method: "POST", Path: "/v2/tags/*/resources", Kind: emulator.KindLoseAnswer},
		"tagging reset":   {Method: "POST", Path: "/v2/tags/*/resources", Kind: emulator.KindReset},
		"making a tag":    {Method: "POST", Path: "/v2/tags", Kind: emulator.KindLoseAnswer},
		"untagging lost":  {Method: "DELETE", Path: "/v2/tags/*/resources", Kind: emulator.KindLoseAnswer},
		"reading refused": {Method: "GET", Path: "/v2/volumes/*", Kind: emulator.KindStatus, Status: 503, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				v := madeVolume(t, c, func(s *backends.VolumeSpec) {
					s.Labels, s.Options = map[string]string{"role": "db", "tier": ""}, backends.Values{"tags": []any{"raw", "tier"}}
				})
				cloud.SetVolumeTags(v.ID, append(cloud.Volumes()[0].Tags, "theirs")...)
				if rule.Kind != "" {
					rule.Service = "digitalocean"
					fault(t, cloud, rule)
				}
				store := volumes{c}
				from := labelled(map[string]string{"role": "db", "tier": ""}, "raw", "tier")
				for _, step := range []struct {
					to   backends.VolumeSpec
					want []string
				}{
					{labelled(map[string]string{"Role": "web"}, "raw", "tier"), []string{"Role:web", "raw", "theirs", "tier"}},
					{labelled(nil, "other"), []string{"Role:web", "other", "theirs"}},           // labels are left alone
					{labelled(map[string]string{"a": "b"}), []string{"a:b", "other", "theirs"}}, // and now tags are
					{labelled(map[string]string{}, []string{}...), []string{"other", "theirs"}},
				} {
					was := from
					var err error
					if v, err = store.Relabel(t.Context(), v, was, step.to); err != nil || v.Marks.Key != testVolume().Marks.Key {
						t.Fatalf("%v: %+v, %v", step.want, v, err)
					}
					if got := userTags(cloud); !slices.Equal(got, step.want) {
						t.Errorf("the volume has %v, want %v", got, step.want)
					}
					if from = step.to; step.to.Labels == nil {
						from.Labels = map[string]string{"Role": "web"}
					}
				}
			})
		})
	}
}

// A volume that is gone, or that nobody may read, is an error and no panic.
func TestVolumeRelabelOfAVolumeThatIsGone(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	cloud.DeleteVolume(v.ID)
	if _, err := (volumes{c}).Relabel(t.Context(), v, labelled(nil), labelled(map[string]string{"a": "b"})); !backends.HasCode(err, backends.NotFound) {
		t.Errorf("got %v", err)
	}
}

// Protection is the tag that protects Droplets too.
func TestVolumeProtectionIsATag(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	v := madeVolume(t, c)
	store := volumes{c}
	for range 2 {
		if err := store.Protect(t.Context(), v, true); err != nil {
			t.Fatal(err)
		}
	}
	v = again(t, store, v)
	if err := store.Delete(t.Context(), v); !v.Protected || !backends.HasReason(err, backends.ReasonProtected) || len(cloud.Volumes()) != 1 {
		t.Errorf("%+v deleted: %v", v, err)
	}
	marks := v.Marks
	marks.Claim = "another"
	if v, err := store.Mark(t.Context(), v, marks); err != nil || !v.Protected || !again(t, store, v).Protected {
		t.Errorf("marked: %+v, %v", v, err)
	}
	for range 2 {
		if err := store.Protect(t.Context(), v, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Delete(t.Context(), again(t, store, v)); err != nil || len(cloud.Volumes()) > 0 {
		t.Errorf("deleted: %v", err)
	}
}
