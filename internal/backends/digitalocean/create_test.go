// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// warm reads what MakeMachine needs, as a check before it does, and clears the calls.
func warm(t *testing.T, c *Client, cloud *emulated.Service, spec backends.MachineSpec) {
	t.Helper()
	if _, issues, err := c.CheckMachine(t.Context(), spec); err != nil || len(issues) > 0 {
		t.Fatal(issues, err)
	}
	cloud.ClearCalls()
}

// made is a machine, made; it boots in the time that the cloud takes.
func made(t *testing.T, c *Client, change ...func(*backends.MachineSpec)) backends.Machine {
	t.Helper()
	spec := testSpec()
	for _, f := range change {
		f(&spec)
	}
	m, err := c.MakeMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func addFault(t *testing.T, cloud *emulated.Service, rule emulator.Rule) {
	t.Helper()
	rule.Service = "digitalocean"
	if err := cloud.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}

func TestMakeIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: time.Minute})
		key := makeKey(t, cloud, "laptop")
		vpc := cloud.AddVPC("main", "fra1")
		spec := testSpec()
		spec.Labels = map[string]string{"role": "web", "edge": ""}
		spec.UserData = "#cloud-config\n# <ü> & more\n"
		spec.Network = vpc
		spec.Marks.Complete = true // is not to be written when the machine is made
		spec.Options = backends.Values{
			"ssh_key_ids": []any{key.fingerprint}, "tags": []any{"firewall", "Role:Web"}, "ipv6": true, "monitoring": true,
			"backups": true, "backup_policy": backends.Values{"plan": "weekly", "weekday": "MON", "hour": int64(4)}, "droplet_agent": true,
		}
		warm(t, c, cloud, spec)

		m, err := c.MakeMachine(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v2/droplets": 1}) {
			t.Errorf("calls %v", got)
		}
		marks := spec.Marks
		marks.Complete = false
		if m.State != backends.StatePending || m.Marks != marks || m.Offer != "s-1vcpu-1gb" || m.Region != "fra1" ||
			m.ImageID != "195932981" || m.Network != vpc || m.Created.IsZero() || m.URN != "do:droplet:"+m.ID {
			t.Errorf("got %+v", m)
		}
		if want := map[string]string{"role": "web", "edge": "", "firewall": ""}; !maps.Equal(m.Labels, want) {
			t.Errorf("labels %v, want %v", m.Labels, want)
		}
		d := cloud.Droplets()[0]
		if d.UserData != spec.UserData || len(d.SSHKeys) != 1 || !d.Backups || d.Name != "web-0" {
			t.Errorf("the cloud got %+v", d)
		}
		time.Sleep(2 * time.Minute) // of the bubble's clock: the Droplet boots
		if m, err = c.GetMachine(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
		if m.State != backends.StateRunning || m.First(backends.IPv4, backends.Public) == "" ||
			m.First(backends.IPv6, backends.Public) == "" || m.First(backends.IPv4, backends.Private) == "" || m.Protected {
			t.Errorf("got %+v", m)
		}
	})
}

