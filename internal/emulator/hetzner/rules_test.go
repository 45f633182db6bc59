// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// TestRules sends what the API refuses, and looks at how it says so.
func TestRules(t *testing.T) {
	s := hetzner.New(hetzner.Options{
		ServerLimit: 2,
		Snapshots:   []hetzner.Snapshot{{ID: 900_000_001, Description: "arm", Architecture: "arm", DiskSize: 40}},
	})
	handler := described(t, s, openapitest.AnswersOnly())
	server := func(change string) string {
		return strings.Replace(`{"name":"b","server_type":"cx23","image":"debian-12","location":"fsn1"}`, `"b"`, change, 1)
	}
	if status, body, _ := do(t, handler, "POST", "/v1/servers", newServer); status != 201 || !strings.Contains(body, `"root_password":"`) {
		t.Fatalf("%d %s", status, body)
	}
	id := s.Servers()[0].ID
	one := fmt.Sprintf("/v1/servers/%d", id)

	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/nothing", "", 404, "api route not found"},
		{"DELETE", "/v1/volumes", "", 405, "method_not_allowed"},
		{"POST", "/v1/volumes/1/actions/snapshot", "{}", 404, "api route not found"},
		{"DELETE", "/v1/locations", "", 405, "method_not_allowed"},
		{"GET", "/v1/servers/4711", "", 404, "server with ID '4711' not found"},
		{"GET", "/v1/actions", "", 410, "deprecated_api_endpoint"},
		{"GET", "/v1/datacenters", "", 410, "announcement"},
		{"POST", "/v1/servers", "{", 400, "json_error"},
		{"POST", "/v1/servers", "{}", 422, `{"name":"image","messages":["must not be empty"]}`},
		{"POST", "/v1/servers", `{"name":1}`, 422, `"name":"name"`},
		{"POST", "/v1/servers", newServer, 409, `"details":{"fields":[{"name":"name"}]}`},
		{"POST", "/v1/servers", server(`"a_b"`), 422, "RFC 1123"},
		{"POST", "/v1/servers", server(`"b","labels":{"hetzner.cloud/x":"y"}`), 422, "reserved"},
		{"POST", "/v1/servers", server(`"b","labels":{"k":"` + strings.Repeat("v", 64) + `"}`), 422, `"name":"labels"`},
		{"POST", "/v1/servers", server(`"b","user_data":"` + strings.Repeat("x", 32<<10+1) + `"`), 422, `"name":"user_data"`},
		{"POST", "/v1/servers", server(`"b","ssh_keys":["none"]`), 422, "SSH key 'none' not found"},
		{"POST", "/v1/servers", server(`"b","volumes":[1]`), 404, "volume with ID '1' not found"},
		{"POST", "/v1/servers", server(`"b","firewalls":[{"firewall":1}]`), 404, "firewall with ID"},
		{"POST", "/v1/servers", server(`"b","networks":[1]`), 404, "network with ID"},
		{"POST", "/v1/servers", strings.Replace(server(`"b"`), "fsn1", "mars", 1), 422, "location 'mars' not found"},
		{"POST", "/v1/servers", strings.Replace(server(`"b"`), "fsn1", "ash", 1), 422, `"message":"unsupported location for server type"`},
		{"POST", "/v1/servers", strings.Replace(server(`"b"`), "cx23", "cpx11", 1), 422, "unsupported location"},
		{"POST", "/v1/servers", strings.Replace(server(`"b"`), "debian-12", "161547270", 1), 422, "image architecture 'arm'"},
		{"POST", "/v1/servers", strings.Replace(server(`"b"`), "debian-12", "900000001", 1), 422, "image architecture 'arm'"},
		{"POST", "/v1/servers", `{"name":"b","server_type":"cax41","image":"debian-12","location":"hel1"}`, 412, "error during placement"},
		{"POST", one + "/actions/change_type", `{"server_type":"cx33","upgrade_disk":false}`, 422, "server_not_stopped"},
		{"POST", one + "/actions/change_protection", `{"delete":true}`, 422, "same value"},
		{"POST", one + "/actions/rebuild", `{"image":"none"}`, 422, "image 'none' not found"},
		{"PUT", one, `{"labels":{"-":"x"}}`, 422, `"name":"labels"`},
		{"GET", "/v1/servers?sort=color", "", 422, `"name":"sort"`},
		{"GET", "/v1/servers?page=0", "", 422, `"name":"page"`},
		{"GET", "/v1/servers?label_selector=a%3D%3D%3Db", "", 422, `"name":"label_selector"`},
		{"POST", "/v1/servers", strings.Replace(server(`"c"`), "cx23", "114", 1), 201, `"name":"c"`},
		{"POST", "/v1/servers", server(`"d"`), 403, `"limits":[{"name":"server_limit"}]`},
	} {
		status, body, header := do(t, handler, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.80s: %d %s", test.method, test.path, test.body, status, body)
		}
		if status >= 400 && !strings.Contains(body, `"details":`) {
			t.Errorf("no details: %s", body)
		}
		if header.Get("X-Correlation-Id") == "" || header.Get("RateLimit-Limit") != "3600" {
			t.Errorf("headers %v", header)
		}
	}
	if status, _, header := do(t, handler, "GET", "/v1/servers?per_page=1", ""); status != 200 || !strings.Contains(header.Get("Link"), `rel="next"`) {
		t.Errorf("links %v", header)
	}
}

