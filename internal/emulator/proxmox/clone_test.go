// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

const debian = "/nodes/pve1/qemu/9000"

// TestCloneWindow follows a full clone to another node through its phases.
func TestCloneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{CloneTime: 40 * time.Second})
		a := raw(t, s)
		upid := a.ok("POST", debian+"/clone", "newid=101", "name=web", "description=key inst_1  \n", "full=1", "target=pve2", "pool=tofu").text()
		if parts := strings.Split(upid, ":"); parts[1] != "pve1" || parts[5] != "qmclone" || parts[6] != "9000" || parts[7] != token {
			t.Errorf("UPID %s", upid)
		}
		config := func(node string) map[string]any { return a.ok("GET", "/nodes/"+node+"/qemu/101/config").object() }

		// Nothing says whose it is.
		got := config("pve1")
		if len(got) != 3 || got["description"] != "qmclone temporary file" || got["lock"] != "clone" || got["digest"] == "" {
			t.Errorf("at first %v", got)
		}
		a.refused(500, "Configuration file 'nodes/pve2/qemu-server/101.conf' does not exist", "GET", "/nodes/pve2/qemu/101/config")
		row := resource(a, 101)
		if row["node"] != "pve1" || row["lock"] != "clone" || row["status"] != "unknown" || row["name"] != nil || row["template"] != nil {
			t.Errorf("in the cluster's list %v", row)
		}
		if refused := a.refused(400, "Parameter verification failed.", "GET", "/cluster/nextid", "vmid=101"); refused.errors["vmid"] != "VM 101 already exists" {
			t.Errorf("nextid: %s", refused)
		}

		// The drive for cloud-init is the first, and quick. Until then a change waits
		// for the clone's lock.
		a.refused(500, "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout", "PUT", "/nodes/pve1/qemu/101/config", "cores=2")
		if row := resource(a, 101); row["name"] != "VM 101" {
			t.Errorf("in the cluster's list %v", row)
		}
		got = config("pve1")
		if got["description"] != "key inst_1" || got["name"] != "web" || got["lock"] != "clone" || got["tags"] != "debian;template" ||
			got["ide2"] != "shared:vm-101-cloudinit,media=cdrom,size=4M" || got["scsi0"] != nil || got["template"] != nil {
			t.Errorf("after the first drive %v", got)
		}
		if exit := a.exit(upid); exit != "" {
			t.Errorf("exit %q", exit)
		}

		<-time.After(30 * time.Second)
		if exit := a.exit(upid); exit != "OK" {
			t.Errorf("exit %q", exit)
		}
		got = config("pve2")
		source := a.ok("GET", debian+"/config").object()
		if got["lock"] != nil || got["scsi0"] != "shared:vm-101-disk-0,discard=on,size=3G" || got["agent"] != "enabled=1" {
			t.Errorf("at last %v", got)
		}
		for _, own := range []string{"net0", "smbios1", "vmgenid"} {
			if got[own] == source[own] || got[own] == nil {
				t.Errorf("%s is %v, as the template's", own, got[own])
			}
		}
		if vm := machine(t, s, 101); vm.Node != "pve2" || vm.Pool != "tofu" || vm.Running {
			t.Errorf("machine %+v", vm)
		}
	})
}

// resource is the row of a VM in the cluster's list.
func resource(a *api, vmid int) map[string]any {
	for _, row := range a.ok("GET", "/cluster/resources", "type=vm").rows() {
		if row["vmid"] == float64(vmid) {
			return row
		}
	}
	return nil
}

