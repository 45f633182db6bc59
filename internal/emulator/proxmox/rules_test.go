// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// request makes a raw request of any shape.
func request(t *testing.T, method, path, contentType, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://pve.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Authorization", "PVEAPIToken="+token+"="+secret)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// TestShapes: what the server reads, and what it refuses to.
func TestShapes(t *testing.T) {
	s := newService(t, proxmox.Options{})
	transport := emulator.Transport(s)
	const form, inJSON = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
	const clone, config = "/api2/json" + debian + "/clone", "/api2/json" + debian + "/config"
	for name, test := range map[string]struct {
		request *http.Request
		change  func(*http.Request)
		status  int
		reason  string
		body    string
	}{
		"form":                  {request(t, "POST", clone, form, "newid=201&name=a"), nil, 200, "OK", `{"data":"UPID:`},
		"JSON":                  {request(t, "POST", clone, inJSON, `{"newid":202,"name":"b","full":true,"pool":null}`), nil, 200, "OK", `{"data":"UPID:`},
		"parameters in the URL": {request(t, "POST", clone+"?newid=203&name=c", "", ""), nil, 200, "OK", `{"data":"UPID:`},
		"a slash at the end":    {request(t, "DELETE", "/api2/json/nodes/pve1/qemu/9003/?purge=1", "", ""), nil, 200, "OK", `{"data":"UPID:`},
		"bad JSON":              {request(t, "POST", clone, inJSON, `{`), nil, 500, "malformed JSON string: unexpected EOF", ""},
		"DELETE with a body":    {request(t, "DELETE", "/api2/json/nodes/pve1/qemu/201", form, "purge=1"), nil, 501, "Unexpected content for method 'DELETE'", ""},
		"GET with a body":       {request(t, "GET", config, form, "current=1"), nil, 501, "Unexpected content for method 'GET'", ""},
		"chunks": {request(t, "PUT", config, form, "onboot=1"), func(r *http.Request) {
			r.ContentLength = -1
		}, 501, "chunked transfer encoding not supported", ""},
		"too much":         {request(t, "PUT", config, form, "description="+strings.Repeat("x", 512<<10)), nil, 501, "for data too large", ""},
		"no such method":   {request(t, "PATCH", config, "", ""), nil, 501, "Method 'PATCH /nodes/pve1/qemu/9000/config' not implemented", ""},
		"no such path":     {request(t, "GET", "/api2/json/nothing", "", ""), nil, 501, "Method 'GET /nothing' not implemented", ""},
		"no format":        {request(t, "GET", "/api2/version", "", ""), nil, 501, "no such uri '/api2/version'", ""},
		"another format":   {request(t, "GET", "/api2/extjs/version", "", ""), nil, 200, "OK", `"success":1`},
		"an error in that": {request(t, "GET", "/api2/extjs/nodes/pve1/qemu/99999/config", "", ""), nil, 200, "OK", `"status":500,"success":0`},
		"no token":         {request(t, "GET", "/api2/json/version", "", ""), func(r *http.Request) { r.Header.Del("Authorization") }, 401, "No ticket", ""},
		"no secret": {request(t, "GET", "/api2/json/version", "", ""), func(r *http.Request) {
			r.Header.Set("Authorization", "PVEAPIToken="+token+"=")
		}, 401, "Authentication failed!", ""},
		"not a token": {request(t, "GET", "/api2/json/version", "", ""), func(r *http.Request) {
			r.Header.Set("Authorization", "PVEAPIToken=anything")
		}, 401, "Authentication failed!", ""},
		"an encoded token": {request(t, "GET", "/api2/json/version", "", ""), func(r *http.Request) {
			r.Header.Set("Authorization", "PVEAPIToken=root@pam%21tofu=a%20b")
		}, 200, "OK", `"release":"9.2"`},
		"unknown node": {request(t, "GET", "/api2/json/nodes/pve7/qemu", "", ""), nil, 500,
			"hostname lookup 'pve7' failed - failed to get address info for: pve7: Name or service not known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.request)
			}
			got, err := send(transport, test.request)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != test.status || got.reason != test.reason || !strings.Contains(got.body, test.body) {
				t.Errorf("got %s", got)
			}
			if (test.status == 401) != (got.body == "") {
				t.Errorf("the body is %q", got.body)
			}
		})
	}
	for vmid, name := range map[int]string{201: "a", 202: "b", 203: "c"} {
		if got := machine(t, s, vmid); got.Name != name {
			t.Errorf("%d is called %s", vmid, got.Name)
		}
	}
}

