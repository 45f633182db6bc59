// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// TestThings makes, reads, lists, changes and deletes one of each kind of
// thing that servers refer to.
func TestThings(t *testing.T) {
	for _, thing := range []struct {
		collection, key, create string
		// refused is a body that is not taken, want a part of the reason.
		refused, want string
	}{
		{"ssh_keys", "ssh_key", `{"name":"x","public_key":"` + publicKey + `"}`, `{"name":"y","public_key":"none"}`, "OpenSSH"},
		{"networks", "network", `{"name":"x","ip_range":"10.0.0.0/16"}`, `{"name":"y","ip_range":"8.0.0.0/8"}`, "private"},
		{"firewalls", "firewall", `{"name":"x","rules":[{"direction":"in","protocol":"icmp","source_ips":["::/0"]}]}`, `{"name":"y","rules":[{"direction":"in","protocol":"tcp"}]}`, "port"},
		{"placement_groups", "placement_group", `{"name":"x","type":"spread"}`, `{"name":"y","type":"pile"}`, "spread"},
		{"primary_ips", "primary_ip", `{"name":"x","type":"ipv4","location":"nbg1"}`, `{"name":"y","type":"ipv5","location":"nbg1"}`, "ipv4 or ipv6"},
	} {
		t.Run(thing.collection, func(t *testing.T) {
			handler := described(t, hetzner.New(hetzner.Options{}), openapitest.AnswersOnly())
			root := "/v1/" + thing.collection
			expect := func(method, path, body string, status int, want string) string {
				t.Helper()
				got, answer, _ := do(t, handler, method, path, body)
				if got != status || !strings.Contains(answer, want) {
					t.Errorf("%s %s %s: %d %s", method, path, body, got, answer)
				}
				return answer
			}
			var created map[string]json.RawMessage
			answer := expect("POST", root, thing.create, 201, `"name":"x"`)
			if err := json.Unmarshal([]byte(answer), &created); err != nil {
				t.Fatal(err)
			}
			var object struct {
				ID int64 `json:"id"`
			}
			if err := json.Unmarshal(created[thing.key], &object); err != nil {
				t.Fatal(err)
			}
			one := fmt.Sprintf("%s/%d", root, object.ID)
			expect("POST", root, thing.create, 409, "uniqueness_error")
			expect("POST", root, thing.refused, 422, thing.want)
			expect("GET", one, "", 200, `"name":"x"`)
			expect("PUT", one, `{"name":"z","labels":{"a":"b"}}`, 200, `"labels":{"a":"b"}`)
			expect("PUT", one, `{"name":""}`, 422, `"name":"name"`)
			expect("GET", root+"?label_selector=a%3Db&name=z", "", 200, `"total_entries":1`)
			expect("GET", root+"?label_selector=a%21%3Db", "", 200, `"total_entries":0`)
			expect("DELETE", one, "", 204, "")
			expect("GET", one, "", 404, "not_found")
			expect("DELETE", one, "", 404, "not_found")
		})
	}
}