// TestCloneRaces: two clones into one VMID, in every way they can meet.
func TestCloneRaces(t *testing.T) {
	type call struct{ path, params string }
	clone := func(source, params string) call { return call{source + "/clone", params} }
	for name, test := range map[string]struct {
		takes, fork time.Duration
		// first has begun for so long when second begins.
		first, second call
		between       time.Duration
		// refused is how second is refused; otherwise how its task ends.
		refused, exit string
	}{
		"at the same moment, slow": {
			time.Minute, time.Millisecond, clone(debian, "full=1"), clone(debian, "full=1"), 0,
			"", "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout",
		},
		"at the same moment, quick": {
			time.Millisecond, time.Millisecond, clone(debian, "full=1"), clone(debian, "full=1"), 0,
			"", "unable to create VM 101: config file already exists",
		},
		"soon, slow": {
			time.Minute, 0, clone(debian, "full=1"), clone(debian, "full=1"), 0,
			"unable to create VM 101: config file already exists", "",
		},
		"from another node's template": {
			time.Minute, 0, clone(debian, "full=1"), clone("/nodes/pve2/qemu/9002", "full=1"), time.Second,
			"", "close (rename) atomic file '/etc/pve/nodes/pve2/qemu-server/101.conf' failed: File exists",
		},
		"after it moved away": {
			0, 0, clone(debian, "target=pve2"), clone(debian, ""), 0,
			"", "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/101.conf' failed: File exists",
		},
		"after it is done": {
			0, 0, clone(debian, ""), clone(debian, ""), 0,
			"unable to create VM 101: config file already exists", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, proxmox.Options{CloneTime: test.takes, ForkTime: test.fork})
				a := raw(t, s)
				params := func(c call) []string {
					all := []string{"newid=101"}
					if c.params != "" {
						all = append(all, c.params)
					}
					return all
				}
				won := a.ok("POST", test.first.path, params(test.first)...).text()
				<-time.After(test.between)
				if test.refused != "" {
					a.refused(500, test.refused, "POST", test.second.path, params(test.second)...)
				} else {
					lost := a.ok("POST", test.second.path, params(test.second)...).text()
					<-time.After(time.Second + test.fork)
					if exit := a.exit(lost); exit != test.exit {
						t.Errorf("the loser ended with %q", exit)
					}
				}
				<-time.After(test.takes)
				if exit := a.exit(won); exit != "OK" {
					t.Errorf("the winner ended with %q", exit)
				}
				if got := s.Machines(); len(got) != 1 || got[0].Name != "Copy-of-VM-debian-13" {
					t.Errorf("machines %+v", got)
				}
			})
		})
	}
}

// TestCloneLocks: a clone that can't get the lock of the new VMID within a second
// fails in its task; what had the lock doesn't matter.
func TestCloneLocks(t *testing.T) {
	for name, test := range map[string]struct {
		held time.Duration
		exit string
	}{
		"held longer":  {3 * time.Second, "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout"},
		"held shorter": {500 * time.Millisecond, "OK"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, proxmox.Options{})
				a := raw(t, s)
				// A worker of a VM that is gone keeps its lock.
				s.PutStranger(101, "pve1", "other", "", "")
				s.HoldLock(101, test.held)
				s.Delete(101)
				upid := a.ok("POST", debian+"/clone", "newid=101").text()
				if exit := a.exit(upid); exit != "" {
					t.Errorf("at once it ended with %q", exit)
				}
				<-time.After(time.Second)
				if exit := a.exit(upid); exit != test.exit {
					t.Errorf("it ended with %q", exit)
				}
			})
		})
	}
}

// TestSourceLock: clones share the lock of their source, a change of it waits for
// them.
func TestSourceLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{CloneTime: 5 * time.Second})
		a := raw(t, s)
		var upids []string
		for i := range 4 {
			upids = append(upids, a.ok("POST", debian+"/clone", fmt.Sprintf("newid=%d", 200+i), "full=1").text())
		}
		began := time.Now()
		a.ok("PUT", debian+"/config", "onboot=1")
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("the change waited %s", waited)
		}
		for _, upid := range upids {
			if exit := a.exit(upid); exit != "OK" {
				t.Errorf("%s ended with %q", upid, exit)
			}
		}
		// One that takes longer than 10 s isn't waited for.
		s.HoldLock(9000, time.Minute)
		began = time.Now()
		a.refused(500, "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout", "PUT", debian+"/config", "onboot=0")
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("the change waited %s", waited)
		}
		upid := a.ok("POST", debian+"/clone", "newid=300").text()
		<-time.After(time.Second)
		if exit := a.exit(upid); exit != "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout" {
			t.Errorf("a clone of a locked source ended with %q", exit)
		}
	})
}

