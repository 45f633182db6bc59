// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestRefusals sets each fault that is an answer, and looks at that answer and at
// what has not happened.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		rule   emulator.Rule
		status int
		reason string
	}{
		{emulator.Rule{Kind: emulator.KindStatus}, 500, "Internal Server Error"},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 401}, 401, "No ticket"},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 403}, 403, "Permission check failed"},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 596}, 596, "Connection timed out"},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 599}, 599, "Too many redirections"},
		{emulator.Rule{Kind: emulator.KindHTML}, 502, "Bad Gateway"},
		{emulator.Rule{Kind: emulator.KindNodeDown}, 595, "No route to host"},
		{emulator.Rule{Kind: emulator.KindLocked}, 500, "VM is locked (clone)"},
	} {
		t.Run(fmt.Sprint(test.rule.Kind, test.rule.Status), func(t *testing.T) {
			s := newService(t, proxmox.Options{})
			a := raw(t, s)
			test.rule.Method, test.rule.Path = "POST", "/nodes/pve1/qemu/9000/clone"
			addFault(t, s, test.rule)
			a.refused(test.status, test.reason, "POST", debian+"/clone", "newid=101")
			if got := s.Calls(); len(got) != 1 || got[0].Status != test.status {
				t.Errorf("calls %+v", got)
			}
			if len(s.Machines()) != 0 || len(s.Tasks()) != 0 {
				t.Error("the refused call had an effect")
			}
			a.done("OK", "POST", debian+"/clone", "newid=101")
		})
	}
}

// TestOtherKinds: those of other clouds can't be set.
func TestOtherKinds(t *testing.T) {
	s := newService(t, proxmox.Options{})
	for _, kind := range []emulator.Kind{emulator.KindRateLimitBurst, emulator.KindEarly404, emulator.KindPendingEvent} {
		if err := s.AddFault(emulator.Rule{Kind: kind}); err == nil {
			t.Errorf("%s was set", kind)
		}
	}
}

func TestDroppedConnections(t *testing.T) {
	for kind, effect := range map[emulator.Kind]int{emulator.KindReset: 0, emulator.KindLoseAnswer: 1} {
		s := newService(t, proxmox.Options{})
		a := raw(t, s)
		addFault(t, s, emulator.Rule{Method: "POST", Path: "*/clone", Kind: kind})
		if _, err := a.try(t.Context(), "POST", debian+"/clone", "newid=101"); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s in memory: %v", kind, err)
		}
		if got := len(s.Machines()); got != effect {
			t.Errorf("%s: %d machines", kind, got)
		}
		if calls := s.Calls(); len(calls) != 1 || calls[0].Status != 0 || calls[0].Path != "/api2/json"+debian+"/clone" {
			t.Errorf("%s: calls %v", kind, calls)
		}
		// And over a socket.
		address, transport := socket(t, s)
		addFault(t, s, emulator.Rule{Kind: kind})
		r := request(t, "GET", "/api2/json/version", "", "")
		r.URL.Host = strings.TrimPrefix(address, "https://")
		if response, err := transport.RoundTrip(r); err == nil {
			t.Errorf("%s over a socket: %s", kind, response.Status)
		}
	}
}