// TestReasonOnTheWire: the reason is in the status line, the connection ends after
// an error, and the body has a message from version 9 on.
func TestReasonOnTheWire(t *testing.T) {
	for version, body := range map[int]string{
		8: `{"data":null,"errors":{"vmid":"VM 9000 already exists"}}`,
		9: `{"data":null,"errors":{"vmid":"VM 9000 already exists"},"message":"Parameter verification failed.\n"}`,
	} {
		address, transport := socket(t, newService(t, proxmox.Options{Version: version}))
		r := request(t, "GET", "/api2/json/cluster/nextid?vmid=9000", "", "")
		r.URL.Host = strings.TrimPrefix(address, "https://")
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || response.Status != "400 Parameter verification failed." || string(text) != body || !response.Close ||
			response.Header.Get("Server") != "pve-api-daemon/3.0" || response.ProtoMajor != 1 {
			t.Errorf("%s %s %+v %v", response.Status, text, response, err)
		}
	}
}

// TestAuthDelay: a refusal may be held back.
func TestAuthDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{AuthDelay: 3 * time.Second, Projects: emulator.Projects{"a@pve!xx=1": "one"}})
		began := time.Now()
		got, err := send(emulator.Transport(s), request(t, "GET", "/api2/json/version", "", ""))
		if err != nil || got.status != 401 || time.Since(began) != 3*time.Second {
			t.Errorf("%s %v after %s", got, err, time.Since(began))
		}
	})
}

// TestProjects: each is a cluster of its own.
func TestProjects(t *testing.T) {
	s := newService(t, proxmox.Options{Projects: emulator.Projects{"a@pve!xx=1": "one", "b@pve!yy=2": "two"}})
	one, two := raw(t, s), raw(t, s)
	one.token, two.token = "a@pve!xx=1", "b@pve!yy=2"
	upid := one.ok("POST", debian+"/clone", "newid=101").text()
	if !strings.HasSuffix(upid, ":9000:a@pve!xx:") {
		t.Error(upid)
	}
	if got := s.Machines(); len(got) != 1 || got[0].Project != "one" {
		t.Errorf("machines %+v", got)
	}
	if resource(two, 101) != nil || resource(one, 101) == nil {
		t.Error("the projects see each other")
	}
}

// TestLag: names, status and templates in the cluster's list are those of some time
// ago; where a VM is, its tags and its lock are current.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{})
		a := raw(t, s)
		if row := resource(a, 9000); row["name"] != "debian-13" || row["template"] != float64(1) || row["status"] != "stopped" {
			t.Errorf("template %v", row)
		}
		a.done("OK", "POST", debian+"/clone", "newid=101", "name=web")
		a.ok("PUT", "/nodes/pve1/qemu/101/config", "tags=b;a")
		a.done("OK", "POST", "/nodes/pve1/qemu/101/status/start")
		if row := resource(a, 101); row["name"] != nil || row["status"] != "unknown" || row["tags"] != "a;b" || row["node"] != "pve1" {
			t.Errorf("at once %v", row)
		}
		if got := a.ok("GET", "/nodes/pve1/qemu/101/status/current").object(); got["status"] != "running" || got["name"] != "web" || got["agent"] != float64(1) {
			t.Errorf("current %v", got)
		}
		<-time.After(proxmox.DefaultLag)
		if row := resource(a, 101); row["name"] != "web" || row["status"] != "running" || row["template"] != float64(0) {
			t.Errorf("later %v", row)
		}
		s.SetPower(101, false)
		<-time.After(9 * time.Second)
		if row := resource(a, 101); row["status"] != "running" {
			t.Errorf("9 s after it stopped %v", row)
		}
		<-time.After(time.Second)
		if row := resource(a, 101); row["status"] != "stopped" {
			t.Errorf("10 s after it stopped %v", row)
		}
		s.SetNode("pve1", false)
		if row := resource(a, 101); row["status"] != "unknown" || row["name"] != "web" {
			t.Errorf("node down %v", row)
		}
	})
}