// TestCloneRefusals are the checks before a task begins.
func TestCloneRefusals(t *testing.T) {
	s := newService(t, proxmox.Options{})
	a := raw(t, s)
	const ubuntu = "/nodes/pve1/qemu/9001"
	a.refused(500, "no such cluster node 'pve9'", "POST", debian+"/clone", "newid=101", "target=pve9")
	a.refused(500, "storage 'x1' does not exist", "POST", debian+"/clone", "newid=101", "full=1", "storage=x1")
	a.refused(500, "parameter 'storage' not allowed for linked clones", "POST", debian+"/clone", "newid=101", "storage=shared")
	a.refused(500, "parameter 'format' not allowed for linked clones", "POST", debian+"/clone", "newid=101", "format=raw")
	a.refused(500, "can't clone VM to node 'pve2' (VM uses local storage)", "POST", ubuntu+"/clone", "newid=101", "full=1", "target=pve2")
	a.refused(500, "can't clone to non-shared storage 'local-lvm'", "POST", debian+"/clone", "newid=101", "full=1", "target=pve2", "storage=local-lvm")
	a.refused(403, "Permission check failed (pool 'nope' does not exist)", "POST", debian+"/clone", "newid=101", "pool=nope")
	a.refused(500, "Configuration file 'nodes/pve2/qemu-server/9000.conf' does not exist", "POST", "/nodes/pve2/qemu/9000/clone", "newid=101")
	if got := a.refused(400, "Parameter verification failed.", "POST", debian+"/clone", "newid=101", "full=1", "storage=local"); got.errors["storage"] != "storage 'local' does not support vm images" {
		t.Error(got)
	}
	if got := a.refused(400, "Parameter verification failed.", "POST", debian+"/clone", "newid=1", "name=a_b", "full=maybe", "colour=red"); !maps.Equal(got.errors, map[string]string{
		"newid":  "value must have a minimum value of 100",
		"name":   "invalid format - value does not look like a valid DNS name\n",
		"full":   "type check ('boolean') failed - got 'maybe'",
		"colour": "property is not defined in schema and the schema does not allow additional properties",
	}) {
		t.Error(got)
	}
	s.SetOption(9001, "lock", "backup")
	a.refused(500, "VM is locked (backup)", "POST", ubuntu+"/clone", "newid=101")
	a.done("OK", "POST", debian+"/clone", "newid=101")
	a.refused(500, "Linked clone feature is not supported for 'shared:base-9000-disk-0/vm-101-disk-0' (scsi0)", "POST", "/nodes/pve1/qemu/101/clone", "newid=102", "full=0")
	if got := s.Machines(); len(got) != 1 {
		t.Errorf("machines %+v", got)
	}
}

// TestLinkedClones have the template's disk as their base, which then stays.
func TestLinkedClones(t *testing.T) {
	s := newService(t, proxmox.Options{})
	a := raw(t, s)
	a.done("OK", "POST", debian+"/clone", "newid=101", "description=")
	if got := machine(t, s, 101).Config; got["scsi0"] != "shared:base-9000-disk-0/vm-101-disk-0,discard=on,size=3G" ||
		got["ide2"] != "shared:vm-101-cloudinit,media=cdrom,size=4M" || got["description"] != "Debian 13 (trixie), genericcloud" {
		t.Errorf("options %v", got)
	}
	a.done("base volume 'shared:base-9000-disk-0' is still in use by linked cloned", "DELETE", debian)
	a.done("OK", "DELETE", "/nodes/pve1/qemu/101")
	a.done("OK", "DELETE", debian)
}

