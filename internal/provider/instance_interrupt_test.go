// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const instanceType = "bettercompute_instance"

func instanceConfig(w *wire, more map[string]tftypes.Value) tftypes.Value {
	given := map[string]tftypes.Value{
		"name":  tftypes.NewValue(tftypes.String, "web-0"),
		"pool":  tftypes.NewValue(tftypes.String, poolURI),
		"offer": tftypes.NewValue(tftypes.String, "cx23"),
		"image": tftypes.NewValue(tftypes.String, "ubuntu-24.04"),
	}
	maps.Copy(given, more)
	return w.config(instanceType, given)
}

func errorsOf(diags []*tfprotov6.Diagnostic) string {
	var out []string
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			out = append(out, d.Summary+"\n"+d.Detail)
		}
	}
	return strings.Join(out, "\n")
}

func TestInterruptedCreateIsFinishedByTheNextApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newWorldWith(t, hetzneremulator.Options{Boot: time.Hour})
		w := cloud.wire()
		config := instanceConfig(w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begun := time.Now()
		made, diags := w.apply(ctx, instanceType, w.none(instanceType), config)
		if took := time.Since(begun); took > time.Minute+time.Second {
			t.Errorf("the interrupt took effect after %s", took-time.Minute)
		}
		// A warning, not an error: an error would taint the machine.
		if problems := errorsOf(diags); problems != "" || len(diags) == 0 {
			t.Errorf("diagnostics %v", diags)
		}
		if made.value.IsNull() || made.text(t, "state") != "pending" || made.text(t, "machine_id") == "" || made.text(t, "claim") == "" {
			t.Fatalf("recorded %s", made.value)
		}

		time.Sleep(2 * time.Hour)
		next := cloud.wire()
		refreshed, _ := next.read(instanceType, made)
		if refreshed.text(t, "state") != "pending" {
			t.Errorf("refreshed to %s: nothing would finish it", refreshed.text(t, "state"))
		}
		finished, diags := next.apply(t.Context(), instanceType, refreshed, config)
		if problems := errorsOf(diags); problems != "" {
			t.Fatal(problems)
		}
		if finished.text(t, "state") != "running" || finished.text(t, "machine_id") != made.text(t, "machine_id") {
			t.Errorf("finished as %s", finished.value)
		}
		if s := cloud.only(); s.Labels["better-compute.io/complete"] != "true" {
			t.Errorf("the server is %+v", s)
		}
	})
}

func TestTimedOutCreateIsRecordedAndSaysHowToKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newWorldWith(t, hetzneremulator.Options{Boot: time.Hour})
		w := cloud.wire()
		timeouts, ok := w.types[instanceType].AttributeTypes["timeouts"].(tftypes.Object)
		if !ok {
			t.Fatal("timeouts is no object")
		}
		values := nulls(timeouts)
		values["create"] = tftypes.NewValue(tftypes.String, "90s")
		config := instanceConfig(w, map[string]tftypes.Value{"timeouts": tftypes.NewValue(timeouts, values)})
		begun := time.Now()
		made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), config)
		if took := time.Since(begun); took > 91*time.Second {
			t.Errorf("a timeout of 90 s took %s", took)
		}
		if problems := errorsOf(diags); !strings.Contains(problems, "untaint") {
			t.Errorf("diagnostics %s", problems)
		}
		if made.value.IsNull() || made.text(t, "machine_id") == "" {
			t.Errorf("recorded %s", made.value)
		}
	})
}

// TestRefreshedStateIsStable: a refresh right after an apply changes nothing.
func TestRefreshedStateIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newWorldWith(t, hetzneremulator.Options{Boot: 10 * time.Second})
		w := cloud.wire()
		made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
		if problems := errorsOf(diags); problems != "" {
			t.Fatal(problems)
		}
		time.Sleep(time.Minute)
		refreshed, _ := cloud.wire().read(instanceType, made)
		if !refreshed.value.Equal(made.value) {
			t.Errorf("a refresh changed\n%s\nto\n%s", made.value, refreshed.value)
		}
	})
}
