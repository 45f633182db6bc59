// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestPower: what each request says in each state.
func TestPower(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.done("OK", "POST", vm+"/status/stop")
	a.done("OK", "POST", vm+"/status/shutdown")
	a.refused(500, "VM 101 not running", "POST", vm+"/status/reset")
	a.refused(500, "VM 101 not running", "POST", vm+"/status/reboot")
	a.done("you can't start a vm if it's a template", "POST", debian+"/status/start")
	a.done("OK", "POST", vm+"/status/start")
	a.done("VM 101 already running", "POST", vm+"/status/start")
	a.done("OK", "POST", vm+"/status/reset")
	a.done("OK", "POST", vm+"/status/reboot")
	a.refused(500, "VM 101 is running - destroy failed", "DELETE", vm)
	a.refused(500, "you can't convert a VM to template if VM is running", "POST", vm+"/template")
	if got := machine(t, s, 101); !got.Running {
		t.Error("it doesn't run")
	}
	a.done("OK", "POST", vm+"/status/shutdown")
	if got := machine(t, s, 101); got.Running {
		t.Error("it runs")
	}
	s.SetOption(101, "lock", "backup")
	a.done("VM is locked (backup)", "POST", vm+"/status/start")
	s.SetOption(101, "lock", "")
	a.ok("PUT", vm+"/config", "net1=virtio,bridge=vmbr9")
	upid := a.ok("POST", vm+"/status/start").text()
	if log := a.ok("GET", "/nodes/pve1/tasks/"+upid+"/log"); a.exit(upid) != "start failed: QEMU exited with code 1" || !strings.Contains(log.body, "bridge 'vmbr9' does not exist") {
		t.Errorf("on an unknown bridge: %s, %s", a.exit(upid), log)
	}
	a.refused(500, "Configuration file 'nodes/pve1/qemu-server/150.conf' does not exist", "POST", "/nodes/pve1/qemu/150/status/start")
}

// TestStubbornGuests: one that doesn't shut down in time.
func TestStubbornGuests(t *testing.T) {
	for name, test := range map[string]struct {
		options proxmox.Options
		agent   bool
		params  []string
		takes   time.Duration
		exit    string
	}{
		"ignores it":                   {proxmox.Options{IgnoreShutdown: true}, true, nil, time.Minute, "VM quit/powerdown failed - got timeout"},
		"has no agent":                 {proxmox.Options{}, false, []string{"timeout=5"}, 5 * time.Second, "VM quit/powerdown failed - got timeout"},
		"is stopped then":              {proxmox.Options{IgnoreShutdown: true}, true, []string{"timeout=3", "forceStop=1"}, 3 * time.Second, "OK"},
		"has an agent that comes late": {proxmox.Options{AgentDelay: 20 * time.Second}, true, nil, 20 * time.Second, "OK"},
		"comes too late":               {proxmox.Options{AgentDelay: 20 * time.Second}, true, []string{"timeout=10"}, 10 * time.Second, "VM quit/powerdown failed - got timeout"},
		"ignores it, in quick time":    {proxmox.Options{IgnoreShutdown: true, Scale: 0.1}, true, nil, 6 * time.Second, "VM quit/powerdown failed - got timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, a := stopped(t, test.options)
				s.SetAgent(101, test.agent)
				a.done("OK", "POST", vm+"/status/start")
				upid := a.ok("POST", vm+"/status/shutdown", test.params...).text()
				<-time.After(test.takes - time.Millisecond)
				if exit := a.exit(upid); exit != "" {
					t.Errorf("it ended early with %q", exit)
				}
				<-time.After(time.Millisecond)
				if exit := a.exit(upid); exit != test.exit {
					t.Errorf("it ended with %q", exit)
				}
				if got := machine(t, s, 101); got.Running != (test.exit != "OK") {
					t.Errorf("running %v", got.Running)
				}
			})
		})
	}
}

// TestStopDuringShutdown: a stop waits for the lock that a shutdown has, unless it
// overrules it.
func TestStopDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := stopped(t, proxmox.Options{IgnoreShutdown: true})
		a.done("OK", "POST", vm+"/status/start")
		shutdown := a.ok("POST", vm+"/status/shutdown").text()
		stop := a.ok("POST", vm+"/status/stop").text()
		<-time.After(10 * time.Second)
		if exit := a.exit(stop); exit != "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout" {
			t.Errorf("the stop ended with %q", exit)
		}
		a.done("OK", "POST", vm+"/status/stop", "overrule-shutdown=1")
		if exit := a.exit(shutdown); exit != "received interrupt" {
			t.Errorf("the shutdown ended with %q", exit)
		}
		if machine(t, s, 101).Running {
			t.Error("it runs")
		}
	})
}

