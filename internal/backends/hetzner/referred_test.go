// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const laptopKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE5ldmVyR29ubmFHaXZlWW91VXBOZXZlckdvbm5hTGV0 a"

func makeKey(t *testing.T, cloud http.Handler, name string) int64 {
	t.Helper()
	return objectID(t, post(t, cloud, "/ssh_keys", map[string]any{"name": name, "public_key": laptopKey}), "ssh_key")
}

// naming is a wish of which nothing is known but what it names.
func naming(options backends.Values) backends.MachineSpec {
	return backends.MachineSpec{Name: "web-0", Options: options}
}

func pathsOf(issues []*backends.Error) string {
	var out []string
	for _, e := range issues {
		out = append(out, e.Path.String())
	}
	return strings.Join(out, " ")
}

func check(t *testing.T, c *Client, spec backends.MachineSpec) []*backends.Error {
	t.Helper()
	_, issues, err := c.CheckMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return issues
}

func warnings(t *testing.T, c *Client, spec backends.MachineSpec) []string {
	t.Helper()
	resolved, _, err := c.CheckMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return resolved.Warnings
}

func TestWhatTheProjectLacks(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	// Another kind's id is no id of this kind.
	firewall := fmt.Sprint(objectID(t, post(t, cloud, "/firewalls", map[string]any{"name": "web"}), "firewall"))
	makeKey(t, cloud, "laptop")
	for name, tt := range map[string]struct {
		spec backends.MachineSpec
		path string // "": no issue
		says []string
	}{
		"network": {backends.MachineSpec{Network: "9001"}, "network_id", []string{"no network 9001 in the account's project", "hcloud_network.NAME.id"}},
		"network of the options": {
			naming(backends.Values{"networks": []any{backends.Unknown, backends.Values{"network_id": "9001", "ip": "10.0.1.9"}}}),
			"hetzner_cloud.networks[1].network_id", []string{"no network 9001", "another project's"},
		},
		"firewall": {
			naming(backends.Values{"firewall_ids": []any{firewall, backends.Unknown, "9001"}}),
			"hetzner_cloud.firewall_ids[2]", []string{"no firewall 9001", "hcloud_firewall.NAME.id"},
		},
		"placement group": {
			naming(backends.Values{"placement_group_id": firewall}),
			"hetzner_cloud.placement_group_id", []string{"no placement group " + firewall, "hcloud_placement_group.NAME.id"},
		},
		"SSH key": {
			naming(backends.Values{"ssh_key_ids": []any{"laptop", "9001"}}),
			"hetzner_cloud.ssh_key_ids[1]", []string{"no SSH key 9001", "hcloud_ssh_key.NAME.id"},
		},
		"SSH key by name": {
			naming(backends.Values{"ssh_key_ids": []any{"lap top&name=laptop", "laptop"}}),
			"", []string{`no SSH key "lap top&name=laptop"`, "hcloud_ssh_key.NAME.id"},
		},
		"name in capitals": {naming(backends.Values{"ssh_key_ids": []any{"Laptop"}}), "", []string{`no SSH key "Laptop"`}},
		"not known yet": {naming(backends.Values{
			"networks": backends.Unknown, "firewall_ids": []any{backends.Unknown},
			"placement_group_id": backends.Unknown, "ssh_key_ids": backends.Unknown,
		}), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			resolved, issues, err := c.CheckMachine(t.Context(), tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := pathsOf(issues); got != tt.path {
				t.Fatalf("issues at %q, want %q: %v", got, tt.path, issues)
			}
			told := slices.Clone(resolved.Warnings)
			for _, e := range issues {
				if e.Code != backends.InvalidInput {
					t.Errorf("got %v", e)
				}
				told = append(told, e.Message+" "+e.Remedy)
			}
			if (len(told) > 0) != (len(tt.says) > 0) {
				t.Errorf("told %q", told)
			}
			for _, part := range tt.says {
				if !strings.Contains(strings.Join(told, " "), part) {
					t.Errorf("%q doesn't say %q", told, part)
				}
			}
		})
	}
}

