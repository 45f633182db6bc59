// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// warm reads what MakeMachine needs, as a check before it does, and clears the calls.
func warm(t *testing.T, c *Client, cloud *emulated.Service, spec backends.MachineSpec) {
	t.Helper()
	if _, issues, err := c.CheckMachine(t.Context(), spec); err != nil || len(issues) > 0 {
		t.Fatal(issues, err)
	}
	cloud.ClearCalls()
}

// objectID is the id in a wrapped answer of the emulator.
func objectID(t *testing.T, answer map[string]any, name string) int64 {
	t.Helper()
	object, ok := answer[name].(map[string]any)
	id, isNumber := object["id"].(float64)
	if !ok || !isNumber {
		t.Fatalf("no %s in %v", name, answer)
	}
	return int64(id)
}

func TestMakeIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: time.Minute})
		key := makeKey(t, cloud, "laptop")
		firewall := objectID(t, post(t, cloud, "/firewalls", map[string]any{"name": "web"}), "firewall")
		group := objectID(t, post(t, cloud, "/placement_groups", map[string]any{"name": "spread", "type": "spread"}), "placement_group")
		net := makeNetwork(t, cloud, "main", "10.0.0.0/16", "10.0.1.0/24")
		spec := testSpec()
		spec.Labels = map[string]string{"role": "web"}
		spec.UserData = "#cloud-config\n# <ü> & more\n"
		spec.Marks.Complete = true // is not to be written when the machine is made
		spec.Options = backends.Values{
			"ssh_key_ids": []any{"laptop"}, "firewall_ids": []any{fmt.Sprint(firewall)},
			"networks":    []any{backends.Values{"network_id": fmt.Sprint(net)}},
			"public_ipv4": false, "placement_group_id": fmt.Sprint(group),
		}
		warm(t, c, cloud, spec)

		m, err := c.MakeMachine(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v1/servers": 1}) {
			t.Errorf("calls %v", got)
		}
		marks := spec.Marks
		marks.Complete = false
		if m.State != backends.StatePending || m.Marks != marks || m.Offer != "cx23" || m.Region != "fsn1" ||
			m.ImageID != "161547269" || m.Network != fmt.Sprint(net) || m.Labels["role"] != "web" || m.Created.IsZero() {
			t.Errorf("got %+v", m)
		}
		s := cloud.Servers()[0]
		if s.UserData != spec.UserData || !slices.Equal(s.SSHKeys, []int64{key}) {
			t.Errorf("the cloud got %+v", s)
		}
		if _, err := c.FinishMachine(t.Context(), m, spec); err != nil || len(cloud.Calls()) != 1 {
			t.Errorf("finishing what needs none: %v, %v", counts(cloud), err)
		}
		time.Sleep(2 * time.Minute) // of the bubble's clock: the server boots
		if m, err = c.GetMachine(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
		if m.State != backends.StateRunning || m.First(backends.IPv4, backends.Public) != "" ||
			!strings.HasSuffix(m.First(backends.IPv6, backends.Public), "::1") || m.First(backends.IPv4, backends.Private) == "" {
			t.Errorf("got %+v", m)
		}
	})
}

func makeNetwork(t *testing.T, cloud http.Handler, name, ipRange, subnet string) int64 {
	t.Helper()
	return objectID(t, post(t, cloud, "/networks", map[string]any{
		"name": name, "ip_range": ipRange,
		"subnets": []map[string]any{{"type": "cloud", "ip_range": subnet, "network_zone": "eu-central"}},
	}), "network")
}

func TestStoppedFromTheStart(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Start = false
	m, err := c.MakeMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := cloud.Servers()[0].Status; got != "off" {
		t.Errorf("the server is %s", got)
	}
	if m, err = c.GetMachine(t.Context(), m.ID); err != nil || m.State != backends.StateStopped {
		t.Errorf("got %v, %v", m.State, err)
	}
}