// TestTaskFaults: faults that show in the tasks only.
func TestTaskFaults(t *testing.T) {
	const timeout = "can't lock file '/var/lock/qemu-server/lock-%d.conf' - got timeout"
	for _, test := range []struct {
		kind                 emulator.Kind
		method, path, params string
		wait                 time.Duration
		exit                 string
	}{
		{emulator.KindFailAction, "POST", vm + "/status/start", "", 0, "command '/usr/bin/qmstart' failed: exit code 1"},
		{emulator.KindFailAction, "DELETE", vm, "", 0, "command '/usr/bin/qmdestroy' failed: exit code 1"},
		{emulator.KindFailAction, "POST", vm + "/config", "cores=2", 0, "command '/usr/bin/qmconfig' failed: exit code 1"},
		{emulator.KindFailAction, "POST", debian + "/clone", "newid=102", 0, "clone failed: command '/usr/bin/qmclone' failed: exit code 1"},
		{emulator.KindLocked, "POST", vm + "/status/start", "", 0, "VM is locked (clone)"},
		{emulator.KindLockTimeout, "POST", vm + "/status/start", "", 10 * time.Second, fmt.Sprintf(timeout, 101)},
		{emulator.KindLockTimeout, "PUT", vm + "/resize", "disk=scsi0 size=9G", 10 * time.Second, fmt.Sprintf(timeout, 101)},
		{emulator.KindLockTimeout, "DELETE", vm, "", 10 * time.Second, fmt.Sprintf(timeout, 101)},
		{emulator.KindLockTimeout, "POST", debian + "/clone", "newid=102", time.Second, fmt.Sprintf(timeout, 102)},
		{emulator.KindCapacity, "POST", debian + "/clone", "newid=102 full=1", 0, "clone failed: rbd error: rbd: create error: (28) No space left on device"},
		{emulator.KindCapacity, "PUT", vm + "/resize", "disk=scsi0 size=9G", 0, "rbd error: rbd: create error: (28) No space left on device"},
		{emulator.KindCapacity, "POST", vm + "/status/start", "", 0, "start failed: QEMU exited with code 1"},
	} {
		t.Run(fmt.Sprint(test.kind, test.method, strings.ReplaceAll(test.path, "/", " ")), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, a := stopped(t, proxmox.Options{})
				before := machine(t, s, 101)
				addFault(t, s, emulator.Rule{Method: test.method, Path: test.path, Kind: test.kind})
				upid := a.ok(test.method, test.path, strings.Fields(test.params)...).text()
				if test.wait > 0 && a.exit(upid) != "" {
					t.Errorf("it ended at once with %q", a.exit(upid))
				}
				<-time.After(test.wait)
				if exit := a.exit(upid); exit != test.exit {
					t.Errorf("it ended with %q", exit)
				}
				if log := a.ok("GET", "/nodes/pve1/tasks/"+upid+"/log").rows(); log[len(log)-1]["t"] != "TASK ERROR: "+test.exit {
					t.Errorf("log %v", log)
				}
				if after := s.Machines(); len(after) != 1 || fmt.Sprint(after[0]) != fmt.Sprint(before) {
					t.Errorf("it had an effect: %+v", after)
				}
				a.ok(test.method, test.path, strings.Fields(test.params)...)
			})
		})
	}
}

// TestLockFaultsOfCalls: a change of options needs the lock before it answers.
func TestLockFaultsOfCalls(t *testing.T) {
	_, a := stopped(t, proxmox.Options{})
	for kind, reason := range map[emulator.Kind]string{
		emulator.KindLocked:      "VM is locked (clone)",
		emulator.KindLockTimeout: "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout",
	} {
		for _, method := range []string{"PUT", "POST"} {
			s, a := stopped(t, proxmox.Options{})
			addFault(t, s, emulator.Rule{Path: vm + "/config", Kind: kind})
			a.refused(500, reason, method, vm+"/config", "cores=2")
			if got := machine(t, s, 101).Config["cores"]; got != "1" {
				t.Errorf("%s %s: it had an effect", method, kind)
			}
		}
	}
	a.ok("PUT", vm+"/config", "cores=2")
}

// TestHidden keeps VMs out of the lists: those that a call makes, and in one list
// those that are new.
func TestHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{})
		a := raw(t, s)
		<-time.After(time.Hour)
		addFault(t, s, emulator.Rule{Path: "*/clone", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(time.Minute)})
		a.done("OK", "POST", debian+"/clone", "newid=101")
		listed := func() bool {
			found := slices.ContainsFunc(a.ok("GET", "/nodes/pve1/qemu").rows(), func(row map[string]any) bool { return row["vmid"] == 101.0 })
			if inCluster := resource(a, 101) != nil; inCluster != found {
				t.Errorf("in the cluster's list %v, in the node's %v", inCluster, found)
			}
			return found
		}
		if listed() {
			t.Error("it is listed")
		}
		a.ok("GET", vm+"/config")
		<-time.After(time.Minute)
		if !listed() {
			t.Error("it isn't listed")
		}
		addFault(t, s, emulator.Rule{Method: "GET", Path: "*", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(2 * time.Minute), Times: 2})
		if listed() {
			t.Error("it is listed")
		}
		if !listed() {
			t.Error("it isn't listed after the fault")
		}
	})
}