// TestHA: the HA manager is asked, and acts later as itself.
func TestHA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := stopped(t, proxmox.Options{})
		a.refused(500, "no such resource 'vm:101'", "GET", "/cluster/ha/resources/101")
		s.SetHA(101, "stopped")
		upid := a.ok("POST", vm+"/status/start").text()
		if a.exit(upid) != "OK" || !strings.Contains(upid, ":hastart:101:") || machine(t, s, 101).Running {
			t.Errorf("%s: %s", upid, a.exit(upid))
		}
		if got := a.ok("GET", vm+"/status/current").object(); got["ha"].(map[string]any)["state"] != "started" {
			t.Errorf("current %v", got)
		}
		if tasks := a.ok("GET", "/nodes/pve1/tasks", "source=all").rows(); len(tasks) != 2 {
			t.Errorf("tasks %v", tasks)
		}
		<-time.After(10 * time.Second)
		if !machine(t, s, 101).Running {
			t.Error("it doesn't run")
		}
		if tasks := a.ok("GET", "/nodes/pve1/tasks", "source=all").rows(); len(tasks) != 3 || tasks[0]["user"] != "root@pam" || tasks[0]["type"] != "qmstart" {
			t.Errorf("tasks %v", tasks)
		}
		if got := a.exit(a.ok("POST", vm+"/status/stop").text()); got != "OK" || !machine(t, s, 101).Running {
			t.Errorf("stop %s", got)
		}
		<-time.After(10 * time.Second)
		if machine(t, s, 101).Running {
			t.Error("it runs")
		}
		a.refused(500, "unable to remove VM 101 - used in HA resources and purge parameter not set.", "DELETE", vm)
		a.done("OK", "DELETE", vm, "purge=1")
	})
}

// TestAgent: when it answers, with what, and what it says when it doesn't.
func TestAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = vm + "/agent/network-get-interfaces"
		s, a := stopped(t, proxmox.Options{AgentDelay: 20 * time.Second})
		a.ok("PUT", vm+"/config", "net1=virtio,bridge=vmbr0,link_down=1", "ipconfig0=ip=dhcp,ip6=2001:db8::7/64", "net2=virtio,bridge=vmbr0", "ipconfig2=ip=198.51.100.9/25")
		a.refused(500, "VM 101 is not running", "GET", path)
		a.done("OK", "POST", vm+"/status/start")
		a.refused(500, "QEMU guest agent is not running", "GET", path)
		<-time.After(20 * time.Second)
		list := a.ok("GET", path).object()["result"].([]any)
		var got []string
		for _, item := range list {
			row := item.(map[string]any)
			addresses, has := row["ip-addresses"].([]any)
			if !has {
				got = append(got, row["name"].(string)+" none")
			}
			for _, address := range addresses {
				got = append(got, row["name"].(string)+" "+address.(map[string]any)["ip-address"].(string))
			}
		}
		want := []string{
			"lo 127.0.0.1", "lo ::1", "eth0 10.40.0.3", "eth0 2001:db8::7", "eth0 fe80::be24:11ff:fe00:5", "eth1 none",
			"eth2 198.51.100.9", "eth2 fe80::be24:11ff:fe00:7",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		s.SetAgent(101, false)
		a.refused(500, "QEMU guest agent is not running", "GET", path)
		a.done("OK", "POST", vm+"/status/stop")
		a.ok("PUT", vm+"/config", "agent=0")
		a.refused(500, "No QEMU guest agent configured", "GET", path)
	})
}