func TestRequestBody(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	for name, tt := range map[string]struct {
		change      func(*backends.MachineSpec)
		has, hasNot []string
	}{
		"nothing": {
			func(*backends.MachineSpec) {},
			[]string{`"size":"s-1vcpu-1gb"`, `"image":"ubuntu-24-04-x64"`, `"region":"fra1"`, `"ssh_keys":[]`, `"backups":false`, `"better-compute"`},
			[]string{"vpc_uuid", "with_droplet_agent", "backup_policy", "complete"},
		},
		"image id": {func(s *backends.MachineSpec) { s.Image = "195932981" }, []string{`"image":195932981`}, nil},
		"keys": {func(s *backends.MachineSpec) {
			s.Options = backends.Values{"ssh_key_ids": []any{"12", "3b:16:e4:bf:8b:00:8b:b8:59:8c:a9:d3:f0:19:fa:45"}}
		}, []string{`"ssh_keys":[12,"3b:16:`}, nil},
		"no agent": {func(s *backends.MachineSpec) { s.Options = backends.Values{"droplet_agent": false} }, []string{`"with_droplet_agent":false`}, nil},
		"policy": {func(s *backends.MachineSpec) {
			s.Options = backends.Values{"backups": true, "backup_policy": backends.Values{"plan": "daily", "hour": int64(0)}}
		}, []string{`"backup_policy":{"plan":"daily","hour":0}`}, []string{"weekday"}},
		"no hour": {func(s *backends.MachineSpec) {
			s.Options = backends.Values{"backups": true, "backup_policy": backends.Values{"plan": "daily"}}
		}, []string{`"backup_policy":{"plan":"daily"}`}, nil},
		"network": {func(s *backends.MachineSpec) { s.Network = "760e09ef-dc84-11e8-981e-3cfdfeaae000" }, []string{`"vpc_uuid":"760e09ef-dc84-11e8-981e-3cfdfeaae000"`}, nil},
		"same tags": {func(s *backends.MachineSpec) {
			s.Labels = map[string]string{"a": "b"}
			s.Options = backends.Values{"tags": []any{"A:B"}}
		}, []string{`"a:b"`}, []string{"A:B"}},
	} {
		spec := testSpec()
		tt.change(&spec)
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
	c, cloud := emulatedClient(t, emulated.Options{}, backends.Values{"regions": []any{"fra1"}})
	for name, change := range map[string]func(*backends.MachineSpec){
		"capitals":  func(s *backends.MachineSpec) { s.Name = "Web" },
		"offer":     func(s *backends.MachineSpec) { s.Offer = "nope" },
		"no offer":  func(s *backends.MachineSpec) { s.Offer = "" },
		"image":     func(s *backends.MachineSpec) { s.Image = "nope" },
		"no image":  func(s *backends.MachineSpec) { s.Image = "" },
		"region":    func(s *backends.MachineSpec) { s.Region = "ams3" },
		"user data": func(s *backends.MachineSpec) { s.UserData = strings.Repeat("x", 100<<10) },
		"key":       func(s *backends.MachineSpec) { s.Options = backends.Values{"ssh_key_ids": []any{"laptop"}} },
		"label":     func(s *backends.MachineSpec) { s.Labels = map[string]string{"a.b": ""} },
	} {
		spec := testSpec()
		change(&spec)
		_, err := c.MakeMachine(t.Context(), spec)
		if e := wantError(t, err); e.Code != backends.InvalidInput {
			t.Errorf("%s: %v", name, e)
		}
	}
	if n := counts(cloud)["POST /v2/droplets"]; n != 0 || len(cloud.Droplets()) != 0 {
		t.Errorf("%d calls made something", n)
	}
}

func TestMakeFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		rule     emulator.Rule
		options  emulated.Options
		change   func(*backends.MachineSpec)
		posts    int
		droplets int
		reason   backends.Reason
		ambig    bool
		says     string
		succeeds bool
	}{
		"lost answer":      {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, posts: 1, droplets: 1, reason: backends.ReasonUnreachable, ambig: true},
		"504, carried out": {rule: emulator.Rule{Kind: emulator.KindLoseAnswer, Status: 504}, posts: 1, droplets: 1, ambig: true},
		"connection reset": {rule: emulator.Rule{Kind: emulator.KindReset}, posts: 1, reason: backends.ReasonUnreachable, ambig: true},
		"HTML":             {rule: emulator.Rule{Kind: emulator.KindHTML}, posts: 1, ambig: true, says: "502 (Bad Gateway)"},
		"500":              {rule: emulator.Rule{Kind: emulator.KindStatus, Status: 500}, posts: 1, ambig: true},
		"no room":          {rule: emulator.Rule{Kind: emulator.KindCapacity}, posts: 1, reason: backends.ReasonCapacity, says: "s-1vcpu-1gb can't be had in fra1"},
		"hourly limit":     {rule: emulator.Rule{Kind: emulator.KindRateLimitHour}, posts: 2, droplets: 1, succeeds: true},
		"burst":            {rule: emulator.Rule{Kind: emulator.KindRateLimitBurst}, posts: 2, droplets: 1, succeeds: true},
		"account's limit": {
			options: emulated.Options{DropletLimit: 1}, change: func(s *backends.MachineSpec) { s.Marks.Key = "inst_another" },
			posts: 2, droplets: 1, reason: backends.ReasonQuota,
		},
		"unknown VPC": {change: func(s *backends.MachineSpec) { s.Network = "760e09ef-dc84-11e8-981e-3cfdfeaae000" }, posts: 1, reason: backends.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, tt.options)
				spec := testSpec()
				warm(t, c, cloud, spec)
				if tt.options.DropletLimit > 0 {
					made(t, c)
				}
				if tt.change != nil {
					tt.change(&spec) // after the check, which would find it
				}
				if tt.rule.Kind != "" {
					tt.rule.Method, tt.rule.Path = "POST", "/droplets"
					addFault(t, cloud, tt.rule)
				}
				_, err := c.MakeMachine(t.Context(), spec)
				if n := counts(cloud)["POST /v2/droplets"]; n != tt.posts || len(cloud.Droplets()) != tt.droplets {
					t.Errorf("%d POSTs, %d Droplets", n, len(cloud.Droplets()))
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

// What a lost answer made is found by its key, once the lists show it.
func TestFoundByItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		spec := testSpec()
		warm(t, c, cloud, spec)
		addFault(t, cloud, emulator.Rule{Method: "POST", Path: "/droplets", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(5 * time.Second)})
		addFault(t, cloud, emulator.Rule{Method: "POST", Path: "/droplets", Kind: emulator.KindLoseAnswer})
		if _, err := c.MakeMachine(t.Context(), spec); err == nil {
			t.Fatal("the answer was lost")
		}
		if got, err := c.FindMachines(t.Context(), spec.Marks.Key); err != nil || len(got) != 0 {
			t.Errorf("while the lists lag: %v, %v", got, err)
		}
		time.Sleep(6 * time.Second) // of the bubble's clock
		got, err := c.FindMachines(t.Context(), spec.Marks.Key)
		if err != nil || len(got) != 1 || got[0].Marks.Claim != spec.Marks.Claim {
			t.Errorf("got %v, %v", got, err)
		}
		// Names aren't unique: a second one is made, and both are found, the older first.
		time.Sleep(2 * time.Second)
		second := made(t, c, func(s *backends.MachineSpec) { s.Marks.Claim = "another" })
		got, err = c.FindMachines(t.Context(), spec.Marks.Key)
		if err != nil || len(got) != 2 || got[1].ID != second.ID {
			t.Errorf("got %v, %v", got, err)
		}
		for _, key := range []string{"inst_another", "a key", "a&b=c", strings.Repeat("k", 300), ""} {
			if got, err := c.FindMachines(t.Context(), key); err != nil || len(got) != 0 {
				t.Errorf("%q: %v, %v", key, got, err)
			}
		}
	})
}