// TestHold: a held call has no effect until it is let go.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{})
		a := raw(t, s)
		addFault(t, s, emulator.Rule{Path: "*/clone", Kind: emulator.KindHold})
		done := make(chan answer, 1)
		go func() {
			got, err := a.try(t.Context(), "POST", debian+"/clone", "newid=101")
			if err != nil {
				t.Error(err)
			}
			done <- got
		}()
		synctest.Wait()
		if len(s.Machines()) != 0 || !s.Calls()[0].Held {
			t.Errorf("machines %v, calls %v", s.Machines(), s.Calls())
		}
		s.ClearFaults()
		if got := <-done; got.status != 200 || len(s.Machines()) != 1 {
			t.Error(got)
		}
		addFault(t, s, emulator.Rule{Kind: emulator.KindDelay, Delay: emulator.Duration(7 * time.Second)})
		began := time.Now()
		a.ok("GET", "/version")
		if time.Since(began) != 7*time.Second {
			t.Errorf("delayed by %s", time.Since(began))
		}
	})
}

// TestPermissions: one refusal for each privilege that is looked at.
func TestPermissions(t *testing.T) {
	for _, test := range []struct {
		denied, privilege, method, path, params, reason string
	}{
		{"/vms/9000", "VM.Clone", "POST", debian + "/clone", "newid=102", "/vms/9000, VM.Clone"},
		{"/vms", "VM.Allocate", "POST", debian + "/clone", "newid=102", "/vms/102, VM.Allocate"},
		{"/storage/shared", "Datastore.AllocateSpace", "POST", debian + "/clone", "newid=102", "/storage/shared, Datastore.AllocateSpace"},
		{"/sdn", "SDN.Use", "POST", debian + "/clone", "newid=102", "/sdn/zones/localnetwork/vmbr0, SDN.Use"},
		{"/sdn", "SDN.Use", "PUT", vm + "/config", "net1=virtio,bridge=vmbr0,tag=7", "/sdn/zones/localnetwork/vmbr0/7, SDN.Use"},
		{"/", "VM.Audit", "GET", vm + "/config", "", "/vms/101, VM.Audit"},
		{"/vms/101", "VM.Audit", "GET", vm + "/status/current", "", "/vms/101, VM.Audit"},
		{"/vms/101", "VM.Config.CPU", "PUT", vm + "/config", "cores=2", "/vms/101, VM.Config.CPU"},
		{"/vms/101", "VM.Config.Memory", "PUT", vm + "/config", "memory=2048", "/vms/101, VM.Config.Memory"},
		{"/vms/101", "VM.Config.Network", "PUT", vm + "/config", "net1=virtio", "/vms/101, VM.Config.Network"},
		{"/vms/101", "VM.Config.Options", "PUT", vm + "/config", "tags=a", "/vms/101, VM.Config.Options"},
		{"/vms/101", "VM.Config.Disk", "PUT", vm + "/config", "scsi1=shared:1", "/vms/101, VM.Config.Disk"},
		{"/vms/101", "VM.Config.CDROM", "PUT", vm + "/config", "ide2=shared:cloudinit", "/vms/101, VM.Config.CDROM"},
		{"/vms/101", "VM.Config.HWType", "PUT", vm + "/config", "bios=ovmf", "/vms/101, VM.Config.HWType"},
		{"/vms/101", "*", "PUT", vm + "/config", "cores=2", "/vms/101, VM.Config.Disk|VM.Config.CDROM|VM.Config.CPU|VM.Config.Memory|VM.Config.Network|VM.Config.HWType|VM.Config.Options|VM.Config.Cloudinit"},
		{"/vms/101", "VM.Config.Disk", "PUT", vm + "/resize", "disk=scsi0 size=9G", "/vms/101, VM.Config.Disk"},
		{"/vms/101", "VM.PowerMgmt", "POST", vm + "/status/start", "", "/vms/101, VM.PowerMgmt"},
		{"/vms/101", "VM.Allocate", "DELETE", vm, "", "/vms/101, VM.Allocate"},
		{"/vms/101", "VM.Migrate", "POST", vm + "/migrate", "target=pve2", "/vms/101, VM.Migrate"},
		{"/nodes", "Sys.Audit", "GET", "/nodes/pve1/status", "", "/nodes/pve1, Sys.Audit"},
		{"/storage/local", "*", "GET", "/nodes/pve1/storage/local/content", "", "/storage/local, Datastore.Audit|Datastore.AllocateSpace"},
		{"/storage/shared", "Datastore.Allocate", "DELETE", "/nodes/pve1/storage/shared/content/shared:vm-101-disk-0", "", "/storage/shared, Datastore.Allocate"},
		{"/pool/tofu", "Pool.Audit", "GET", "/pools/tofu", "", "/pool/tofu, Pool.Audit"},
		// Before it is known whether the VM exists.
		{"/vms/4711", "VM.Audit", "GET", "/nodes/pve1/qemu/4711/config", "", "/vms/4711, VM.Audit"},
	} {
		s, a := stopped(t, proxmox.Options{})
		s.SetDenials(proxmox.Denials{{Path: test.denied, Privilege: test.privilege}})
		a.refused(403, "Permission check failed ("+test.reason+")", test.method, test.path, strings.Fields(test.params)...)
	}
	for version, reason := range map[int]string{8: "VM.Monitor", 9: "VM.GuestAgent.Audit|VM.GuestAgent.Unrestricted"} {
		s, a := stopped(t, proxmox.Options{Version: version})
		s.SetDenials(proxmox.Denials{{Privilege: "VM.Monitor", Path: "/vms"}, {Privilege: "VM.GuestAgent.Audit", Path: "/vms"}, {Privilege: "VM.GuestAgent.Unrestricted", Path: "/vms"}})
		a.refused(403, "Permission check failed (/vms/101, "+reason+")", "GET", vm+"/agent/network-get-interfaces")
	}
}

