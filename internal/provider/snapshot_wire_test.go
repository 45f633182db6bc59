// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

const snapshotType = "bettercompute_snapshot"

func snapshotConfig(w *wire, volumeURI, name string) tftypes.Value {
	return w.config(snapshotType, map[string]tftypes.Value{
		"name": tftypes.NewValue(tftypes.String, name), "volume": tftypes.NewValue(tftypes.String, volumeURI),
	})
}

func warningsOf(diags []*tfprotov6.Diagnostic) string {
	var out []string
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityWarning {
			out = append(out, d.Summary)
		}
	}
	return strings.Join(out, "; ")
}

func TestInterruptedSnapshotIsFinishedByTheNextApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOcean(t, oceanemulator.Options{Boot: 4 * time.Hour})
		o.makeShare("files")
		time.Sleep(4 * time.Hour)
		pool, _ := o.backendOf(oceanPoolURI)
		w := o.wire()
		config := snapshotConfig(w, pool.VolumeRef("files").String(), "first")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begun := time.Now()
		made, diags := w.apply(ctx, snapshotType, w.none(snapshotType), config)
		if took := time.Since(begun); took > time.Minute+time.Second {
			t.Errorf("the interrupt took effect after %s", took-time.Minute)
		}
		// A warning, not an error: an error would taint the snapshot.
		if problems := errorsOf(diags); problems != "" || !strings.Contains(warningsOf(diags), "Creation was interrupted") {
			t.Errorf("diagnostics %v", diags)
		}
		if made.value.IsNull() || made.text(t, "state") != "pending" || made.text(t, "snapshot_id") == "" || made.text(t, "claim") == "" {
			t.Fatalf("recorded %s", made.value)
		}

		time.Sleep(2 * time.Hour)
		next := o.wire()
		refreshed, _ := next.read(snapshotType, made)
		finished, diags := next.apply(t.Context(), snapshotType, refreshed, config)
		if problems := errorsOf(diags); problems != "" {
			t.Fatal(problems)
		}
		if finished.text(t, "state") != "ready" || finished.text(t, "snapshot_id") != made.text(t, "snapshot_id") {
			t.Errorf("finished as %s", finished.value)
		}
	})
}

func TestTimedOutSnapshotIsRecordedAndSaysHowToKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOcean(t, oceanemulator.Options{Boot: 4 * time.Hour})
		o.makeShare("files")
		time.Sleep(4 * time.Hour)
		pool, _ := o.backendOf(oceanPoolURI)
		w := o.wire()
		begun := time.Now()
		made, diags := w.apply(t.Context(), snapshotType, w.none(snapshotType), snapshotConfig(w, pool.VolumeRef("files").String(), "first"))
		if took := time.Since(begun); took > 20*time.Minute+time.Second {
			t.Errorf("the default timeout took %s", took)
		}
		if problems := errorsOf(diags); !strings.Contains(problems, "untaint") {
			t.Errorf("diagnostics %s", problems)
		}
		if made.value.IsNull() || made.text(t, "snapshot_id") == "" {
			t.Errorf("recorded %s", made.value)
		}
	})
}

// A creation whose outcome is not known when it is interrupted leaves nothing, and
// the next one finds what was made.
func TestSnapshotInterruptedBeforeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOcean(t, oceanemulator.Options{})
		o.makeVolume(oceanPoolURI, "fra1", "data")
		if err := o.cloud.AddFault(emulator.Rule{Service: "digitalocean", Method: "POST", Path: "/v2/volumes/*/snapshots", Kind: emulator.KindLoseAnswer, Nth: 1, Times: 1}); err != nil {
			t.Fatal(err)
		}
		if err := o.cloud.AddFault(emulator.Rule{Service: "digitalocean", Method: "GET", Path: "/v2/snapshots", Kind: emulator.KindHold, Nth: 2}); err != nil {
			t.Fatal(err)
		}
		w := o.wire()
		config := snapshotConfig(w, dataVolumeURI, "first")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		made, diags := w.apply(ctx, snapshotType, w.none(snapshotType), config)
		if !made.value.IsNull() || !strings.Contains(errorsOf(diags), "Nothing is recorded") {
			t.Fatalf("recorded %s, %s", made.value, errorsOf(diags))
		}
		o.cloud.ClearFaults()
		next := o.wire()
		made, diags = next.apply(t.Context(), snapshotType, next.none(snapshotType), config)
		if problems := errorsOf(diags); problems != "" || made.text(t, "state") != "ready" {
			t.Fatalf("%s, recorded %s", problems, made.value)
		}
		o.oneSnapshot()
	})
}

// What a plan can't be sure of is a warning.
func TestSnapshotPlanWarns(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	v := o.makeVolume(oceanPoolURI, "fra1", "data")
	for i := range backends.MaxSnapshots {
		o.makeSnapshot(v, fmt.Sprintf("s-%d", i), true)
	}
	o.changes()
	w := o.wire()
	for name, want := range map[string]string{
		"first": "QUOTA_EXCEEDED: The apply may be refused",
		"s-3":   "CONFLICT: the snapshot exists",
	} {
		if _, diags := w.plan(snapshotType, w.none(snapshotType), snapshotConfig(w, dataVolumeURI, name)); warningsOf(diags) != want || errorsOf(diags) != "" {
			t.Errorf("%s: got %q, %s, want %q", name, warningsOf(diags), errorsOf(diags), want)
		}
	}
	// The pool of this run tells whether it adopts.
	pool := w.config("bettercompute_pool", map[string]tftypes.Value{
		"name": tftypes.NewValue(tftypes.String, "web"), "provider_account": tftypes.NewValue(tftypes.String, oceanAccountURI),
		"adopt": tftypes.NewValue(tftypes.Bool, true),
	})
	if _, diags := w.plan("bettercompute_pool", w.none("bettercompute_pool"), pool); errorsOf(diags) != "" {
		t.Fatal(errorsOf(diags))
	}
	if _, diags := w.plan(snapshotType, w.none(snapshotType), snapshotConfig(w, dataVolumeURI, "s-3")); warningsOf(diags) != "The snapshot exists" {
		t.Errorf("got %q", warningsOf(diags))
	}
	o.expectChanges()
}

