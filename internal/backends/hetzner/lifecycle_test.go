// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

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

func TestMarkIsOneCallAndKeepsForeignLabels(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c, func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web", "csi/x": ""} })
	cloud.ClearCalls()
	marks := m.Marks
	marks.Complete, marks.Claim = true, "another"
	m, err := c.MarkMachine(t.Context(), m, marks)
	if err != nil || m.Marks != marks {
		t.Fatalf("got %+v, %v", m, err)
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"PUT /v1/servers/ID": 1}) {
		t.Errorf("calls %v", got)
	}
	labels := cloud.Servers()[0].Labels
	if labels["role"] != "web" || labels["better-compute.io/claim"] != "another" || labels["better-compute.io/complete"] != "true" || len(labels) != 9 {
		t.Errorf("labels %v", labels)
	}
	if m, err = c.MarkMachine(t.Context(), m, backends.Marks{}); err != nil || len(m.Labels) != 2 {
		t.Errorf("unmarked: %v, %v", m.Labels, err)
	}
}

func TestListsReadAllPages(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for i := range 120 {
		made(t, c, func(s *backends.MachineSpec) {
			s.Name, s.Marks.Key = fmt.Sprintf("web-%d", i), fmt.Sprintf("inst_%d", i)
			if i%2 == 1 {
				s.Marks.Pool = "pool_other"
			}
		})
	}
	stranger := made(t, c, func(s *backends.MachineSpec) { s.Name, s.Marks = "stranger", backends.Marks{} })
	cloud.ClearCalls()
	all, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Account: testSpec().Marks.Account})
	if err != nil || len(all) != 120 || counts(cloud)["GET /v1/servers"] != 3 {
		t.Errorf("%d machines in %v, %v", len(all), counts(cloud), err)
	}
	seen := map[string]bool{stranger.ID: true}
	for _, m := range all {
		if seen[m.ID] || !m.Marks.Managed {
			t.Errorf("twice or a stranger: %s", m.ID)
		}
		seen[m.ID] = true
	}
	cloud.ClearCalls()
	some, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: "pool_other"})
	if err != nil || len(some) != 60 || counts(cloud)["GET /v1/servers"] != 2 {
		t.Errorf("%d machines in %v, %v", len(some), counts(cloud), err)
	}
	found, err := c.FindMachines(t.Context(), "inst_7")
	if err != nil || len(found) != 1 || found[0].Name != "web-7" {
		t.Errorf("found %v, %v", found, err)
	}
	for _, key := range []string{"inst_none", "a,b", ""} {
		if found, err := c.FindMachines(t.Context(), key); err != nil || len(found) != 0 {
			t.Errorf("%q: found %v, %v", key, found, err)
		}
	}
}

func TestFindGivesTheOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := emulatedClient(t, emulated.Options{})
		first := made(t, c, func(s *backends.MachineSpec) { s.Name = "zz" })
		time.Sleep(time.Hour) // of the bubble's clock
		second := made(t, c, func(s *backends.MachineSpec) { s.Name = "aa" })
		found, err := c.FindMachines(t.Context(), first.Marks.Key)
		if err != nil || len(found) != 2 || found[0].ID != first.ID || found[1].ID != second.ID {
			t.Errorf("found %v, %v", found, err)
		}
	})
}

