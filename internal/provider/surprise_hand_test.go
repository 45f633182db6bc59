// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestSurprisedByHand: someone renames, resizes, protects, moves, stops or deletes an
// object by hand.
func TestSurprisedByHand(t *testing.T) {
	const protected = "plan none; destroy [!INVALID_STATE]"
	wanted := map[string]map[string]string{
		"hetzner instance": {"renamed": shown, "resized": shown, "protected": recordedAnew, "off": recordedAnew, "deleted": madeAnew},
		// A volume that hangs on a machine which the state doesn't name isn't taken from it.
		"hetzner volume":        {"renamed": shown, "resized": shown, "protected": protected, "attached": protected, "deleted": lostData},
		"digitalocean instance": {"renamed": shown, "resized": shown, "off": recordedAnew, "deleted": madeAnew},
		"digitalocean volume":   {"resized": shown, "attached": protected, "deleted": lostData},
		"digitalocean snapshot": {"deleted": lostData},
		// The state says error, with a message; nothing mends it.
		"digitalocean share":          {"resized": shown, "failed": unmoved, "deleted": lostData},
		"digitalocean share-snapshot": {"deleted": lostData},
		"proxmox instance": {
			"renamed": shown, "resized": shown, "moved": unmoved, "off": recordedAnew,
			"protected": "plan none; destroy [!INVALID_STATE]",
			// The key's VMID is free again.
			"deleted": "plan create [NOT_FOUND]; apply ok; gone",
			// Tags may be a copy's, so a disk isn't wiped by them alone; the error has the
			// line to put into the notes.
			"undescribed": "plan none; destroy [!ACCESS_DENIED]",
			"templated":   madeAnew,
		},
	}
	everyThing(t, func(t *testing.T, p *surprised) {
		all, want := hands(p.matrixCloud.name, p.thing.name), wanted[p.matrixCloud.name+" "+p.thing.name]
		if len(all) != len(want) {
			t.Errorf("%d things are done, and %d expected", len(all), len(want))
		}
		for _, what := range slices.Sorted(maps.Keys(all)) {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					all[what](hand{s, p.record(now).attribute(p.id)})
					expect(t, p.meets(t, s, now, p.pools[0], p.thing.to), want[what])
				})
			})
		}
	})
}

// TestSurprisedByLabels: someone takes labels or tags away, each alone, all of ours, and
// all there are; or adds one. Of a single mark of ours that is gone the plan says so, and
// the apply puts it back: without its pool, or its key, a run whose state was lost would
// not find the object. The marker that says that an object is managed at all is the
// exception: without it nothing is ours.
func TestSurprisedByLabels(t *testing.T) {
	everyThing(t, func(t *testing.T, p *surprised) {
		if p.fixed {
			return // their marks are in their names
		}
		kind, cluster := p.thing.name, p.matrixCloud.name == "proxmox"
		var had []string
		synctest.Test(t, func(t *testing.T) {
			s, now := p.later(t)
			had = hand{s, p.record(now).attribute(p.id)}.labels(kind)
		})
		changes := map[string]func([]string) []string{
			"all marks":  func(l []string) []string { return slices.DeleteFunc(slices.Clone(l), isMark) },
			"all labels": func([]string) []string { return nil },
			"one more":   func(l []string) []string { return append(slices.Clone(l), "by-hand") },
		}
		for _, label := range had {
			changes[markName(label)] = func(l []string) []string { return without(l, label) }
		}
		for _, what := range slices.Sorted(maps.Keys(changes)) {
			t.Run(what, func(t *testing.T) {
				want := mended
				switch {
				case what == "one more", strings.HasPrefix(what, "debian"), what == "template":
					want = unmoved // not ours
				case strings.HasPrefix(what, "app"):
					want = shown
				case cluster && (what == "image" || what == "created"):
					want = unmoved // notes, not marks
				case cluster && what == "offer":
					want = shown
				case cluster:
					// The description holds the marks too.
				case what == "all labels" && kind != "snapshot":
					want = strings.ReplaceAll(notOurs, "[ACCESS_DENIED]", "[ACCESS_DENIED, Changed outside]")
				case what == "all labels", what == "all marks", what == "managed", what == "better-compute":
					want = notOurs
				}
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					h := hand{s, p.record(now).attribute(p.id)}
					h.label(kind, changes[what](h.labels(kind)))
					expect(t, p.meets(t, s, now, p.pools[0], p.thing.to, func() {
						if want != mended {
							return
						}
						for _, label := range had {
							if has := h.labels(kind); isMark(label) && !slices.Contains(has, label) {
								t.Errorf("%s wasn't put back: %q", label, has)
							}
						}
					}), want)
				})
			})
		}
	})
}

// markName is the name of the mark in a label or tag.
func markName(label string) string {
	for _, prefix := range []string{"better-compute.io/", "better-compute:", "bc-"} {
		if rest, ok := strings.CutPrefix(label, prefix); ok {
			return rest[:strings.IndexAny(rest+"=", "=:-")]
		}
	}
	return label
}