func TestTokensAndProjects(t *testing.T) {
	s := hetzner.New(hetzner.Options{Projects: emulator.Projects{"one": "first", "two": "second"}})
	call := func(method, path, token, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://hetzner.test"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := emulator.Transport(described(t, s)).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text := new(strings.Builder)
		if err := response.Write(text); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, text.String()
	}
	if status, body := call("GET", "/v1/servers", "", ""); status != 401 || !strings.Contains(body, `{"error":{"code":"unauthorized","details":null,"message":"token is required"}}`) {
		t.Errorf("no token: %d %s", status, body)
	}
	if status, body := call("GET", "/v1/nothing", "", ""); status != 404 {
		t.Errorf("no route, no token: %d %s", status, body)
	}
	if status, body := call("DELETE", "/v1/servers", "", ""); status != 401 {
		t.Errorf("no method, no token: %d %s", status, body)
	}
	if status, body := call("GET", "/v1/servers", "three", ""); status != 401 || !strings.Contains(body, "invalid") {
		t.Errorf("bad token: %d %s", status, body)
	}
	for _, token := range []string{"one", "two"} {
		if status, body := call("POST", "/v1/servers", token, newServer); status != 201 {
			t.Errorf("the same name in project of %s: %d %s", token, status, body)
		}
	}
	if servers := s.Servers(); len(servers) != 2 || servers[0].Project != "first" {
		t.Errorf("servers %+v", servers)
	}
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{RateLimit: 60})
		for i := range 60 {
			if status, _, header := do(t, s, "GET", "/v1/locations", ""); status != 200 || header.Get("RateLimit-Remaining") != fmt.Sprint(59-i) {
				t.Fatalf("call %d: %d, %v", i, status, header)
			}
		}
		status, _, header := do(t, s, "GET", "/v1/locations", "")
		if full := fmt.Sprint(time.Now().Add(time.Hour).Unix()); status != 429 || header.Get("RateLimit-Reset") != full {
			t.Errorf("call 61: %d %v", status, header)
		}
		<-time.After(time.Minute)
		if status, _, _ := do(t, s, "GET", "/v1/locations", ""); status != 200 {
			t.Errorf("a minute later: %d", status)
		}
		if status, _, _ := do(t, s, "GET", "/v1/locations", ""); status != 429 {
			t.Errorf("twice in that minute: %d", status)
		}
	})
}

// TestDrift uses what Go tests change behind the API's back.
func TestDrift(t *testing.T) {
	s := hetzner.New(hetzner.Options{IgnoreShutdown: true})
	do(t, s, "POST", "/v1/servers", `{"name":"a","server_type":"cx23","image":"debian-12","labels":{"better-compute.io/managed":"true"}}`)
	v := s.Servers()[0]
	if machines := s.Objects().Machines; v.Status != "running" || len(machines) != 1 || !machines[0].Managed || machines[0].State != "running" {
		t.Errorf("machines %+v", machines)
	}
	do(t, s, "POST", fmt.Sprintf("/v1/servers/%d/actions/shutdown", v.ID), "")
	if s.Servers()[0].Status != "running" {
		t.Error("the guest did not ignore the shutdown")
	}
	if !s.SetPower(v.ID, false) || s.Servers()[0].Status != "off" {
		t.Error("power")
	}
	if !s.SetLabels(v.ID, nil) || s.Objects().Machines[0].Managed {
		t.Error("labels")
	}
	if !s.SetName(v.ID, "b") || !s.SetStatus(v.ID, "unknown") || s.Servers()[0].Name != "b" {
		t.Error("name")
	}
	if !s.SetStock("cx23", "fsn1", false) || s.SetStock("cx23", "ash", false) {
		t.Error("stock")
	}
	if status, _, _ := do(t, s, "POST", "/v1/servers", `{"name":"c","server_type":"cx23","image":"debian-12","location":"fsn1"}`); status != 412 {
		t.Errorf("out of stock: %d", status)
	}
	if !s.Withdraw("cx23") || s.Withdraw("cx23") {
		t.Error("withdraw")
	}
	if !s.Delete(v.ID) || s.Delete(v.ID) || len(s.Servers()) != 0 {
		t.Error("delete")
	}
}

// TestSnapshotAndRestore takes a server over in the middle of its boot.
func TestSnapshotAndRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := hetzner.New(hetzner.Options{Boot: time.Minute})
		do(t, first, "POST", "/v1/servers", newServer)
		snapshot, err := first.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Second)
		second := hetzner.New(hetzner.Options{Boot: time.Minute})
		if err := second.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		if got := second.Servers(); len(got) != 1 || got[0].Status != "starting" || !got[0].Locked {
			t.Errorf("restored %+v", got)
		}
		<-time.After(40 * time.Second)
		if got := second.Servers(); got[0].Status != "running" || got[0].Locked {
			t.Errorf("a minute after: %+v", got)
		}
		if _, body, _ := do(t, second, "GET", fmt.Sprintf("/v1/servers/%d/actions", second.Servers()[0].ID), ""); strings.Count(body, `"status":"success"`) != 2 {
			t.Errorf("actions %s", body)
		}
		if err := second.Restore([]byte(`{"projects":{"x":null}}`)); err == nil {
			t.Error("a broken snapshot is taken")
		}
	})
}