func TestOddListsAreNoEmptyLists(t *testing.T) {
	for name, body := range map[string]string{
		"empty object":  `{}`,
		"null":          `{"servers":null}`,
		"no pagination": `{"servers":[]}`,
		"no id":         `{"servers":[{"name":"x"}],"meta":{"pagination":{"page":1,"per_page":50}}}`,
		"endless":       `{"servers":[],"meta":{"pagination":{"page":1,"per_page":50,"next_page":2,"last_page":2000000000}}}`,
		"a string":      `{"servers":"none","meta":{"pagination":{"page":1,"per_page":50}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clientOf(t, always(jsonAnswer(200, body)), &fixedSecrets{token: testToken})
				got, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: "pool_x"})
				if e := wantError(t, err); e.Code != backends.ProviderError || got != nil {
					t.Errorf("got %v, %v", got, err)
				}
			})
		})
	}
	// Both spellings of a last page are one: next_page null, last_page null or 1.
	for _, last := range []string{"null", "1"} {
		c := clientOf(t, always(jsonAnswer(200, `{"servers":[{"id":1}],"meta":{"pagination":{"page":1,"per_page":50,"next_page":null,"last_page":`+last+`}}}`)), &fixedSecrets{token: testToken})
		if got, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{Pool: "pool_x"}); err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", last, got, err)
		}
	}
}

func TestListWithoutALastPageIsWalked(t *testing.T) {
	s := &script{answer: func(r *http.Request, _ int) answer {
		number, next := r.URL.Query().Get("page"), map[string]string{"1": "2", "2": "3", "3": "null"}
		return jsonAnswer(200, fmt.Sprintf(`{"servers":[{"id":%s}],"meta":{"pagination":{"page":%s,"per_page":1,"next_page":%s,"last_page":null}}}`,
			number, number, next[number]))
	}}
	got, err := backends.ListAll(t.Context(), clientOf(t, s, &fixedSecrets{token: testToken}).ListMachines, backends.Filter{Pool: "pool_x"})
	if err != nil || len(got) != 3 || len(s.requests) != 3 {
		t.Errorf("got %v, %v after %v", got, err, s.requests)
	}
}

func TestListWithoutAnEndIsGivenUp(t *testing.T) {
	for name, servers := range map[string]string{"full pages": `{"id":1}`, "empty pages": ""} {
		s := &script{answer: func(r *http.Request, _ int) answer {
			number, err := strconv.Atoi(r.URL.Query().Get("page"))
			if err != nil {
				t.Error(err)
			}
			return jsonAnswer(200, fmt.Sprintf(`{"servers":[%s],"meta":{"pagination":{"page":%d,"per_page":1,"next_page":%d,"last_page":null}}}`,
				servers, number, number+1))
		}}
		_, err := backends.ListAll(t.Context(), clientOf(t, s, &fixedSecrets{token: testToken}).ListMachines, backends.Filter{Pool: "pool_x"})
		if e := wantError(t, err); e.Code != backends.ProviderError || len(s.requests) > maxPages+1 {
			t.Errorf("%s: %v after %d requests", name, err, len(s.requests))
		}
	}
}

func TestMachineOfAnOddServer(t *testing.T) {
	body := `{"server":{"id":4711,"name":"x","status":"frozen","public_net":{"ipv4":null,"ipv6":null},"private_net":null,
		"server_type":null,"location":null,"image":null,"iso":null,"labels":null,"protection":null}}`
	m, err := clientOf(t, always(jsonAnswer(200, body)), &fixedSecrets{token: testToken}).GetMachine(t.Context(), "4711")
	if err != nil {
		t.Fatal(err)
	}
	if m.State != backends.StateUnknown || !strings.Contains(m.Message, "frozen") || m.ImageID != "" || m.Network != "" ||
		len(m.Addresses) != 0 || m.Offer != "" || m.Region != "" || m.Marks != (backends.Marks{}) {
		t.Errorf("got %+v", m)
	}
}

func FuzzServerAnswer(f *testing.F) {
	f.Add(`{"server":{"id":4711,"public_net":{"ipv6":{"ip":"2001:db8::/64"}},"private_net":[{"network":1,"ip":"10.0.0.2"}]}}`)
	f.Add(`{"server":{"id":4711,"public_net":{"ipv6":{"ip":"nonsense"},"ipv4":{"ip":"2001:db8::1"}}}}`)
	f.Add(`{"server":{"id":4711,"private_net":[null],"image":{},"server_type":{"locations":[null],"prices":[null]}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		c := clientOf(t, always(jsonAnswer(200, body)), &fixedSecrets{token: testToken})
		synctest.Test(t, func(t *testing.T) {
			m, err := c.GetMachine(t.Context(), "4711")
			if err == nil && m.ID != "4711" {
				t.Errorf("got %+v", m)
			}
		})
	})
}

func TestStates(t *testing.T) {
	for status, want := range map[hcloud.ServerStatus]backends.State{
		"running": backends.StateRunning, "initializing": backends.StatePending, "starting": backends.StatePending,
		"stopping": backends.StatePending, "off": backends.StateStopped, "deleting": backends.StateDeleting,
		"migrating": backends.StatePending, "rebuilding": backends.StatePending, "unknown": backends.StateUnknown,
		"": backends.StateUnknown, "brand-new": backends.StateUnknown,
	} {
		state, message := stateOf(status)
		if state != want || (message != "") != (want == backends.StateUnknown) {
			t.Errorf("%q: %s, %q", status, state, message)
		}
	}
}

func TestPower(t *testing.T) {
	for action, want := range map[backends.PowerAction]string{
		backends.PowerOn: "poweron", backends.PowerOff: "poweroff", backends.PowerGracefulOff: "shutdown",
		backends.PowerReset: "reset", backends.PowerCycle: "reset", backends.PowerGracefulRestart: "reboot",
	} {
		c, cloud := emulatedClient(t, emulated.Options{})
		m := made(t, c)
		cloud.ClearCalls()
		if err := c.Power(t.Context(), m, action); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v1/servers/ID/actions/" + want: 1}) {
			t.Errorf("%s: %v", action, got)
		}
	}
	c, cloud := emulatedClient(t, emulated.Options{})
	if e := wantError(t, c.Power(t.Context(), backends.Machine{ID: "1"}, backends.PowerNMI)); e.Code != backends.Unsupported || len(cloud.Calls()) != 0 {
		t.Errorf("nmi: %v", e)
	}
	if e := wantError(t, c.Power(t.Context(), backends.Machine{ID: "1"}, backends.PowerOn)); e.Code != backends.NotFound {
		t.Errorf("gone: %v", e)
	}
}

