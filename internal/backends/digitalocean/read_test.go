// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func TestListing(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for i := range 450 {
		made(t, c, func(s *backends.MachineSpec) {
			s.Marks.Key = fmt.Sprintf("inst_%d", i)
			if i%3 == 1 {
				s.Marks.Pool = "pool_other"
			}
		})
	}
	stranger := made(t, c, func(s *backends.MachineSpec) { s.Name, s.Marks = "stranger", backends.Marks{} })
	// One with a pool's tag and not managed isn't one of ours.
	cloud.SetTags(number(t, stranger), []string{"better-compute:pool:pool_other", "better-compute:account:" + testSpec().Marks.Account})
	for name, tt := range map[string]struct {
		filter         backends.Filter
		machines, gets int
	}{
		"account":             {backends.Filter{Account: testSpec().Marks.Account}, 450, 3},
		"pool":                {backends.Filter{Pool: "pool_other"}, 150, 1},
		"both":                {backends.Filter{Account: testSpec().Marks.Account, Pool: "pool_other"}, 150, 1},
		"another's":           {backends.Filter{Account: "pacct_other", Pool: "pool_other"}, 0, 1},
		"everything managed":  {backends.Filter{}, 450, 3},
		"a pool there isn't":  {backends.Filter{Pool: "pool_none"}, 0, 1},
		"what can't be a tag": {backends.Filter{Pool: "pool&x=y"}, 0, 0},
	} {
		cloud.ClearCalls()
		got, err := backends.ListAll(t.Context(), c.ListMachines, tt.filter)
		if err != nil || len(got) != tt.machines || counts(cloud)["GET /v2/droplets"] != tt.gets {
			t.Errorf("%s: %d machines in %v, %v", name, len(got), counts(cloud), err)
		}
		seen := map[string]bool{stranger.ID: true}
		for _, m := range got {
			if seen[m.ID] || !m.Marks.Managed {
				t.Errorf("%s: twice or a stranger: %s", name, m.ID)
			}
			seen[m.ID] = true
		}
	}
}

func TestAPageThatFailsFailsTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		for i := range 401 {
			made(t, c, func(s *backends.MachineSpec) { s.Marks.Key = fmt.Sprintf("inst_%d", i) })
		}
		failing := scripted(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("page") == "2" {
				return always(answer{status: 502}).RoundTrip(r)
			}
			return emulator.Transport(cloud).RoundTrip(r)
		}))
		got, err := backends.ListAll(t.Context(), failing.ListMachines, backends.Filter{Pool: testSpec().Marks.Pool})
		if e := wantError(t, err); e.Details["status"] != 502 || got != nil {
			t.Errorf("%d machines, %v", len(got), err)
		}
	})
}

