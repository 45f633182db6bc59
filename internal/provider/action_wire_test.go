// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// invoke validates, plans and invokes an action, as Terraform 1.14 does; no CLI of
// today's gate can.
func (w *wire) invoke(action string, given map[string]tftypes.Value) (progress []string, diags []*tfprotov6.Diagnostic) {
	w.t.Helper()
	server, ok := w.server.(tfprotov6.ActionServer)
	if !ok {
		w.t.Fatal("the provider has no actions")
	}
	schemas, err := w.server.GetProviderSchema(w.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	typ := schemas.ActionSchemas[action].Schema.ValueType()
	values := nulls(typ)
	maps.Copy(values, given)
	config := w.dynamic(typ, tftypes.NewValue(typ, values))
	valid, err := server.ValidateActionConfig(w.t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: action, Config: config})
	if err != nil {
		w.t.Fatal(err)
	}
	if errorsOf(valid.Diagnostics) != "" {
		return nil, valid.Diagnostics
	}
	planned, err := server.PlanAction(w.t.Context(), &tfprotov6.PlanActionRequest{ActionType: action, Config: config})
	if err != nil {
		w.t.Fatal(err)
	}
	if errorsOf(planned.Diagnostics) != "" {
		return nil, planned.Diagnostics
	}
	stream, err := server.InvokeAction(w.t.Context(), &tfprotov6.InvokeActionRequest{ActionType: action, Config: config})
	if err != nil {
		w.t.Fatal(err)
	}
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, e.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			diags = append(diags, e.Diagnostics...)
		}
	}
	return progress, diags
}

// powers are the calls since the last time that change the power of a machine.
func powers(calls []emulator.Call) []string {
	var out []string
	for _, c := range calls {
		if c.Method == http.MethodPost && strings.Contains(c.Path, "/actions/") || c.Method == http.MethodPost && strings.Contains(c.Path, "/status/") {
			out = append(out, c.Path[strings.LastIndex(c.Path, "/")+1:])
		}
	}
	return out
}

func TestActionsRestart(t *testing.T) {
	for action, want := range map[string]struct{ hetzner, proxmox []string }{
		"bettercompute_instance_reboot":           {[]string{"shutdown", "poweron"}, []string{"shutdown", "start"}},
		"bettercompute_instance_graceful_restart": {[]string{"reboot"}, []string{"reboot"}},
		"bettercompute_instance_reset":            {[]string{"reset"}, []string{"reset"}},
		"bettercompute_instance_power_cycle":      {[]string{"reset"}, []string{"stop", "start"}},
	} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newWorldWith(t, hetzneremulator.Options{})
				w := cloud.wire()
				made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
				uri := done(t, made, diags).text(t, "uri")
				// With the machine's id and without it.
				path, query, _ := strings.Cut(uri, "?")
				withoutID := path[:strings.LastIndex(path, "/")] + "?" + query
				for _, named := range []string{uri, withoutID} {
					cloud.forgetCalls()
					progress, diags := cloud.wire().invoke(action, map[string]tftypes.Value{"instance": textValue(named)})
					if errorsOf(diags) != "" || len(progress) != 2 {
						t.Fatalf("%s: %s, progress %q", named, errorsOf(diags), progress)
					}
					if got := powers(cloud.hetzner.Calls()); !slices.Equal(got, want.hetzner) {
						t.Errorf("the calls %q, not %q", got, want.hetzner)
					}
					if s := cloud.only(); s.Status != "running" {
						t.Errorf("the server is %s", s.Status)
					}
				}
			})
			c := newCluster(t)
			w := c.wire()
			made, diags := w.apply(t.Context(), instanceType, w.none(instanceType),
				instanceConfig(w, map[string]tftypes.Value{"pool": textValue(clusterPool), "offer": textValue("1c-2g"), "image": textValue("debian-13")}))
			uri := done(t, made, diags).text(t, "uri")
			c.pve.ClearCalls()
			if _, diags := c.wire().invoke(action, map[string]tftypes.Value{"instance": textValue(uri)}); errorsOf(diags) != "" {
				t.Fatal(errorsOf(diags))
			}
			if got := powers(c.pve.Calls()); !slices.Equal(got, want.proxmox) {
				t.Errorf("the calls %q, not %q", got, want.proxmox)
			}
			if all := c.pve.Machines(); len(all) != 1 || !all[0].Running {
				t.Errorf("the cluster has %+v", all)
			}
		})
	}
}

// A guest that doesn't shut down loses its plug after a minute, and runs again.
func TestActionRebootsAGuestThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newWorldWith(t, hetzneremulator.Options{})
		w := cloud.wire()
		made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
		uri := done(t, made, diags).text(t, "uri")
		cloud.forgetCalls()
		cloud.fault(emulator.Rule{Service: "hetzner", Method: "POST", Path: "/v1/servers/*/actions/shutdown", Kind: emulator.KindFailAction, Times: emulator.Forever})
		begun := time.Now()
		_, diags = cloud.wire().invoke("bettercompute_instance_reboot", map[string]tftypes.Value{"instance": textValue(uri)})
		if errorsOf(diags) != "" || time.Since(begun) > 5*time.Minute {
			t.Fatalf("%s after %s", errorsOf(diags), time.Since(begun))
		}
		if got := powers(cloud.hetzner.Calls()); !slices.Equal(got, []string{"shutdown", "poweroff", "poweron"}) {
			t.Errorf("the calls %q", got)
		}
	})
}

