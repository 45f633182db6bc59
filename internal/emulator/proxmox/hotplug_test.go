// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestPlugged: which changes a running VM takes at once, by what may be plugged.
func TestPlugged(t *testing.T) {
	for _, test := range []struct {
		hotplug string
		before  []string
		change  string
		pending bool
	}{
		{"", nil, "cores=4", true},
		{"", nil, "memory=4096", true},
		{"", nil, "cpu=host", true},
		{"", nil, "name=other", false},
		{"", nil, "cpuunits=50", false},
		{"", nil, "nameserver=192.0.2.53", false},
		{"", nil, "ipconfig0=ip=192.0.2.7/24", false},
		{"0", nil, "ipconfig0=ip=192.0.2.7/24", false},
		{"", nil, "net0=virtio=BC:24:11:00:00:99,bridge=vmbr0", false},
		{"disk", nil, "net0=virtio=BC:24:11:00:00:99,bridge=vmbr0", true},
		{"disk", nil, "net0=virtio=BC:24:11:00:00:01,bridge=vmbr1,firewall=1,tag=7", false},
		{"disk", nil, "net0=virtio=BC:24:11:00:00:01,bridge=vmbr0,mtu=1400", true},
		{"network,disk", nil, "net1=virtio,bridge=vmbr0", false},
		{"disk", nil, "net1=virtio,bridge=vmbr0", true},
		{"cpu", []string{"vcpus=1"}, "vcpus=2", false},
		{"disk", []string{"vcpus=1"}, "vcpus=2", true},
		{"memory", []string{"numa=1"}, "memory=4096", false},
		{"memory", nil, "memory=4096", true},
		{"memory", []string{"numa=1"}, "memory=512", true},
	} {
		s, a := stopped(t, proxmox.Options{Bridges: []string{"vmbr0", "vmbr1"}})
		a.ok("PUT", vm+"/config", "net0=virtio=BC:24:11:00:00:01,bridge=vmbr0")
		if test.hotplug != "" {
			a.ok("PUT", vm+"/config", "hotplug="+test.hotplug)
		}
		for _, option := range test.before {
			a.ok("PUT", vm+"/config", option)
		}
		a.done("OK", "POST", vm+"/status/start")
		a.ok("PUT", vm+"/config", test.change)
		name, value, _ := strings.Cut(test.change, "=")
		got := machine(t, s, 101)
		if _, pending := got.Pending[name]; pending != test.pending {
			t.Errorf("with hotplug %q, %s: in force %q, pending %q", test.hotplug, test.change, got.Config[name], got.Pending[name])
		}
		a.done("OK", "POST", vm+"/status/stop")
		a.done("OK", "POST", vm+"/status/start")
		got = machine(t, s, 101)
		if fits := strings.HasPrefix(got.Config[name], value) || name == "net1"; !fits || len(got.Pending) > 0 {
			t.Errorf("after a start, %s: %q, pending %v", test.change, got.Config[name], got.Pending)
		}
	}
}

// TestUnplugged: what could not be plugged stays pending, and all else is done.
func TestUnplugged(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.done("OK", "POST", vm+"/status/start")
	before := machine(t, s, 101).Config["net0"]
	for _, test := range []struct{ fault, card, problem string }{
		{"", "virtio,bridge=vmbr9", "bridge 'vmbr9' does not exist"},
		{"fail-action", "e1000,bridge=vmbr0", "error on hot-unplugging device 'net0' - still busy in guest?"},
	} {
		if test.fault != "" {
			addFault(t, s, emulator.Rule{Method: "PUT", Path: "*/config", Kind: emulator.Kind(test.fault)})
		}
		got := a.refused(400, "Parameter verification failed.", "PUT", vm+"/config", "net0="+test.card, "onboot=1", "description="+test.card)
		if want := map[string]string{"net0": "hotplug problem - " + test.problem + "\n"}; !maps.Equal(got.errors, want) {
			t.Errorf("%s: %q", test.card, got.errors)
		}
		m := machine(t, s, 101)
		model, rest, _ := strings.Cut(test.card, ",")
		if m.Config["net0"] != before || !strings.HasPrefix(m.Pending["net0"], model+"=") || !strings.HasSuffix(m.Pending["net0"], rest) ||
			m.Config["onboot"] != "1" || m.Config["description"] != test.card {
			t.Errorf("%s: %v, pending %v", test.card, m.Config, m.Pending)
		}
	}
	a.ok("PUT", vm+"/config", "revert=net0")
	if m := machine(t, s, 101); len(m.Pending) > 0 {
		t.Errorf("pending %v", m.Pending)
	}
}