func TestFinishIsInterruptible(t *testing.T) {
	// Each run of the create dies at another call of finishing; the next one must
	// end with the same machine as an undisturbed create.
	for dies := range 6 {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := emulated.New(emulated.Options{Boot: 8 * time.Second})
				first := makeNetwork(t, cloud, "first", "10.0.0.0/16", "10.0.1.0/24")
				second := makeNetwork(t, cloud, "second", "10.1.0.0/16", "10.1.1.0/24")
				spec := testSpec()
				spec.Options = backends.Values{
					"networks": []any{
						backends.Values{"network_id": fmt.Sprint(first), "ip": "10.0.1.77", "alias_ips": []any{"10.0.1.78"}},
						backends.Values{"network_id": fmt.Sprint(second)},
					},
					"public_ipv4": false, "public_ipv6": false, "backups": true,
				}
				c := clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken})
				m, err := c.MakeMachine(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				if got := cloud.Servers()[0].Status; got != "initializing" {
					t.Fatalf("the server is %s", got)
				}
				if dies > 0 {
					n := 0
					lossy := roundTrip(func(r *http.Request) (*http.Response, error) {
						a, err := emulator.Transport(cloud).RoundTrip(r)
						if r.Method == http.MethodPost && err == nil && a.StatusCode < 300 {
							if n++; n >= dies {
								return nil, io.ErrUnexpectedEOF // carried out, answer lost, then nothing
							}
						}
						if n >= dies {
							return nil, io.ErrUnexpectedEOF
						}
						return a, err
					})
					if _, err := clientOf(t, lossy, &fixedSecrets{token: testToken}).FinishMachine(t.Context(), m, spec); (err == nil) != (dies > 4) {
						t.Fatalf("interrupted at %d: %v", dies, err)
					}
				}
				if m, err = c.FinishMachine(t.Context(), m, spec); err != nil {
					t.Fatal(err)
				}
				if m.Network != fmt.Sprint(first) || m.First(backends.IPv4, backends.Private) != "10.0.1.77" || len(m.Addresses) != 2 {
					t.Errorf("got %+v", m)
				}
				time.Sleep(time.Minute) // of the bubble's clock: the server boots
				if s := cloud.Servers(); len(s) != 1 || s[0].Status != "running" || !s[0].Backups {
					t.Errorf("the cloud has %+v", s)
				}
				cloud.ClearCalls()
				if _, err := c.FinishMachine(t.Context(), m, spec); err != nil {
					t.Fatal(err)
				}
				for call := range counts(cloud) {
					if !strings.HasPrefix(call, "GET ") {
						t.Errorf("a finished machine is finished again: %s", call)
					}
				}
			})
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNetworksOf(t *testing.T) {
	plain := func(id string) backends.Values { return backends.Values{"network_id": id} }
	with := backends.Values{"network_id": "3", "ip": "10.0.0.1"}
	for name, tt := range map[string]struct {
		spec       backends.MachineSpec
		now, later []int64
	}{
		"none":    {},
		"common":  {backends.MachineSpec{Network: "1"}, []int64{1}, nil},
		"plain":   {backends.MachineSpec{Options: backends.Values{"networks": []any{plain("2"), plain("1")}}}, []int64{2, 1}, nil},
		"ordered": {backends.MachineSpec{Options: backends.Values{"networks": []any{plain("2"), with, plain("1")}}}, []int64{2}, []int64{3, 1}},
	} {
		now, later, err := networksOf(tt.spec)
		ids := func(l []network) (out []int64) {
			for _, n := range l {
				out = append(out, n.id)
			}
			return out
		}
		if err != nil || !slices.Equal(ids(now), tt.now) || !slices.Equal(ids(later), tt.later) {
			t.Errorf("%s: %v, %v, %v", name, now, later, err)
		}
	}
}

func TestRequestBody(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	for name, tt := range map[string]struct {
		options     backends.Values
		has, hasNot []string
	}{
		"nothing":     {nil, []string{`"server_type":"cx23"`, `"image":"161547269"`, `"location":"fsn1"`, `"start_after_create":true`}, []string{"public_net", "networks", "firewalls", "ssh_keys", "placement_group"}},
		"one off":     {backends.Values{"public_ipv4": false}, []string{`"public_net":{"enable_ipv4":false,"enable_ipv6":true}`}, nil},
		"one on":      {backends.Values{"public_ipv6": true}, []string{`"public_net":{"enable_ipv4":true,"enable_ipv6":true}`}, nil},
		"keys":        {backends.Values{"ssh_key_ids": []any{"12", "laptop", "012"}}, []string{`"ssh_keys":[12,"laptop","012"]`}, nil},
		"no backups":  {backends.Values{"backups": false}, []string{`"start_after_create":true`}, []string{"backup"}},
		"own address": {backends.Values{"networks": []any{backends.Values{"network_id": "7", "ip": "10.0.0.2"}}}, []string{`"start_after_create":false`}, []string{`"networks"`}},
	} {
		spec := testSpec()
		spec.Options = tt.options
		body, err := c.createBody(t.Context(), spec)
		if err != nil {
			t.Fatal(name, err)
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, part := range tt.has {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s: no %s in %s", name, part, text)
			}
		}
		for _, part := range tt.hasNot {
			if strings.Contains(string(text), part) {
				t.Errorf("%s: %s in %s", name, part, text)
			}
		}
	}
}