func TestActionsRefuse(t *testing.T) {
	const reset = "bettercompute_instance_reset"
	for name, test := range map[string]struct {
		change func(w *world, id int64)
		given  func(uri string) map[string]tftypes.Value
		want   string
	}{
		"no uri": {given: func(string) map[string]tftypes.Value {
			return map[string]tftypes.Value{"instance": textValue("inst_0")}
		}, want: "INVALID_INPUT: "},
		"a pool's uri":    {given: func(string) map[string]tftypes.Value { return map[string]tftypes.Value{"instance": textValue(poolURI)} }, want: "INVALID_INPUT: "},
		"a stopped one":   {change: func(w *world, id int64) { w.hetzner.SetPower(id, false) }, want: `INVALID_STATE: `},
		"an unmarked one": {change: func(w *world, id int64) { w.hetzner.SetLabels(id, nil) }, want: `ACCESS_DENIED: `},
		"another's": {change: func(w *world, id int64) {
			labels := maps.Clone(w.only().Labels)
			labels["better-compute.io/idempotency-key"] = "inst_another"
			w.hetzner.SetLabels(id, labels)
		}, want: `CONFLICT: `},
		"a deleted one": {change: func(w *world, id int64) { w.hetzner.Delete(id) }, want: `NOT_FOUND: `},
		"one without a machine": {given: func(string) map[string]tftypes.Value {
			return map[string]tftypes.Value{"instance": textValue(strings.Replace(poolURI, "/web?", "/web/instances/none?", 1))}
		}, want: `NOT_FOUND: `},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newWorld(t)
			w := cloud.wire()
			made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), instanceConfig(w, nil))
			uri := done(t, made, diags).text(t, "uri")
			given := map[string]tftypes.Value{"instance": textValue(uri)}
			if test.given != nil {
				given = test.given(uri)
			}
			if test.change != nil {
				test.change(cloud, cloud.only().ID)
			}
			cloud.forgetCalls()
			_, diags = cloud.wire().invoke(reset, given)
			if problems := errorsOf(diags); !strings.HasPrefix(problems, test.want) {
				t.Errorf("diagnostics %q, not %q", problems, test.want)
			}
			if got := powers(cloud.hetzner.Calls()); len(got) > 0 {
				t.Errorf("the calls %q", got)
			}
		})
	}
}

func TestActionTakesASnapshot(t *testing.T) {
	const action = "bettercompute_volume_snapshot"
	synctest.Test(t, func(t *testing.T) {
		o := newOcean(t, oceanemulator.Options{})
		w := o.wire()
		made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, map[string]tftypes.Value{"pool": textValue(oceanPoolURI)}))
		volume := done(t, made, diags).text(t, "uri")
		given := map[string]tftypes.Value{"volume": textValue(volume)}
		for range 2 { // again and again
			time.Sleep(time.Second)
			if progress, diags := w.invoke(action, given); errorsOf(diags) != "" || len(progress) != 2 || !strings.Contains(progress[1], "/snapshots/at-") {
				t.Fatalf("%s, progress %q", errorsOf(diags), progress)
			}
		}
		time.Sleep(time.Second)
		given["name"] = textValue("before-upgrade")
		if _, diags := w.invoke(action, given); errorsOf(diags) != "" {
			t.Fatal(errorsOf(diags))
		}
		if all := o.cloud.VolumeSnapshots(); len(all) != 3 {
			t.Fatalf("the snapshots are %+v", all)
		}
		// What was made is found, and can be imported.
		all, diags := o.wire().list(snapshotType, map[string]tftypes.Value{"pool": textValue(oceanPoolURI)}, 0, false)
		if len(all) != 3 || len(diags) > 0 {
			t.Fatalf("listed %+v %s", all, warned(diags))
		}
		if imported := o.wire().importing(snapshotType, all[2].uri); imported.text(t, "state") != "ready" || imported.text(t, "name") != "before-upgrade" {
			t.Errorf("imported %s", imported.value)
		}
		// The name is taken.
		if _, diags := o.wire().invoke(action, given); !strings.HasPrefix(errorsOf(diags), "CONFLICT: ") {
			t.Errorf("diagnostics %q", errorsOf(diags))
		}
		given["name"] = textValue("Not a name")
		if _, diags := w.invoke(action, given); !strings.HasPrefix(errorsOf(diags), "INVALID_INPUT: ") {
			t.Errorf("diagnostics %q", errorsOf(diags))
		}
	})
	// A cloud without snapshots says so in the plan.
	if _, diags := newWorld(t).wire().invoke(action, map[string]tftypes.Value{"volume": textValue(strings.Replace(poolURI, "/web?", "/web/volumes/data?", 1))}); !strings.HasPrefix(errorsOf(diags), "UNSUPPORTED: ") {
		t.Errorf("diagnostics %q", errorsOf(diags))
	}
}