// TestCloudInitPending: what the guest doesn't know yet, and when it learns it.
func TestCloudInitPending(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.ok("PUT", vm+"/config", "ipconfig0=ip=192.0.2.7/24", "ciuser=me", "cipassword=hunter2")
	a.done("OK", "POST", vm+"/status/start")
	has := func(address string) {
		t.Helper()
		if got := a.ok("GET", vm+"/agent/network-get-interfaces").body; !strings.Contains(got, `"`+address+`"`) {
			t.Errorf("the guest doesn't have %s: %s", address, got)
		}
	}
	pending := func(want map[string][3]any) {
		t.Helper()
		for _, row := range a.ok("GET", vm+"/cloudinit").rows() {
			name, _ := row["key"].(string)
			if got := [3]any{row["value"], row["pending"], row["delete"]}; got != want[name] {
				t.Errorf("%s: %v, want %v", name, got, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("not shown: %v", want)
		}
	}
	masked := "**********"
	pending(map[string][3]any{"ipconfig0": {"ip=192.0.2.7/24"}, "ciuser": {"me"}, "cipassword": {masked}})
	a.ok("PUT", vm+"/config", "ipconfig0=ip=192.0.2.8/24", "delete=ciuser", "searchdomain=example.com", "cipassword=hunter3")
	pending(map[string][3]any{
		"ipconfig0": {"ip=192.0.2.7/24", "ip=192.0.2.8/24"}, "ciuser": {"me", nil, 1.0},
		"cipassword": {masked, masked}, "searchdomain": {nil, "example.com"},
	})
	has("192.0.2.7")
	a.ok("PUT", vm+"/cloudinit")
	pending(map[string][3]any{"ipconfig0": {"ip=192.0.2.8/24"}, "cipassword": {masked}, "searchdomain": {"example.com"}})
	has("192.0.2.7")
	a.done("OK", "POST", vm+"/status/reset")
	has("192.0.2.8")
	a.ok("PUT", vm+"/config", "ipconfig0=ip=192.0.2.9/24")
	a.done("OK", "POST", vm+"/status/reset")
	has("192.0.2.8")
	a.done("OK", "POST", vm+"/status/reboot")
	has("192.0.2.9")
	s.SetOption(101, "lock", "backup")
	a.refused(500, "VM is locked (backup)", "PUT", vm+"/cloudinit")
	s.SetOption(101, "lock", "")
	// With the feature the drive is written anew at once.
	a.ok("PUT", vm+"/config", "hotplug=network,cloudinit")
	a.ok("PUT", vm+"/config", "ipconfig0=ip=192.0.2.10/24")
	pending(map[string][3]any{"ipconfig0": {"ip=192.0.2.10/24"}, "cipassword": {masked}, "searchdomain": {"example.com"}})
	a.done("OK", "POST", vm+"/status/reset")
	has("192.0.2.10")
}

// TestRegisteredTags: they are refused to whoever may not change the cluster.
func TestRegisteredTags(t *testing.T) {
	s, a := stopped(t, proxmox.Options{RegisteredTags: []string{"prod"}})
	a.ok("PUT", vm+"/config", "tags=prod;web")
	s.SetDenials(proxmox.Denials{{Path: "/", Privilege: "Sys.Modify"}})
	a.ok("PUT", vm+"/config", "tags=prod;db")
	const reason = "Permission check failed (/, Sys.Modify for modifying tag 'prod')"
	a.refused(403, reason, "PUT", vm+"/config", "tags=db")
	a.refused(403, reason, "PUT", vm+"/config", "delete=tags")
	if got := machine(t, s, 101).Config["tags"]; got != "db;prod" {
		t.Errorf("tags %q", got)
	}
	s.SetDenials(nil)
	a.ok("PUT", vm+"/config", "tags=db")
	s.SetDenials(proxmox.Denials{{Path: "/", Privilege: "Sys.Modify"}})
	a.refused(403, reason, "PUT", vm+"/config", "tags=db,PROD")
}