// A refresh of a snapshot that is gone warns; the next ones, and a plan that edits
// it, too.
func TestSnapshotThatIsGoneWarns(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	w := o.wire()
	made, diags := w.apply(t.Context(), snapshotType, w.none(snapshotType), snapshotConfig(w, dataVolumeURI, "first"))
	if problems := errorsOf(diags); problems != "" {
		t.Fatal(problems)
	}
	o.cloud.DeleteVolumeSnapshot(o.oneSnapshot().ID)
	next := o.wire()
	gone, diags := next.read(snapshotType, made)
	if warningsOf(diags) != "NOT_FOUND: the snapshot is gone" || gone.text(t, "state") != "error" || gone.text(t, "message") == "" {
		t.Errorf("%v, read as %s", diags, gone.value)
	}
	o.changes()
	planned, diags := next.plan(snapshotType, gone, snapshotConfig(next, dataVolumeURI, "renamed"))
	if warningsOf(diags) != "Not made again" || !planned.value.Equal(gone.value) {
		t.Errorf("%q, planned %s", warningsOf(diags), planned.value)
	}
	if calls := o.cloud.Calls(); len(calls) > 0 {
		t.Errorf("the plan made %v", calls)
	}
}

// Should it show again, it is itself again.
func TestSnapshotThatShowsAgainIsItselfAgain(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeVolume(oceanPoolURI, "fra1", "data")
	w := o.wire()
	config := snapshotConfig(w, dataVolumeURI, "first")
	made, diags := w.apply(t.Context(), snapshotType, w.none(snapshotType), config)
	if problems := errorsOf(diags); problems != "" {
		t.Fatal(problems)
	}
	for _, rule := range []emulator.Rule{
		{Service: "digitalocean", Path: "/v2/snapshots", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(time.Hour), Times: emulator.Forever},
		{Service: "digitalocean", Path: "/v2/snapshots/*", Kind: emulator.KindStatus, Status: 404, Times: emulator.Forever},
	} {
		if err := o.cloud.AddFault(rule); err != nil {
			t.Fatal(err)
		}
	}
	gone, _ := o.wire().read(snapshotType, made)
	if gone.text(t, "state") != "error" {
		t.Fatalf("read as %s", gone.value)
	}
	o.cloud.ClearFaults()
	next := o.wire()
	back, diags := next.read(snapshotType, gone)
	if len(diags) > 0 || !back.value.Equal(made.value) {
		t.Errorf("%v, read as %s, was %s", diags, back.value, made.value)
	}
	if _, diags := next.apply(t.Context(), snapshotType, back, config); len(diags) > 0 {
		t.Errorf("%v", diags)
	}
}

// Refreshing snapshots costs pages, not snapshots.
func TestRefreshOfSnapshotsIsOneList(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	w := o.wire()
	var made []object
	o.makeVolume(oceanPoolURI, "fra1", "data-0")
	o.makeVolume(oceanPoolURI, "fra1", "data-1")
	for i := range 6 {
		uri := strings.Replace(dataVolumeURI, "/data?", fmt.Sprintf("/data-%d?", i%2), 1)
		s, diags := w.apply(t.Context(), snapshotType, w.none(snapshotType), snapshotConfig(w, uri, fmt.Sprintf("s-%d", i)))
		if problems := errorsOf(diags); problems != "" {
			t.Fatal(problems)
		}
		made = append(made, s)
	}
	o.cloud.ClearCalls()
	next := o.wire()
	for _, s := range made {
		if read, diags := next.read(snapshotType, s); len(diags) > 0 || !read.value.Equal(s.value) {
			t.Errorf("%v, read as %s", diags, read.value)
		}
	}
	if calls := o.cloud.Calls(); len(calls) != 1 {
		t.Errorf("it took %v", calls)
	}
}

// A state without private data, as an edited one may be, is read and destroyed all
// the same.
func TestSnapshotWithoutPrivateState(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	o.makeShare("files")
	pool, _ := o.backendOf(oceanPoolURI)
	w := o.wire()
	made, diags := w.apply(t.Context(), snapshotType, w.none(snapshotType), snapshotConfig(w, pool.VolumeRef("files").String(), "first"))
	if problems := errorsOf(diags); problems != "" {
		t.Fatal(problems)
	}
	made.private = nil
	read, diags := w.read(snapshotType, made)
	if len(diags) > 0 || !read.value.Equal(made.value) {
		t.Errorf("%v, read as %s, was %s", diags, read.value, made.value)
	}
	if _, diags := w.destroy(snapshotType, made); len(diags) > 0 {
		t.Errorf("%v", diags)
	}
	if left := o.cloud.ShareSnapshots(); len(left) > 0 {
		t.Errorf("the cloud still has %+v", left)
	}
}
