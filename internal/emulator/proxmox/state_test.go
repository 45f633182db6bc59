// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestOptionsThatDontFit: all that is wrong is said at once.
func TestOptionsThatDontFit(t *testing.T) {
	_, err := proxmox.New(proxmox.Options{
		Version: 7, Nodes: []string{"a"}, Templates: []proxmox.Template{{VMID: 9000, Node: "b", Storage: "c"}},
		Containers: []proxmox.Container{{VMID: 100, Node: "d"}},
	})
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v", err)
	}
}

// TestRestore: what a run leaves unfinished, the next one finishes.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := proxmox.Options{CloneTime: time.Minute}
		first := newService(t, options)
		upid := raw(t, first).ok("POST", debian+"/clone", "newid=101", "full=1", "name=web", "target=pve2").text()
		snapshot, err := first.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(snapshot), secret) {
			t.Error("the token's secret is in the snapshot")
		}
		second := newService(t, options)
		if err := second.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		if got, want := second.VMs(), first.VMs(); !reflect.DeepEqual(got, want) || machine(t, second, 101).Config["lock"] != "clone" {
			t.Errorf("restored %+v, want %+v", got, want)
		}
		<-time.After(time.Minute)
		a := raw(t, second)
		if exit := a.exit(upid); exit != "OK" {
			t.Errorf("the clone ended with %q", exit)
		}
		if got := machine(t, second, 101); got.Name != "web" || got.Node != "pve2" {
			t.Errorf("after it: %+v", got)
		}
		a.done("OK", "POST", "/nodes/pve2/qemu/101/status/start")
		for _, bad := range []string{`[]`, `{"clusters":{"x":null}}`, `{"clusters":{"x":{"vms":{"1":null}}}}`, `{"clusters":{"x":{"volumes":[null]}}}`, `{"clusters":{"x":{"tasks":[{"type":"x"}]}}}`} {
			if err := second.Restore(json.RawMessage(bad)); err == nil {
				t.Errorf("%s was restored", bad)
			}
		}
	})
}