// Everything that is missing is told at once, in the order of the wish, beside what
// else is wrong; an object named twice is asked for once and told twice.
func TestAllThatIsMissingAtOnce(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Name, spec.Offer = "Web", "nope"
	spec.Options = backends.Values{
		"networks":     []any{backends.Values{"network_id": "9001"}, backends.Values{"network_id": "9002"}},
		"firewall_ids": []any{"9001"}, "placement_group_id": "9001", "ssh_key_ids": []any{"9001", "ghost", "9001"},
	}
	const want = "name hetzner_cloud.networks[0].network_id hetzner_cloud.networks[1].network_id hetzner_cloud.firewall_ids[0] " +
		"hetzner_cloud.placement_group_id hetzner_cloud.ssh_key_ids[0] hetzner_cloud.ssh_key_ids[2] offer"
	if got := pathsOf(check(t, c, spec)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	wantCalls := map[string]int{
		"GET /v1/server_types": 1, "GET /v1/pricing": 1, "GET /v1/images": 1,
		"GET /v1/networks/ID": 2, "GET /v1/firewalls/ID": 1, "GET /v1/placement_groups/ID": 1,
		"GET /v1/ssh_keys/ID": 1, "GET /v1/ssh_keys": 1,
	}
	if got := counts(cloud); !maps.Equal(got, wantCalls) {
		t.Errorf("calls %v, want %v", got, wantCalls)
	}
}

// What is no id is for the form to say, and costs no call.
func TestMalformedIDsAreNotLookedUp(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	spec := naming(backends.Values{
		"networks":     []any{backends.Values{"network_id": "0x1"}},
		"firewall_ids": []any{"web", "-1", "0"}, "placement_group_id": "007", "ssh_key_ids": []any{""},
	})
	if got, want := pathsOf(check(t, c, spec)), pathsOf(c.CheckForm(spec)); got != want || got == "" {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := counts(cloud); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
}

// A hundred instances in one network, at once and one after another, cost one call
// per object in ten minutes.
func TestOneCallForManyWishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := emulated.New(emulated.Options{Latency: time.Second})
		c := clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken})
		spec := testSpec()
		spec.Network = fmt.Sprint(makeNetwork(t, cloud, "main", "10.0.0.0/16", "10.0.1.0/24"))
		spec.Options = backends.Values{
			"firewall_ids":       []any{fmt.Sprint(objectID(t, post(t, cloud, "/firewalls", map[string]any{"name": "web"}), "firewall"))},
			"placement_group_id": fmt.Sprint(objectID(t, post(t, cloud, "/placement_groups", map[string]any{"name": "spread", "type": "spread"}), "placement_group")),
			"ssh_key_ids":        []any{fmt.Sprint(makeKey(t, cloud, "laptop")), "laptop"},
		}
		cloud.ClearCalls()
		all := func() {
			var wait sync.WaitGroup
			for i := range 100 {
				wait.Go(func() {
					one := spec
					one.Name = fmt.Sprintf("web-%d", i)
					if _, issues, err := c.CheckMachine(t.Context(), one); err != nil || len(issues) > 0 {
						t.Errorf("%v, %v", issues, err)
					}
				})
			}
			wait.Wait()
		}
		want := map[string]int{
			"GET /v1/server_types": 1, "GET /v1/pricing": 1, "GET /v1/images": 1, "GET /v1/networks/ID": 1,
			"GET /v1/firewalls/ID": 1, "GET /v1/placement_groups/ID": 1, "GET /v1/ssh_keys/ID": 1, "GET /v1/ssh_keys": 1,
		}
		expect := func(when string) {
			t.Helper()
			if got := counts(cloud); !maps.Equal(got, want) {
				t.Errorf("%s: calls %v, want %v", when, got, want)
			}
		}
		all()
		expect("at once")
		all()
		expect("again")
		// What makes the server asks for none of it.
		if _, err := c.MakeMachine(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		want["POST /v1/servers"] = 1
		expect("made")
		time.Sleep(catalogLifetime) // of the bubble's clock
		all()
		for call := range want {
			if strings.HasPrefix(call, "GET ") {
				want[call] = 2
			}
		}
		expect("ten minutes later")
	})
}

// A miss isn't kept: what a wish names may be made in the same apply.
func TestMadeAfterAMiss(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	before := makeNetwork(t, cloud, "before", "10.1.0.0/16", "10.1.1.0/24")
	next := fmt.Sprint(before + 1) // the emulator numbers all objects in turn
	byID, byName := backends.MachineSpec{Network: next}, naming(backends.Values{"ssh_key_ids": []any{"laptop"}})
	for range 2 {
		if got := pathsOf(check(t, c, byID)); got != "network_id" {
			t.Errorf("issues at %q", got)
		}
		if got := warnings(t, c, byName); len(got) != 1 {
			t.Errorf("warned of %q", got)
		}
	}
	if made := fmt.Sprint(makeNetwork(t, cloud, "main", "10.0.0.0/16", "10.0.1.0/24")); made != next {
		t.Fatalf("the network became %s, not %s", made, next)
	}
	makeKey(t, cloud, "laptop")
	for _, spec := range []backends.MachineSpec{byID, byName} {
		if issues := check(t, c, spec); len(issues) > 0 {
			t.Errorf("issues %v", issues)
		}
		if got := warnings(t, c, spec); len(got) > 0 {
			t.Errorf("warned of %q", got)
		}
	}
}

