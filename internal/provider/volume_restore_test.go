// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// What a replacement could not be made from is refused by its plan, since the old
// volume goes first; a creation may still find the snapshot when it is applied.
func TestVolumePlanLooksAtItsSnapshot(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	w := o.wire()
	o.makeSnapshot(o.makeVolume(oceanPoolURI, "fra1", "source"), "first", true)
	o.makeShare("files")
	shared, diags := w.apply(t.Context(), snapshotType, w.none(snapshotType),
		snapshotConfig(w, "digitalocean://root/main/web/volumes/files"+oceanQuery, "first"))
	done(t, shared, diags)

	config := func(snapshot string, more map[string]tftypes.Value) tftypes.Value {
		given := map[string]tftypes.Value{
			"name": tftypes.NewValue(tftypes.String, "copy"), "pool": tftypes.NewValue(tftypes.String, oceanPoolURI),
			"from_snapshot": tftypes.NewValue(tftypes.String, "digitalocean://root/main/web/volumes/"+snapshot+oceanQuery),
		}
		maps.Copy(given, more)
		return volumeConfig(w, given)
	}
	made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), config("source/snapshots/first", nil))
	made = done(t, made, diags)

	size := func(n int) map[string]tftypes.Value {
		return map[string]tftypes.Value{"size_gib": tftypes.NewValue(tftypes.Number, n)}
	}
	elsewhere := map[string]tftypes.Value{"region": tftypes.NewValue(tftypes.String, "nyc3")}
	const absent, another = "source/snapshots/other", "files/snapshots/first"
	for name, test := range map[string]struct {
		snapshot         string
		more             map[string]tftypes.Value
		replaced         []string // what the plan of a replacement is refused with; nil: it isn't
		created, warning []string // the same of a creation, and what it warns of
	}{
		"there": {snapshot: "source/snapshots/first"},
		"not there": {
			snapshot: absent, replaced: []string{`INVALID_INPUT: from_snapshot: There is no snapshot "other"`, "in an apply of its own first"},
			warning: []string{`No such snapshot yet: "other"`, "Unless this apply makes it first"},
		},
		"a share's": {
			snapshot: another, replaced: []string{`UNSUPPORTED: The snapshot "first" is of a shared volume`, "reason: snapshots"},
			created: []string{`UNSUPPORTED: The snapshot "first" is of a shared volume`, "reason: snapshots"},
		},
		"larger": {
			snapshot: "source/snapshots/first", more: size(9),
			replaced: []string{"INVALID_INPUT: size_gib is 9", "reason: size"}, created: []string{"INVALID_INPUT: size_gib is 9", "reason: size"},
		},
		"elsewhere": {
			snapshot: "source/snapshots/first", more: elsewhere,
			replaced: []string{"INVALID_INPUT: ", "region fra1"}, created: []string{"INVALID_INPUT: ", "region fra1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The second call of a replacement's plan has the private state and no state.
			again := w.none(volumeType)
			again.private = made.private
			_, diags := w.plan(volumeType, again, config(test.snapshot, test.more))
			contains(t, "replaced", errorsOf(diags), test.replaced)
			more := map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, "new")}
			maps.Copy(more, test.more)
			_, diags = w.plan(volumeType, w.none(volumeType), config(test.snapshot, more))
			contains(t, "created", errorsOf(diags), test.created)
			contains(t, "created, with a warning", warned(diags), test.warning)
		})
	}
}

// contains fails unless a text holds all parts; without any it must be empty.
func contains(t *testing.T, what, got string, parts []string) {
	t.Helper()
	if len(parts) == 0 && got != "" {
		t.Errorf("%s: got %q", what, got)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s: no %q in %q", what, part, got)
		}
	}
}
