// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const volumeType = "bettercompute_provider_volume"

func volumeConfig(w *wire, more map[string]tftypes.Value) tftypes.Value {
	given := map[string]tftypes.Value{
		"name":     tftypes.NewValue(tftypes.String, "data"),
		"pool":     tftypes.NewValue(tftypes.String, poolURI),
		"size_gib": tftypes.NewValue(tftypes.Number, 10),
	}
	maps.Copy(given, more)
	return w.config(volumeType, given)
}

// onInstances is the attribute instances.
func onInstances(uris ...string) map[string]tftypes.Value {
	list := make([]tftypes.Value, len(uris))
	for i, uri := range uris {
		list[i] = tftypes.NewValue(tftypes.String, uri)
	}
	return map[string]tftypes.Value{"instances": tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, list)}
}

// warned are the summaries and details of warnings.
func warned(diags []*tfprotov6.Diagnostic) string {
	var out []string
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityWarning {
			out = append(out, d.Summary+"\n"+d.Detail)
		}
	}
	return strings.Join(out, "\n")
}

// done is what an apply or plan without an error gives.
func done(t *testing.T, o object, diags []*tfprotov6.Diagnostic) object {
	t.Helper()
	if problems := errorsOf(diags); problems != "" {
		t.Fatal(problems)
	}
	return o
}

func TestVolumeInterruptedCreateIsFinishedByTheNextApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newWorldWith(t, hetzneremulator.Options{Boot: 10 * time.Hour})
		w := cloud.wire()
		config := volumeConfig(w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		made, diags := w.apply(ctx, volumeType, w.none(volumeType), config)
		// A warning, not an error: an error would taint the volume.
		if problems := errorsOf(diags); problems != "" || len(diags) == 0 {
			t.Fatalf("diagnostics %v", problems)
		}
		if made.value.IsNull() || made.text(t, "state") != "pending" || made.text(t, "volume_id") == "" || made.text(t, "claim") == "" {
			t.Fatalf("recorded %s", made.value)
		}
		time.Sleep(20 * time.Hour)
		next := cloud.wire()
		refreshed, _ := next.read(volumeType, made)
		if refreshed.text(t, "state") != "pending" {
			t.Errorf("refreshed to %s: nothing would finish it", refreshed.text(t, "state"))
		}
		finished, diags := next.apply(t.Context(), volumeType, refreshed, config)
		finished = done(t, finished, diags)
		if finished.text(t, "state") != "ready" || finished.text(t, "volume_id") != made.text(t, "volume_id") {
			t.Errorf("finished as %s", finished.value)
		}
		if v := cloud.onlyVolume(); v.Labels["better-compute.io/complete"] != "true" {
			t.Errorf("the volume is %+v", v)
		}
	})
}

// An input that was not known in time for its validator is refused all the same,
// before the first call.
func TestVolumeInputsKnownLateAreRefused(t *testing.T) {
	for name, value := range map[string]string{
		"name": "Data_1", "description": strings.Repeat("a", 257), "kind": "nfs", "filesystem": "zfs",
	} {
		cloud := newWorld(t)
		w := cloud.wire()
		_, diags := w.plan(volumeType, w.none(volumeType), volumeConfig(w, map[string]tftypes.Value{name: tftypes.NewValue(tftypes.String, value)}))
		if problems := errorsOf(diags); !strings.HasPrefix(problems, "INVALID_INPUT: ") || len(cloud.calls()) > 0 {
			t.Errorf("%s: diagnostics %q, calls %v", name, problems, cloud.calls())
		}
	}
}

func TestVolumeTimedOutCreateIsRecordedAndSaysHowToKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newWorldWith(t, hetzneremulator.Options{Boot: 10 * time.Hour})
		w := cloud.wire()
		timeouts, ok := w.types[volumeType].AttributeTypes["timeouts"].(tftypes.Object)
		if !ok {
			t.Fatal("timeouts is no object")
		}
		values := nulls(timeouts)
		values["create"] = tftypes.NewValue(tftypes.String, "90s")
		made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, map[string]tftypes.Value{"timeouts": tftypes.NewValue(timeouts, values)}))
		if problems := errorsOf(diags); !strings.Contains(problems, "untaint") {
			t.Errorf("diagnostics %s", problems)
		}
		if made.value.IsNull() || made.text(t, "volume_id") == "" {
			t.Errorf("recorded %s", made.value)
		}
	})
}

// TestVolumeRefreshedStateIsStable: a refresh right after an apply changes nothing.
func TestVolumeRefreshedStateIsStable(t *testing.T) {
	cloud := newWorld(t)
	w := cloud.wire()
	instance, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
	instance = done(t, instance, diags)
	made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, onInstances(instance.text(t, "uri"))))
	made = done(t, made, diags)
	refreshed, diags := cloud.wire().read(volumeType, made)
	if len(diags) > 0 || !refreshed.value.Equal(made.value) {
		t.Errorf("a refresh changed\n%s\nto\n%s", made.value, refreshed.value)
	}
}