func TestMakeRefusesBeforeAnyCallThatMakes(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for name, change := range map[string]func(*backends.MachineSpec){
		"capitals":    func(s *backends.MachineSpec) { s.Name = "Web" },
		"offer":       func(s *backends.MachineSpec) { s.Offer = "nope" },
		"no offer":    func(s *backends.MachineSpec) { s.Offer = "" },
		"image":       func(s *backends.MachineSpec) { s.Image = "nope" },
		"user data":   func(s *backends.MachineSpec) { s.UserData = strings.Repeat("x", 100<<10) },
		"firewall":    func(s *backends.MachineSpec) { s.Options = backends.Values{"firewall_ids": []any{"web"}} },
		"addressless": func(s *backends.MachineSpec) { s.Options = backends.Values{"public_ipv4": false, "public_ipv6": false} },
	} {
		spec := testSpec()
		change(&spec)
		_, err := c.MakeMachine(t.Context(), spec)
		if e := wantError(t, err); e.Code != backends.InvalidInput {
			t.Errorf("%s: %v", name, e)
		}
	}
	if n := counts(cloud)["POST /v1/servers"]; n != 0 || len(cloud.Servers()) != 0 {
		t.Errorf("%d calls made something", n)
	}
}

func TestMakeFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		rule     emulator.Rule
		option   func(*backends.MachineSpec)
		posts    int
		servers  int
		reason   backends.Reason
		ambig    bool
		says     string
		succeeds bool
	}{
		"lost answer":      {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, posts: 1, servers: 1, reason: backends.ReasonUnreachable, ambig: true},
		"504, carried out": {rule: emulator.Rule{Kind: emulator.KindLoseAnswer, Status: 504}, posts: 1, servers: 1, ambig: true},
		"connection reset": {rule: emulator.Rule{Kind: emulator.KindReset}, posts: 1, reason: backends.ReasonUnreachable, ambig: true},
		"HTML":             {rule: emulator.Rule{Kind: emulator.KindHTML}, posts: 1, ambig: true},
		"500":              {rule: emulator.Rule{Kind: emulator.KindStatus, Status: 500}, posts: 1, ambig: true},
		"no room":          {rule: emulator.Rule{Kind: emulator.KindCapacity}, posts: 1, reason: backends.ReasonCapacity, says: "cx23 can't be had in fsn1"},
		"rate limit":       {rule: emulator.Rule{Kind: emulator.KindRateLimitHour}, posts: 2, servers: 1, succeeds: true},
		"locked":           {rule: emulator.Rule{Kind: emulator.KindLocked}, posts: 2, servers: 1, succeeds: true},
		"unknown network":  {option: func(s *backends.MachineSpec) { s.Network = "77" }, posts: 1, reason: backends.ReasonInvalid, says: "77"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				spec := testSpec()
				warm(t, c, cloud, spec)
				if tt.option != nil {
					tt.option(&spec) // after the check, which would find it
				}
				if tt.rule.Kind != "" {
					tt.rule.Service, tt.rule.Method, tt.rule.Path = "hetzner", "POST", "/servers"
					if err := cloud.AddFault(tt.rule); err != nil {
						t.Fatal(err)
					}
				}
				_, err := c.MakeMachine(t.Context(), spec)
				if n := counts(cloud)["POST /v1/servers"]; n != tt.posts || len(cloud.Servers()) != tt.servers {
					t.Errorf("%d POSTs, %d servers", n, len(cloud.Servers()))
				}
				if n := counts(cloud)["GET /v1/networks/ID"]; n > 0 {
					t.Errorf("making a server looked a network up %d times", n)
				}
				if tt.succeeds {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				e := wantError(t, err)
				if e.Code != backends.ProviderError || e.Reason != tt.reason || e.Ambiguous != tt.ambig || !strings.Contains(e.Message, tt.says) {
					t.Errorf("got %+v", e)
				}
			})
		})
	}
}