// TestReferences makes a server with things, and deletes them under it.
func TestReferences(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	handler := described(t, s, openapitest.AnswersOnly())
	expect := func(method, path, body string, status int, want string) {
		t.Helper()
		if got, answer, _ := do(t, handler, method, path, body); got != status || !strings.Contains(answer, want) {
			t.Errorf("%s %s %s: %d %s", method, path, body, got, answer)
		}
	}
	// Ids are given in the order of creation, from a million on.
	expect("POST", "/v1/firewalls", `{"name":"f"}`, 201, `"id":1000000`)
	expect("POST", "/v1/networks", `{"name":"n","ip_range":"10.0.0.0/16"}`, 201, `"id":1000002`)
	expect("POST", "/v1/primary_ips", `{"name":"p","type":"ipv4","location":"fsn1"}`, 201, `"id":1000003`)
	expect("POST", "/v1/primary_ips", `{"name":"q","type":"ipv6","location":"fsn1"}`, 201, `"id":1000004`)
	expect("POST", "/v1/placement_groups", `{"name":"g","type":"spread"}`, 201, `"id":1000005`)
	server := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"server_type":"cx23","image":"debian-12","location":"fsn1",%s}`, name, more)
	}
	expect("POST", "/v1/servers", server("a", `"networks":[1000002]`), 422, "no_subnet_available")
	expect("POST", "/v1/networks/1000002/actions/add_subnet", `{"type":"cloud","network_zone":"us-east"}`, 201, `"add_subnet"`)
	expect("POST", "/v1/servers", server("a", `"networks":[1000002]`), 422, "no_subnet_available")
	expect("POST", "/v1/networks/1000002/actions/add_subnet", `{"type":"cloud","network_zone":"eu-central"}`, 201, `"add_subnet"`)
	expect("POST", "/v1/servers", server("a", `"public_net":{"enable_ipv4":true,"enable_ipv6":false,"ipv4":1000004}`), 412, "primary_ip_version_mismatch")
	all := `"networks":[1000002],"firewalls":[{"firewall":1000000}],"placement_group":1000005,"start_after_create":false,
		"public_net":{"enable_ipv4":true,"enable_ipv6":false,"ipv4":1000003}`
	expect("POST", "/v1/servers", server("a", all), 201, `"ip":"203.0.113.1"`)
	id := s.Servers()[0].ID
	one := fmt.Sprintf("/v1/servers/%d", id)
	expect("GET", one, "", 200, `"status":"off"`)
	expect("GET", one, "", 200, `"ip":"10.0.1.1"`)
	expect("GET", one, "", 200, `"ipv6":null`)
	expect("POST", "/v1/servers", server("b", all), 422, "primary_ip_assigned")
	expect("POST", one+"/actions/attach_to_network", `{"network":1000002}`, 422, "server_already_attached")
	expect("POST", one+"/actions/detach_from_network", `{"network":7}`, 422, "not attached")
	expect("POST", one+"/actions/create_image", `{"type":"backup"}`, 422, "backups are not enabled")
	expect("DELETE", "/v1/firewalls/1000000", "", 422, "resource_in_use")
	expect("DELETE", "/v1/primary_ips/1000003", "", 422, "must_be_unassigned")
	expect("DELETE", "/v1/images/161547269", "", 403, "forbidden")
	expect("DELETE", "/v1/networks/1000002", "", 204, "")
	expect("DELETE", "/v1/placement_groups/1000005", "", 204, "")
	expect("GET", one, "", 200, `"private_net":[]`)
	expect("DELETE", one, "", 200, `"command":"delete_server"`)
	expect("GET", "/v1/primary_ips/1000003", "", 200, `"assignee_id":null`)
	expect("DELETE", "/v1/firewalls/1000000", "", 204, "")
	expect("GET", "/v1/servers/actions?status=success", "", 200, `"delete_server"`)
	expect("GET", "/v1/server_types/114", "", 200, `"cx23"`)
	expect("GET", "/v1/server_types/1", "", 404, "not_found")
	expect("GET", "/v1/locations/6", "", 200, `"sin"`)
	expect("GET", "/v1/isos/1", "", 404, "not_found")
	expect("GET", "/v1/volumes/1", "", 404, "not_found")
}

// TestPlacementGroupIsFull: the eleventh server doesn't fit.
func TestPlacementGroupIsFull(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	do(t, s, "POST", "/v1/placement_groups", `{"name":"g","type":"spread"}`)
	for i := range 11 {
		status, body, _ := do(t, s, "POST", "/v1/servers", fmt.Sprintf(`{"name":"s%d","server_type":"cax11","image":"ubuntu-24.04","placement_group":1000000}`, i))
		if want := map[bool]int{true: 201, false: 422}[i < 10]; status != want {
			t.Errorf("server %d: %d %s", i, status, body)
		}
	}
}