func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{DeleteTime: time.Minute})
		m := made(t, c)
		if err := c.Protect(t.Context(), m, true); err != nil {
			t.Fatal(err)
		}
		if got, err := c.GetMachine(t.Context(), m.ID); err != nil || !got.Protected {
			t.Errorf("protected: %v, %v", got.Protected, err)
		}
		if e := wantError(t, c.DeleteMachine(t.Context(), m)); e.Reason != backends.ReasonProtected {
			t.Errorf("got %v", e)
		}
		if err := c.Protect(t.Context(), m, false); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got, err := c.GetMachine(t.Context(), m.ID); err != nil || got.State != backends.StateDeleting {
			t.Errorf("while it goes: %v, %v", got.State, err)
		}
		time.Sleep(2 * time.Minute) // of the bubble's clock
		_, err := c.GetMachine(t.Context(), m.ID)
		if e := wantError(t, err); e.Code != backends.NotFound || len(cloud.Servers()) != 0 {
			t.Errorf("got %v", e)
		}
		if e := wantError(t, c.DeleteMachine(t.Context(), m)); e.Code != backends.NotFound {
			t.Errorf("got %v", e)
		}
	})
}

func TestMachineIDsAreNumbers(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for _, id := range []string{"", "web-0", "-1", "1/actions", "07"} {
		_, err := c.GetMachine(t.Context(), id)
		if e := wantError(t, err); e.Code != backends.InvalidInput || len(cloud.Calls()) != 0 {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestDiagnose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: time.Minute})
		rule := emulator.Rule{Service: "hetzner", Method: "POST", Path: "/servers", Kind: emulator.KindFailAction}
		if err := cloud.AddFault(rule); err != nil {
			t.Fatal(err)
		}
		m := made(t, c)
		time.Sleep(2 * time.Minute) // of the bubble's clock
		e := wantError(t, c.Diagnose(t.Context(), m))
		if e.Reason != backends.ReasonAction || !strings.Contains(e.Message, "create_server") {
			t.Errorf("got %v", e)
		}
		if e := wantError(t, c.Diagnose(t.Context(), backends.Machine{ID: "999999"})); e.Code != backends.NotFound {
			t.Errorf("gone: %v", e)
		}
	})
}

func TestNewestFailure(t *testing.T) {
	action := func(id int64, command string, status hcloud.ActionStatus) *hcloud.Action {
		return &hcloud.Action{ID: id, Command: command, Status: status}
	}
	const failed, good, running = hcloud.ActionStatusError, hcloud.ActionStatusSuccess, hcloud.ActionStatusRunning
	for name, tt := range map[string]struct {
		actions []*hcloud.Action
		want    int64
	}{
		"none":               {},
		"all well":           {[]*hcloud.Action{action(1, "create_server", good)}, 0},
		"failed start":       {[]*hcloud.Action{action(1, "create_server", good), action(2, "start_server", failed)}, 2},
		"failed creation":    {[]*hcloud.Action{action(1, "create_server", failed), action(2, "start_server", failed)}, 1},
		"mended":             {[]*hcloud.Action{action(2, "start_server", failed), action(3, "start_server", good)}, 0},
		"mended by a reset":  {[]*hcloud.Action{action(2, "start_server", failed), action(3, "reset_server", good)}, 0},
		"tried again":        {[]*hcloud.Action{action(2, "start_server", failed), action(3, "start_server", running)}, 0},
		"another kind since": {[]*hcloud.Action{action(2, "start_server", failed), action(3, "enable_backup", good)}, 2},
		"the newer of two":   {[]*hcloud.Action{action(5, "enable_backup", failed), action(4, "start_server", failed)}, 5},
	} {
		var got int64
		if a := newestFailure(tt.actions, lifecycle); a != nil {
			got = a.ID
		}
		if got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestFailedActionOfAWait(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c)
	rule := emulator.Rule{Service: "hetzner", Method: "POST", Path: "/servers/*/actions/change_protection", Kind: emulator.KindFailAction}
	if err := cloud.AddFault(rule); err != nil {
		t.Fatal(err)
	}
	e := wantError(t, c.Protect(t.Context(), m, true))
	if e.Reason != backends.ReasonAction || e.Details["command"] != "change_protection" {
		t.Errorf("got %+v", e)
	}
}

func TestProve(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	if err := c.Prove(t.Context()); err != nil || len(cloud.Calls()) != 1 {
		t.Errorf("%v, %v", err, cloud.Calls())
	}
	strict := emulated.New(emulated.Options{Projects: emulator.Projects{"right": "a"}})
	bad := clientOf(t, emulator.Transport(strict), &fixedSecrets{token: testToken})
	if e := wantError(t, bad.Prove(t.Context())); e.Reason != backends.ReasonCredentials || e.Details["status"] != 401 {
		t.Errorf("got %v", e)
	}
}