func TestNameTaken(t *testing.T) {
	t.Run("by another", func(t *testing.T) {
		c, _ := emulatedClient(t, emulated.Options{})
		first, err := c.MakeMachine(t.Context(), testSpec())
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.MakeMachine(t.Context(), testSpec())
		var taken *backends.NameTaken
		if !errors.As(err, &taken) || taken.Holder.ID != first.ID || taken.Holder.Marks != first.Marks {
			t.Errorf("got %v", err)
		}
	})
	t.Run("by one that is being deleted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, cloud := emulatedClient(t, emulated.Options{DeleteTime: 20 * time.Second})
			first, err := c.MakeMachine(t.Context(), testSpec())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.DeleteMachine(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			second, err := c.MakeMachine(t.Context(), testSpec())
			if err != nil || second.ID == first.ID || len(cloud.Servers()) != 1 {
				t.Fatalf("got %v, %v", second, err)
			}
			if waited := time.Since(start); waited < 19*time.Second || waited > 40*time.Second {
				t.Errorf("waited %v", waited)
			}
		})
	})
	t.Run("by one that is never shown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cloud := emulated.New(emulated.Options{})
			transport := roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && r.URL.Path == "/v1/servers" {
					return always(refusal(409, "uniqueness_error", "server name is already used", `{"fields":[{"name":"name"}]}`)).RoundTrip(r)
				}
				return emulator.Transport(cloud).RoundTrip(r)
			})
			c := clientOf(t, transport, &fixedSecrets{token: testToken})
			start := time.Now()
			_, err := c.MakeMachine(t.Context(), testSpec())
			e := wantError(t, err)
			if waited := time.Since(start); waited < nameReleaseWindow || waited > 2*nameReleaseWindow {
				t.Errorf("waited %v", waited)
			}
			if e.Code != backends.ProviderError || e.Retryable || e.Remedy == "" || e.Details["status"] != 409 {
				t.Errorf("got %+v", e)
			}
		})
	})
	t.Run("another field", func(t *testing.T) {
		s := refusal(409, "uniqueness_error", "taken", `{"fields":[{"name":"volume"}]}`)
		if isNameTaken(failureOf(t, s)) {
			t.Error("a volume is taken for the name")
		}
		for _, details := range []string{"null", "{}", `{"fields":[]}`, `{"fields":[{"name":"name"}]}`} {
			if !isNameTaken(failureOf(t, refusal(409, "uniqueness_error", "taken", details))) {
				t.Errorf("not seen with details %s", details)
			}
		}
	})
}

// failureOf classifies one answer.
func failureOf(t *testing.T, a answer) error {
	t.Helper()
	c := clientOf(t, always(a), &fixedSecrets{token: testToken})
	var body struct{}
	got, err := send(t.Context(), c.api, http.MethodGet, "/x", nil, &body)
	return failure(t.Context(), "Trying", got, err)
}

func TestLostAnswerOfAnAttachIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 8 * time.Second})
		net := makeNetwork(t, cloud, "main", "10.0.0.0/16", "10.0.1.0/24")
		spec := testSpec()
		spec.Options = backends.Values{"networks": []any{backends.Values{"network_id": fmt.Sprint(net), "ip": "10.0.1.77"}}}
		m := made(t, c, func(s *backends.MachineSpec) { s.Options = spec.Options })
		rule := emulator.Rule{Service: "hetzner", Method: "POST", Path: "/servers/*/actions/attach_to_network", Nth: 1, Kind: emulator.KindLoseAnswer}
		time.Sleep(time.Minute) // of the bubble's clock: the server is no longer locked
		if err := cloud.AddFault(rule); err != nil {
			t.Fatal(err)
		}
		m, err := c.FinishMachine(t.Context(), m, spec)
		if err != nil || m.First(backends.IPv4, backends.Private) != "10.0.1.77" {
			t.Errorf("got %+v, %v", m, err)
		}
	})
}

func TestUnknownNetworkOfAnAttach(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Options = backends.Values{"networks": []any{backends.Values{"network_id": "77", "ip": "10.0.1.77"}}}
	m := made(t, c, func(s *backends.MachineSpec) { s.Options = spec.Options })
	_, err := c.FinishMachine(t.Context(), m, spec)
	if e := wantError(t, err); e.Code != backends.ProviderError || e.Reason != backends.ReasonInvalid || !strings.Contains(e.Remedy, "77") {
		t.Errorf("the server counts as gone: %+v", e)
	}
}