// A look-up that fails says nothing about the wish, unless it is for want of
// credentials.
func TestLookupsThatFail(t *testing.T) {
	spec := naming(backends.Values{
		"networks": []any{backends.Values{"network_id": "1"}}, "firewall_ids": []any{"1"}, "placement_group_id": "1", "ssh_key_ids": []any{"1", "laptop"},
	})
	const emptyPage = `"meta":{"pagination":{"page":1,"per_page":50}}}`
	for name, tt := range map[string]struct {
		answer answer
		reason backends.Reason // "": no error
		warns  bool
	}{
		"forbidden":        {answer: refusal(403, "forbidden", "insufficient permissions", "null")},
		"403 of a proxy":   {answer: answer{status: 403, body: "blocked"}},
		"out of order":     {answer: answer{status: 502, contentType: "text/html", body: "<h1>bad gateway</h1>"}},
		"unknown route":    {answer: refusal(404, "not_found", "api route not found", "null")},
		"404 of a proxy":   {answer: answer{status: 404, contentType: "text/html", body: "<h1>nothing here</h1>"}},
		"another object":   {answer: jsonAnswer(200, `{"network":{"id":2},"firewall":{"id":2},"placement_group":{"id":2},"ssh_key":{"id":2},"ssh_keys":[{"id":1,"name":"laptop"}],`+emptyPage)},
		"another shape":    {answer: jsonAnswer(200, `{"network":[],"firewall":"1","placement_group":null,"ssh_keys":{}}`)},
		"no network":       {answer: answer{err: errNoObject}},
		"filter ignored":   {answer: jsonAnswer(200, `{"network":{"id":1},"firewall":{"id":1},"placement_group":{"id":1},"ssh_key":{"id":1},"ssh_keys":[{"id":1,"name":"other"}],`+emptyPage), warns: true},
		"bad token":        {answer: refusal(401, "unauthorized", "the token you have provided is invalid", "null"), reason: backends.ReasonCredentials},
		"401 without JSON": {answer: answer{status: 401}, reason: backends.ReasonCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resolved, issues, err := clientOf(t, always(tt.answer), &fixedSecrets{token: testToken}).CheckMachine(t.Context(), spec)
				if got := pathsOf(issues); got != "" {
					t.Errorf("issues at %q", got)
				}
				if (len(resolved.Warnings) > 0) != tt.warns {
					t.Errorf("warned of %q", resolved.Warnings)
				}
				if (err == nil) != (tt.reason == "") || (err != nil && wantError(t, err).Reason != tt.reason) {
					t.Errorf("error %v, want reason %q", err, tt.reason)
				}
			})
		})
	}
	noSecret := backends.Errorf(backends.InvalidConfig, "HCLOUD_TOKEN is not set")
	s := always(answer{status: 500})
	if _, _, err := clientOf(t, s, &fixedSecrets{err: noSecret}).CheckMachine(t.Context(), spec); !backends.HasCode(err, backends.InvalidConfig) || len(s.requests) > 0 {
		t.Errorf("without a secret: %v, calls %v", err, s.requests)
	}
}

// One look-up that fails leaves the other checks as they are.
func TestOneLookupFails(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	if err := cloud.AddFault(emulator.Rule{Service: "hetzner", Path: "/firewalls/*", Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever}); err != nil {
		t.Fatal(err)
	}
	spec := testSpec()
	spec.Offer, spec.Network = "nope", "9001"
	spec.Options = backends.Values{"firewall_ids": []any{"9001"}}
	if got := pathsOf(check(t, c, spec)); got != "network_id offer" {
		t.Errorf("issues at %q", got)
	}
	cloud.ClearFaults()
	if got := pathsOf(check(t, c, spec)); got != "network_id hetzner_cloud.firewall_ids[0] offer" {
		t.Errorf("once it works again: issues at %q", got)
	}
}

// A wish that names none of these costs the catalog's calls and no more; one of
// which nothing is known costs none.
func TestWishesThatNameNothing(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	check(t, c, backends.MachineSpec{Name: "web-0", Options: backends.Values{"backups": true, "public_ipv6": false}})
	if got := counts(cloud); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
	check(t, c, testSpec())
	want := map[string]int{"GET /v1/server_types": 1, "GET /v1/pricing": 1, "GET /v1/images": 1}
	if got := counts(cloud); !maps.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}
