// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	clusteremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestInterruptedCloneIsRecorded ends a creation while its clone runs: its VMID is in
// the state, pending and not tainted, whatever the clone says of itself by then; the next
// run finishes it, or destroys it.
func TestInterruptedCloneIsRecorded(t *testing.T) {
	for _, after := range []time.Duration{3 * time.Second, 15 * time.Second} {
		for _, destroy := range []bool{false, true} {
			t.Setenv("PROXMOX_TOKEN", "root@pam!tofu=secret")
			synctest.Test(t, func(t *testing.T) {
				pve, err := clusteremulator.New(clusteremulator.Options{PlainHTTP: true, Boot: 40 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				clouds, err := backends.NewRegistry(proxmox.New(proxmox.Options{Transport: emulator.Transport(pve)}))
				if err != nil {
					t.Fatal(err)
				}
				cloud := &world{t: t, clouds: clouds}
				w := cloud.wire()
				config := w.config(instanceType, map[string]tftypes.Value{
					"name":  tftypes.NewValue(tftypes.String, "web-0"),
					"pool":  tftypes.NewValue(tftypes.String, "proxmox://root/main/web?token=env://PROXMOX_TOKEN&url=https://pve.test:8006"),
					"offer": tftypes.NewValue(tftypes.String, "1c-2g"),
					"image": tftypes.NewValue(tftypes.String, "debian-13"),
				})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(after, cancel)
				begun := time.Now()
				made, diags := w.apply(ctx, instanceType, w.none(instanceType), config)
				if took := time.Since(begun); took > after+time.Second {
					t.Errorf("the interrupt took effect after %s", took-after)
				}
				if problems := errorsOf(diags); problems != "" || len(diags) == 0 {
					t.Errorf("diagnostics %v", diags)
				}
				if made.value.IsNull() || made.text(t, "state") != "pending" || made.text(t, "machine_id") == "" || made.text(t, "claim") == "" {
					t.Fatalf("recorded %s", made.value)
				}

				next := cloud.wire()
				refreshed, diags := next.read(instanceType, made)
				if problems := errorsOf(diags); problems != "" || refreshed.value.IsNull() || refreshed.text(t, "state") != "pending" {
					t.Fatalf("refreshed to %s, %s", refreshed.value, problems)
				}
				if destroy {
					gone, diags := next.destroy(instanceType, refreshed)
					if problems := errorsOf(diags); problems != "" || !gone.value.IsNull() || len(pve.Machines()) != 0 {
						t.Errorf("%s, %s, %+v", gone.value, problems, pve.Machines())
					}
					return
				}
				finished, diags := next.apply(t.Context(), instanceType, refreshed, config)
				if problems := errorsOf(diags); problems != "" || finished.text(t, "state") != "running" ||
					finished.text(t, "machine_id") != made.text(t, "machine_id") {
					t.Errorf("finished as %s, %s", finished.value, problems)
				}
				if all := pve.Machines(); len(all) != 1 || !all[0].Running {
					t.Errorf("%+v", all)
				}
			})
		}
	}
}