// TestWhatIsNotShown: lists leave out what the caller may not see.
func TestWhatIsNotShown(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	s.SetDenials(proxmox.Denials{{Path: "/vms/101", Privilege: "VM.Audit"}, {Path: "/nodes", Privilege: "Sys.Audit"}, {Path: "/storage/local", Privilege: "*"}, {Path: "/pool", Privilege: "Pool.Audit"}})
	if resource(a, 101) != nil {
		t.Error("the VM is in the cluster's list")
	}
	if got := a.ok("GET", "/nodes/pve1/qemu").rows(); len(got) != 3 {
		t.Errorf("VMs %v", got)
	}
	a.refused(400, "Parameter verification failed.", "GET", "/cluster/nextid", "vmid=101")
	if nodes := a.ok("GET", "/nodes").rows(); nodes[0]["maxmem"] != nil || nodes[0]["status"] != "online" {
		t.Errorf("nodes %v", nodes)
	}
	if got := a.ok("GET", "/nodes/pve1/storage").rows(); len(got) != 2 {
		t.Errorf("storages %v", got)
	}
	if got := a.ok("GET", "/pools").rows(); len(got) != 0 {
		t.Errorf("pools %v", got)
	}
	if got := a.ok("GET", "/access/permissions", "path=/vms/101").object(); got["/vms/101"].(map[string]any)["VM.Audit"] != nil || got["/vms/101"].(map[string]any)["VM.Clone"] != 1.0 {
		t.Errorf("permissions %v", got)
	}
}

// TestPoolGrants: a token whose rights come from a pool is refused a VM that is
// gone, as if it weren't allowed to see it.
func TestPoolGrants(t *testing.T) {
	s := newService(t, proxmox.Options{Grants: []proxmox.Grant{
		{Token: token, Path: "/pool/tofu", Privileges: []string{"VM.Allocate", "VM.Audit"}},
		{Token: token, Path: "/vms/9000", Privileges: []string{"VM.Clone", "VM.Audit"}},
		{Token: token, Path: "/storage", Privileges: []string{"Datastore.AllocateSpace"}},
		{Token: token, Path: "/sdn", Privileges: []string{"*"}},
	}})
	a := raw(t, s)
	a.refused(403, "Permission check failed (/vms/101, VM.Allocate)", "POST", debian+"/clone", "newid=101")
	a.done("OK", "POST", debian+"/clone", "newid=101", "pool=tofu")
	a.ok("GET", vm+"/config")
	if got := a.ok("GET", "/cluster/resources", "type=vm").rows(); len(got) != 2 {
		t.Errorf("VMs %v", got)
	}
	s.Delete(101)
	a.refused(403, "Permission check failed (/vms/101, VM.Audit)", "GET", vm+"/config")
}

// TestDenialsFlag: what the command line takes.
func TestDenialsFlag(t *testing.T) {
	var d proxmox.Denials
	for _, text := range []string{"/vms/100=VM.Clone", "joe@pve!tt:/storage=*"} {
		if err := d.Set(text); err != nil {
			t.Error(err)
		}
	}
	if d.String() != "/vms/100=VM.Clone,joe@pve!tt:/storage=*" || d[1] != (proxmox.Denial{Token: "joe@pve!tt", Path: "/storage", Privilege: "*"}) {
		t.Errorf("denials %+v", d)
	}
	for _, text := range []string{"", "/vms", "vms=VM.Clone", "/vms="} {
		if err := d.Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