// The API says nothing about a Droplet that it doesn't show yet but "not found".
func TestEarly404(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		warm(t, c, cloud, testSpec())
		addFault(t, cloud, emulator.Rule{Method: "POST", Path: "/droplets", Kind: emulator.KindEarly404, Delay: emulator.Duration(5 * time.Second)})
		m := made(t, c)
		_, err := c.GetMachine(t.Context(), m.ID)
		if e := wantError(t, err); e.Code != backends.NotFound {
			t.Errorf("got %v", e)
		}
		time.Sleep(6 * time.Second) // of the bubble's clock
		if _, err := c.GetMachine(t.Context(), m.ID); err != nil {
			t.Error(err)
		}
	})
}

func TestAnswerWithoutTags(t *testing.T) {
	cloud := emulated.New(emulated.Options{})
	c := scripted(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			return always(jsonAnswer(202, `{"droplet":{"id":4711,"name":"web-0","status":"new","tags":[]},"links":{}}`)).RoundTrip(r)
		}
		return emulator.Transport(cloud).RoundTrip(r)
	}))
	m := made(t, c, func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web"} })
	if m.Marks != testSpec().Marks || m.Labels["role"] != "web" {
		t.Errorf("got %+v", m)
	}
}

func TestMadeTagsAreExactlyThese(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	made(t, c, func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web"} })
	got := cloud.Droplets()[0].Tags
	slices.Sort(got)
	want := []string{
		"better-compute", "better-compute:account:pacct_0123456789abcdefghjkmnpqrs", "better-compute:claim:c0ffee",
		"better-compute:digest:iabcdef-o123456-r99zzzz", "better-compute:key:inst_0123456789abcdefghjkmnpqrs",
		"better-compute:pool:pool_0123456789abcdefghjkmnpqrs", "role:web",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