// What plans and refreshes say about data that is, or will be, lost.
func TestVolumeWarningsOfLostData(t *testing.T) {
	cloud := newWorld(t)
	w := cloud.wire()
	made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
	instance := done(t, made, diags)
	goes := onInstances(instance.text(t, "uri"))
	goes["delete_with_instance"] = tftypes.NewValue(tftypes.Bool, true)
	made, diags = w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, goes))
	volume := done(t, made, diags)
	id := volume.text(t, "volume_id")

	says := func(what string, diags []*tfprotov6.Diagnostic, parts ...string) {
		t.Helper()
		got := warned(diags)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in %q", what, part, got)
			}
		}
	}
	goes["instances"] = onInstances()["instances"]
	_, diags = w.plan(volumeType, volume, volumeConfig(w, goes))
	says("taken from its instance", diags, "The volume's data goes with the instance", "delete_with_instance = false", id)

	resp, err := w.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: instanceType, PriorState: w.dynamic(w.types[instanceType], instance.value), PriorPrivate: instance.private,
		ProposedNewState: w.dynamic(w.types[instanceType], w.none(instanceType).value), Config: w.dynamic(w.types[instanceType], w.none(instanceType).value),
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		t.Fatal(err)
	}
	says("the instance destroyed", resp.Diagnostics, "Volumes go with the machine", `"data" (`+id+`)`)

	// A replacement plans twice; the cores show the warnings of the first time.
	_, diags = w.plan(instanceType, instance, instanceConfig(w, map[string]tftypes.Value{"image": tftypes.NewValue(tftypes.String, "debian-12")}))
	says("the instance replaced", diags, "Volumes go with the machine", `"data" (`+id+`)`)

	cloud.lose()
	gone, diags := cloud.wire().read(volumeType, volume)
	says("the volume gone", diags, "NOT_FOUND: the volume is gone", "-replace=ADDRESS", id)
	if gone.text(t, "state") != "error" || gone.text(t, "message") == "" || gone.text(t, "volume_id") != id {
		t.Errorf("recorded %s", gone.value)
	}
}

// A foreign attachment is warned of where instances is set.
func TestVolumeWarnsOfAForeignAttachment(t *testing.T) {
	cloud := newWorld(t)
	w := cloud.wire()
	machine := cloud.makeMachine(poolURI, "other")
	made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, onInstances()))
	named := done(t, made, diags)
	cloud.hetzner.AttachVolume(cloud.onlyVolume().ID, cloud.only().ID)
	if _, diags = cloud.wire().read(volumeType, named); !strings.Contains(warned(diags), "Attached outside") || !strings.Contains(warned(diags), machine.ID) {
		t.Errorf("diagnostics %s", warned(diags))
	}
}

// A move whose second half fails: what did happen is recorded, and the next apply goes
// on from there.
func TestVolumeHalfMovedIsRecorded(t *testing.T) {
	cloud := newWorld(t)
	w := cloud.wire()
	instance := func(name string) string {
		made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, name)}))
		return done(t, made, diags).text(t, "uri")
	}
	first, second := instance("web-0"), instance("web-1")
	made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, onInstances(first)))
	volume := done(t, made, diags)
	cloud.fault(emulator.Rule{Service: "hetzner", Method: "POST", Path: "/v1/volumes/*/actions/attach", Kind: emulator.KindFailAction, Times: emulator.Forever})
	wanted := onInstances(second)
	wanted["size_gib"] = tftypes.NewValue(tftypes.Number, 20)
	half, diags := w.apply(t.Context(), volumeType, volume, volumeConfig(w, wanted))
	if errorsOf(diags) == "" {
		t.Fatal("no error")
	}
	if v := cloud.onlyVolume(); v.Server != 0 || v.Size != 10 {
		t.Fatalf("the volume is %+v", v)
	}
	var values map[string]tftypes.Value
	if err := half.value.As(&values); err != nil {
		t.Fatal(err)
	}
	if !values["instances"].Equal(onInstances()["instances"]) || half.text(t, "claim") != volume.text(t, "claim") {
		t.Errorf("recorded %s", half.value)
	}
	cloud.hetzner.ClearFaults()
	made, diags = cloud.wire().apply(t.Context(), volumeType, half, volumeConfig(w, wanted))
	done(t, made, diags)
	if v := cloud.onlyVolume(); v.Server != cloud.named("web-1").ID || v.Size != 20 {
		t.Errorf("the volume is %+v", v)
	}
}

// Refreshes cost pages, not objects (DESIGN.md §7).
func TestVolumeRefreshCostsPages(t *testing.T) {
	cloud := newWorld(t)
	w := cloud.wire()
	var all []object
	for i := range 51 {
		made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, map[string]tftypes.Value{
			"name": tftypes.NewValue(tftypes.String, "data-"+strconv.Itoa(i)),
		}))
		all = append(all, done(t, made, diags))
	}
	cloud.forgetCalls()
	next := cloud.wire()
	for _, o := range all {
		if _, diags := next.read(volumeType, o); len(diags) > 0 {
			t.Fatal(errorsOf(diags), warned(diags))
		}
	}
	if calls := cloud.calls(); len(calls) > 2+1+1 {
		t.Errorf("%d calls: %v", len(calls), calls)
	}
}