func TestOddListsAreNoEmptyLists(t *testing.T) {
	for name, body := range map[string]string{
		"empty object": `{}`,
		"no total":     `{"droplets":[],"meta":{}x`,
		"no meta":      `{"droplets":[],"links":{}}`,
		"null meta":    `{"droplets":[],"meta":null}`,
		"other field":  `{"volumes":[],"meta":{"total":0}}`,
		"no id":        `{"droplets":[{"name":"x"}],"meta":{"total":1}}`,
		"endless":      `{"droplets":[{"id":1}],"meta":{"total":2000000000}}`,
		"a string":     `{"droplets":"none","meta":{"total":0}}`,
		"odd links":    `{"droplets":[],"meta":{"total":0},"links":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := backends.ListAll(t.Context(), scripted(t, always(jsonAnswer(200, body))).ListMachines, backends.Filter{Pool: "pool_x"})
				if e := wantError(t, err); e.Code != backends.ProviderError || got != nil {
					t.Errorf("got %v, %v", got, err)
				}
			})
		})
	}
	// A list of nothing may be null, and without links.
	got, err := backends.ListAll(t.Context(), scripted(t, always(jsonAnswer(200, `{"droplets":null,"meta":{"total":0}}`))).ListMachines, backends.Filter{Pool: "pool_x"})
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// Pages are asked for until all are there, however the server says how many there
// are and whatever size it gives them.
func TestPages(t *testing.T) {
	droplets := func(from, n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`{"id":%d,"tags":["better-compute","better-compute:pool:pool_x"]}`, from+i))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	for name, tt := range map[string]struct {
		total, size int
		last        string // in links
		requests    int
		says        int // the total as the answer has it; 0: right
	}{
		"one page":            {total: 3, size: 200, requests: 1},
		"exactly one":         {total: 200, size: 200, requests: 1},
		"by the total":        {total: 401, size: 200, requests: 3},
		"smaller than asked":  {total: 250, size: 100, requests: 3},
		"by the links":        {total: 401, size: 200, last: "https://api.test/v2/droplets?page=3&per_page=200", requests: 3},
		"a total that lags":   {total: 401, size: 200, last: "https://api.test/v2/droplets?page=3&per_page=200", requests: 3, says: 200},
		"links without pages": {total: 3, size: 200, last: "nonsense", requests: 1},
	} {
		s := &script{answer: func(r *http.Request, _ int) answer {
			page, err := strconv.Atoi(r.URL.Query().Get("page"))
			if err != nil || r.URL.Query().Get("per_page") != "200" || r.URL.Query().Get("tag_name") != "better-compute:pool:pool_x" {
				t.Errorf("%s: %s, %v", name, r.URL.RawQuery, err)
			}
			from := (page - 1) * tt.size
			links := `{}`
			if tt.last != "" {
				links = `{"pages":{"last":"` + tt.last + `"}}`
			}
			return jsonAnswer(200, fmt.Sprintf(`{"droplets":%s,"links":%s,"meta":{"total":%d}}`,
				droplets(from+1, max(0, min(tt.size, tt.total-from))), links, cmp.Or(tt.says, tt.total)))
		}}
		got, err := backends.ListAll(t.Context(), scripted(t, s).ListMachines, backends.Filter{Pool: "pool_x"})
		if err != nil || len(got) != tt.total || len(s.requests) != tt.requests {
			t.Errorf("%s: %d machines after %d requests, %v", name, len(got), len(s.requests), err)
		}
	}
}

func TestMachineOfAnOddDroplet(t *testing.T) {
	body := `{"droplet":{"id":4711,"name":"x","status":"frozen","networks":null,"size":null,"size_slug":"","region":null,"image":null,"tags":null,"created_at":"yesterday"}}`
	m, err := scripted(t, always(jsonAnswer(200, body))).GetMachine(t.Context(), "4711")
	if err != nil {
		t.Fatal(err)
	}
	if m.State != backends.StateUnknown || !strings.Contains(m.Message, "frozen") || m.ImageID != "" || m.Network != "" ||
		len(m.Addresses) != 0 || m.Offer != "" || m.Region != "" || m.Marks != (backends.Marks{}) || !m.Created.IsZero() {
		t.Errorf("got %+v", m)
	}
}

// The API lists addresses in no order.
func TestAddressesGoByTheirType(t *testing.T) {
	body := `{"droplet":{"id":4711,"status":"active","networks":{
		"v4":[{"ip_address":"10.114.0.3","type":"private"},{"ip_address":"203.0.113.7","type":"public"},{"ip_address":"nonsense","type":"public"},{"ip_address":"10.0.0.1","type":"brand-new"}],
		"v6":[{"ip_address":"2604:A880:0400:00D1:0000:0000:0001:2001","type":"public"}]}}}`
	m, err := scripted(t, always(jsonAnswer(200, body))).GetMachine(t.Context(), "4711")
	want := []backends.Address{
		{Address: "203.0.113.7", Family: backends.IPv4, Scope: backends.Public},
		{Address: "2604:a880:400:d1::1:2001", Family: backends.IPv6, Scope: backends.Public},
		{Address: "10.114.0.3", Family: backends.IPv4, Scope: backends.Private},
	}
	if err != nil || !slices.Equal(m.Addresses, want) {
		t.Errorf("got %v, %v", m.Addresses, err)
	}
}

func FuzzDropletAnswer(f *testing.F) {
	f.Add(`{"droplet":{"id":4711,"networks":{"v4":[{"ip_address":"10.0.0.2","type":"private"}],"v6":null},"tags":["better-compute:claim:","better-compute"]}}`)
	f.Add(`{"droplet":{"id":4711,"networks":{"v4":[{"ip_address":"0.0.0.0","type":"public"}]},"image":{},"size":{},"region":{}}}`)
	f.Add(`{"droplet":{"id":4711.5}}`)
	f.Fuzz(func(t *testing.T, body string) {
		c := scripted(t, always(jsonAnswer(200, body)))
		synctest.Test(t, func(t *testing.T) {
			m, err := c.GetMachine(t.Context(), "4711")
			if err == nil && m.ID != "4711" {
				t.Errorf("got %+v", m)
			}
		})
	})
}

func TestStates(t *testing.T) {
	for status, want := range map[string]backends.State{
		"new": backends.StatePending, "active": backends.StateRunning, "off": backends.StateStopped,
		"archive": backends.StateUnknown, "": backends.StateUnknown, "brand-new": backends.StateUnknown,
	} {
		// That it is locked says nothing about the state.
		for _, locked := range []bool{false, true} {
			body := fmt.Sprintf(`{"droplet":{"id":4711,"status":%q,"locked":%v}}`, status, locked)
			m, err := scripted(t, always(jsonAnswer(200, body))).GetMachine(t.Context(), "4711")
			if err != nil || m.State != want || (m.Message != "") != (want == backends.StateUnknown) {
				t.Errorf("%q: %s, %q, %v", status, m.State, m.Message, err)
			}
		}
	}
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

func TestProve(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	if err := c.Prove(t.Context()); err != nil || !maps.Equal(counts(cloud), map[string]int{"GET /v2/droplets": 1}) {
		t.Errorf("%v, %v", err, cloud.Calls())
	}
	strict := emulated.New(emulated.Options{Projects: emulator.Projects{"right": "a"}})
	bad := scripted(t, emulator.Transport(strict))
	if e := wantError(t, bad.Prove(t.Context())); e.Reason != backends.ReasonCredentials || e.Details["status"] != 401 {
		t.Errorf("got %v", e)
	}
}