// TestNodeDown: what is on it can't be reached; the rest goes on.
func TestNodeDown(t *testing.T) {
	s := newService(t, proxmox.Options{})
	a := raw(t, s)
	a.done("OK", "POST", "/nodes/pve2/qemu/9002/clone", "newid=101")
	a.done("OK", "POST", "/nodes/pve2/qemu/101/status/start")
	s.SetNode("pve2", false)
	a.refused(595, "No route to host", "GET", "/nodes/pve2/qemu/101/config")
	a.refused(595, "No route to host", "GET", "/nodes/pve2/qemu")
	if nodes := a.ok("GET", "/nodes").rows(); nodes[0]["status"] != "online" || nodes[1]["status"] != "offline" {
		t.Errorf("nodes %v", nodes)
	}
	a.done("OK", "POST", debian+"/clone", "newid=102")
	s.SetNode("pve2", true)
	if got := a.ok("GET", "/nodes/pve2/qemu/101/status/current").object(); got["status"] != "stopped" {
		t.Errorf("after the node came back %v", got)
	}
}

// TestTasks: lists, states and logs of tasks.
func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, proxmox.Options{CloneTime: time.Minute})
		a := raw(t, s)
		upid := a.ok("POST", debian+"/clone", "newid=101", "full=1").text()
		got := a.ok("GET", "/nodes/pve1/tasks/"+strings.ReplaceAll(upid, "!", "%21")+"/status").object()
		if got["status"] != "running" || got["user"] != "root@pam" || got["tokenid"] != "tofu" || got["id"] != "9000" || got["exitstatus"] != nil {
			t.Errorf("status %v", got)
		}
		if archive := a.ok("GET", "/nodes/pve1/tasks").rows(); len(archive) != 0 {
			t.Errorf("archive %v", archive)
		}
		if active := a.ok("GET", "/nodes/pve1/tasks", "source=active", "typefilter=qmclone", "vmid=9000").rows(); len(active) != 1 || active[0]["status"] != "RUNNING" {
			t.Errorf("active %v", active)
		}
		<-time.After(time.Minute)
		if list := a.ok("GET", "/cluster/tasks").rows(); len(list) != 1 || list[0]["status"] != "OK" || list[0]["endtime"] != list[0]["starttime"].(float64)+60 {
			t.Errorf("cluster %v", list)
		}
		if log := a.ok("GET", "/nodes/pve1/tasks/"+upid+"/log"); !strings.Contains(log.body, `"t":"TASK OK"`) || !strings.Contains(log.body, `"total":4`) {
			t.Errorf("log %s", log)
		}
		if got := a.refused(400, "Parameter verification failed.", "GET", "/nodes/pve1/tasks/"+strings.Replace(upid, "9000", "9001", 1)+"/status"); got.errors["upid"] != "no such task" {
			t.Error(got)
		}
		a.refused(500, "unable to parse worker upid 'x'", "GET", "/nodes/pve1/tasks/x/status")
		// Another's task needs a privilege.
		other := raw(t, s)
		other.token = "joe@pve!tt=1"
		other.ok("GET", "/nodes/pve1/tasks/"+upid+"/status")
		s.SetDenials(proxmox.Denials{{Token: "joe@pve!tt", Path: "/nodes", Privilege: "Sys.Audit"}})
		other.refused(403, "Permission check failed (/nodes/pve1, Sys.Audit)", "GET", "/nodes/pve1/tasks/"+upid+"/status")
	})
}