// TestUnfinishedClones: what is left when a clone fails, is stopped, or loses its
// node.
func TestUnfinishedClones(t *testing.T) {
	for name, test := range map[string]struct {
		rule emulator.Kind
		do   func(*api, *proxmox.Service, string)
		exit string
		left bool
	}{
		"fails":    {emulator.KindFailAction, nil, "clone failed: command '/usr/bin/qmclone' failed: exit code 1", false},
		"no space": {emulator.KindCapacity, nil, "clone failed: rbd error: rbd: create error: (28) No space left on device", false},
		"is stopped": {"", func(a *api, _ *proxmox.Service, upid string) {
			a.ok("DELETE", "/nodes/pve1/tasks/"+upid)
		}, "clone failed: received interrupt", false},
		"loses its node": {"", func(_ *api, s *proxmox.Service, _ string) {
			s.SetNode("pve1", false)
			s.SetNode("pve1", true)
		}, "unexpected status", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, proxmox.Options{CloneTime: 40 * time.Second})
				a := raw(t, s)
				before := s.Volumes()
				if test.rule != "" {
					addFault(t, s, emulator.Rule{Method: "POST", Path: "*/clone", Kind: test.rule})
				}
				upid := a.ok("POST", debian+"/clone", "newid=101", "full=1").text()
				<-time.After(5 * time.Second)
				if len(s.Machines()) != 1 {
					t.Error("nothing is there yet")
				}
				if test.do != nil {
					test.do(a, s, upid)
				}
				<-time.After(time.Minute)
				if exit := a.exit(upid); exit != test.exit {
					t.Errorf("it ended with %q", exit)
				}
				if !test.left {
					if got := s.Machines(); len(got) != 0 || !slices.Equal(s.Volumes(), before) {
						t.Errorf("left: %+v, %v", got, s.Volumes())
					}
					return
				}
				if got := machine(t, s, 101).Config; got["lock"] != "clone" {
					t.Errorf("left %v", got)
				}
				if got := a.refused(400, "Parameter verification failed.", "PUT", "/nodes/pve1/qemu/101/config", "delete=lock", "skiplock=1"); got.errors["skiplock"] != "Only root may use this option." {
					t.Error(got)
				}
				a.refused(500, "VM is locked (clone)", "PUT", "/nodes/pve1/qemu/101/config", "cores=2")
				a.done("VM is locked (clone)", "DELETE", "/nodes/pve1/qemu/101")
			})
		})
	}
}

// TestWarnings: a task with warnings is a success that says so.
func TestWarnings(t *testing.T) {
	s := newService(t, proxmox.Options{Storages: append(proxmox.DefaultStorages(), proxmox.Storage{Name: "san", Type: "lvm", Shared: true, Content: "images", Total: 1 << 40})})
	a := raw(t, s)
	upid := a.ok("POST", debian+"/clone", "newid=101", "full=1", "storage=san").text()
	if exit := a.exit(upid); exit != "WARNINGS: 2" {
		t.Errorf("it ended with %q", exit)
	}
	rows := a.ok("GET", "/nodes/pve1/tasks/"+upid+"/log", "start=1", "limit=2").rows()
	if len(rows) != 2 || rows[0]["n"] != float64(2) || !strings.Contains(fmt.Sprint(rows), "WARN: ") {
		t.Errorf("log %v", rows)
	}
	if list := a.ok("GET", "/nodes/pve1/tasks", "statusfilter=warning").rows(); len(list) != 1 || list[0]["status"] != "WARNINGS: 2" {
		t.Errorf("list %v", list)
	}
	s.SetWarnings(1)
	a.done("WARNINGS: 1", "POST", "/nodes/pve1/qemu/101/status/start")
}