// TestDestroy: the phases of an end, and that the VMID is free only after it.
func TestDestroy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := stopped(t, proxmox.Options{TaskTime: 10 * time.Second})
		s.SetOption(101, "protection", "1")
		a.refused(500, "can't remove VM 101 - protection mode enabled", "DELETE", vm)
		s.SetOption(101, "protection", "")
		// A disk that no option names stays, unless it is asked for.
		a.ok("PUT", vm+"/config", "scsi1=local-lvm:8")
		s.SetOption(101, "scsi1", "")
		upid := a.ok("DELETE", vm).text()
		if !strings.Contains(upid, ":qmdestroy:101:") {
			t.Error(upid)
		}
		<-time.After(5 * time.Second)
		if got := a.ok("GET", vm+"/config").object(); len(got) != 2 || got["lock"] != "destroyed" {
			t.Errorf("half-way %v", got)
		}
		a.refused(500, "unable to create VM 101: config file already exists", "POST", debian+"/clone", "newid=101")
		a.refused(400, "Parameter verification failed.", "GET", "/cluster/nextid", "vmid=101")
		<-time.After(5 * time.Second)
		if exit := a.exit(upid); exit != "OK" {
			t.Errorf("it ended with %q", exit)
		}
		a.refused(500, "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist", "DELETE", vm)
		if !slices.Contains(s.Volumes(), "pve1/local-lvm:vm-101-disk-0") || slices.Contains(s.Volumes(), "shared:vm-101-disk-0") {
			t.Errorf("volumes %v", s.Volumes())
		}
		a.done("OK", "POST", debian+"/clone", "newid=101", "full=1")
		upid = a.ok("DELETE", vm, "destroy-unreferenced-disks=1").text()
		<-time.After(10 * time.Second)
		if a.exit(upid) != "OK" || slices.Contains(s.Volumes(), "pve1/local-lvm:vm-101-disk-0") {
			t.Errorf("%s, volumes %v", a.exit(upid), s.Volumes())
		}
	})
}

// TestTemplateAndMigration: a VM made a template, and one that moves.
func TestTemplateAndMigration(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.done("OK", "POST", vm+"/migrate", "target=pve2")
	const moved = "/nodes/pve2/qemu/101"
	if got := a.refused(400, "Parameter verification failed.", "POST", moved+"/migrate", "target=pve2"); got.errors["target"] != "target is local node." {
		t.Error(got)
	}
	a.ok("PUT", moved+"/config", "scsi1=local-lvm:8")
	a.done("can't migrate local disk 'local-lvm:vm-101-disk-0': can't live migrate attached local disks without with-local-disks option",
		"POST", moved+"/migrate", "target=pve1")
	a.done("OK", "POST", moved+"/status/start")
	a.refused(500, "can't migrate running VM without --online", "POST", moved+"/migrate", "target=pve1")
	a.done("OK", "POST", moved+"/migrate", "target=pve1", "online=1", "with-local-disks=1")
	if got := machine(t, s, 101); got.Node != "pve1" || !got.Running || !slices.Contains(s.Volumes(), "pve1/local-lvm:vm-101-disk-0") {
		t.Errorf("moved %+v, volumes %v", got, s.Volumes())
	}
	a.done("OK", "POST", vm+"/status/stop")
	a.done("OK", "POST", vm+"/template")
	if got := machine(t, s, 101); !got.Template || !strings.HasPrefix(got.Config["scsi0"], "shared:base-101-disk-0,") || len(s.Machines()) != 0 {
		t.Errorf("template %+v", got)
	}
	a.refused(500, "you can't convert a template to a template", "POST", vm+"/template")
	a.done("OK", "POST", vm+"/clone", "newid=102")
}

// TestObjects is what the control API shows.
func TestObjects(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.ok("PUT", vm+"/config", "tags=better-compute;x")
	s.PutStranger(102, "pve2", "theirs", "somebody's", "")
	s.SetPower(102, true)
	want := []emulator.Object{{ID: "101", Name: "web", State: "stopped", Managed: true}, {ID: "102", Name: "theirs", State: "running"}}
	if got := s.Objects(); !slices.Equal(got.Machines, want) || got.Volumes == nil || got.Snapshots == nil {
		t.Errorf("objects %+v", got)
	}
	s.Move(102, "pve1")
	s.PutStranger(101, "pve2", "another", "", "b;c")
	if got := machine(t, s, 101); got.Node != "pve2" || got.Name != "another" || !slices.Equal(got.Tags, []string{"b", "c"}) {
		t.Errorf("in place of 101: %+v", got)
	}
	s.AddTemplate(proxmox.Template{VMID: 9100, Name: "fedora-43", Node: "pve2", Storage: "shared", DiskGiB: 5})
	if row := resource(a, 9100); row["name"] != "fedora-43" || row["template"] != 1.0 {
		t.Errorf("template %v", row)
	}
	if s.Delete(4711) {
		t.Error("deleted what doesn't exist")
	}
}
