// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

func TestOffers(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{Currency: "USD"})
	offers, err := c.Offers(t.Context(), backends.OfferQuery{Region: "hel1"})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]backends.Offer{}
	for _, o := range offers {
		byID[o.ID] = o
		if o.Region != "hel1" || o.Kind != backends.KindVPS || o.PricePerHour == nil || o.Currency != "USD" || o.DiskGiB == 0 {
			t.Errorf("malformed: %+v", o)
		}
	}
	if !slices.IsSortedFunc(offers, func(a, b backends.Offer) int { return a.PricePerHour.Cmp(b.PricePerHour) }) {
		t.Error("not by price")
	}
	// 0.0056 net with 19 % tax is exactly 0.006664: no float is on the way.
	if o := byID["cx23"]; o.PricePerHour.Cmp(big.NewRat(6664, 1000000)) != 0 || !o.Available || o.VCPU != 2 || o.MemoryGiB != 4 {
		t.Errorf("cx23: %+v", o)
	}
	if o, ok := byID["cax41"]; !ok || o.Available {
		t.Errorf("out of stock: %+v", o)
	}
	if _, ok := byID["cx22"]; ok {
		t.Error("a deprecated type is offered")
	}
	sin, err := c.Offers(t.Context(), backends.OfferQuery{Region: "sin"})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(sin, func(o backends.Offer) bool { return o.ID == "cpx21" }) {
		t.Error("a price without a location makes an offer")
	}
	for name, q := range map[string]backends.OfferQuery{
		"gpu": {GPUModel: "H100"}, "gpus": {MinGPUs: 1}, "metal": {Kind: backends.KindMetal},
		"many": {MinVCPU: 1_000_000}, "region": {Region: "moon"},
	} {
		if got, err := c.Offers(t.Context(), q); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"GET /v1/server_types": 1, "GET /v1/pricing": 1}) {
		t.Errorf("calls %v", got)
	}
}

func TestCheckMachine(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{Snapshots: []emulated.Snapshot{
		{ID: 990, Description: "large", Architecture: "x86", DiskSize: 300},
	}})
	net := fmt.Sprint(makeNetwork(t, cloud, "main", "10.0.0.0/16", "10.0.1.0/24"))
	cloud.ClearCalls()
	tests := map[string]struct {
		change  func(*backends.MachineSpec)
		path    string // "": no issue
		code    backends.Code
		says    []string // parts of message and remedy
		warning string
	}{
		"good":               {change: func(*backends.MachineSpec) {}},
		"nothing known":      {change: func(s *backends.MachineSpec) { *s = backends.MachineSpec{} }},
		"unknown offer":      {func(s *backends.MachineSpec) { s.Offer = "cx32" }, "offer", backends.InvalidInput, []string{`"cx32"`, "cx33", "cx23"}, ""},
		"absurd offer":       {func(s *backends.MachineSpec) { s.Offer = "t3.micro-large" }, "offer", backends.InvalidInput, []string{"cx23"}, ""},
		"offer elsewhere":    {func(s *backends.MachineSpec) { s.Offer = "cpx31" }, "offer", backends.InvalidInput, []string{"not offered in fsn1", "ash, hil or sin", "in fsn1 use"}, ""},
		"out of stock":       {func(s *backends.MachineSpec) { s.Offer, s.Region = "cax41", "hel1" }, "offer", backends.CapacityUnavailable, []string{"out of stock in hel1"}, ""},
		"withdrawn offer":    {func(s *backends.MachineSpec) { s.Offer = "cpx11" }, "offer", backends.InvalidInput, []string{"withdrawn from fsn1", "cx23"}, ""},
		"deprecated offer":   {change: func(s *backends.MachineSpec) { s.Offer = "cx22" }, warning: "cx22 is deprecated"},
		"unknown region":     {func(s *backends.MachineSpec) { s.Region = "fns1" }, "region", backends.InvalidInput, []string{"fsn1", "hel1", "sin"}, ""},
		"region alone":       {func(s *backends.MachineSpec) { s.Region, s.Offer = "moon", "" }, "region", backends.InvalidInput, nil, ""},
		"offer alone":        {change: func(s *backends.MachineSpec) { s.Region = "" }},
		"unknown image":      {func(s *backends.MachineSpec) { s.Image = "ubuntu-24.4" }, "image", backends.InvalidInput, []string{"ubuntu-24.04"}, ""},
		"unknown image id":   {func(s *backends.MachineSpec) { s.Image = "4" }, "image", backends.InvalidInput, nil, ""},
		"image id":           {change: func(s *backends.MachineSpec) { s.Image = "161547269" }},
		"other architecture": {func(s *backends.MachineSpec) { s.Image = "161547270" }, "image", backends.InvalidInput, []string{"arm only", "cx23 is x86"}, ""},
		"image too large":    {func(s *backends.MachineSpec) { s.Image = "990" }, "image", backends.InvalidInput, []string{"300 GB", "40 GB"}, ""},
		"deprecated image":   {change: func(s *backends.MachineSpec) { s.Image = "ubuntu-20.04" }, warning: `"ubuntu-20.04" is deprecated`},
		"capitals":           {func(s *backends.MachineSpec) { s.Name = "Web-0" }, "name", backends.InvalidInput, []string{`"Web-0"`}, ""},
		"underscore":         {func(s *backends.MachineSpec) { s.Name = "web_0" }, "name", backends.InvalidInput, nil, ""},
		"unicode name":       {func(s *backends.MachineSpec) { s.Name = "wéb" }, "name", backends.InvalidInput, nil, ""},
		"long name":          {func(s *backends.MachineSpec) { s.Name = strings.Repeat("a", 64) }, "name", backends.InvalidInput, nil, ""},
		"longest name":       {change: func(s *backends.MachineSpec) { s.Name = strings.Repeat("a", 63) }},
		"empty part":         {func(s *backends.MachineSpec) { s.Name = "web..example" }, "name", backends.InvalidInput, nil, ""},
		"network name":       {func(s *backends.MachineSpec) { s.Network = "main" }, "network_id", backends.InvalidInput, nil, ""},
		"our label":          {func(s *backends.MachineSpec) { s.Labels = map[string]string{"better-compute.io/claim": "x"} }, "labels", backends.InvalidInput, []string{"reserved"}, ""},
		"vendor's label":     {func(s *backends.MachineSpec) { s.Labels = map[string]string{"hetzner.cloud/x": ""} }, "labels", backends.InvalidInput, []string{"reserved"}, ""},
		"two networks": {func(s *backends.MachineSpec) {
			s.Network = net
			s.Options = backends.Values{"networks": []any{backends.Values{"network_id": net}}}
		}, "hetzner_cloud.networks", backends.InvalidInput, []string{"exclude"}, ""},
		"a network twice": {func(s *backends.MachineSpec) {
			s.Options = backends.Values{"networks": []any{backends.Values{"network_id": net}, backends.Values{"network_id": net}}}
		}, "hetzner_cloud.networks[1].network_id", backends.InvalidInput, nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			tt.change(&spec)
			got, issues, err := c.CheckMachine(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if tt.path == "" {
				if len(issues) != 0 {
					t.Fatalf("issues %v", issues)
				}
				if all := strings.Join(got.Warnings, " "); !strings.Contains(all, tt.warning) || (tt.warning == "" && all != "") {
					t.Errorf("warnings %q, want %q", all, tt.warning)
				}
				return
			}
			if len(issues) != 1 {
				t.Fatalf("issues %v", issues)
			}
			e := issues[0]
			if e.Path.String() != tt.path || e.Code != tt.code {
				t.Errorf("got %v at %q, want %s at %q", e, e.Path, tt.code, tt.path)
			}
			for _, part := range tt.says {
				if !strings.Contains(e.Message+" "+e.Remedy, part) {
					t.Errorf("%q %q doesn't say %q", e.Message, e.Remedy, part)
				}
			}
		})
	}
	for call := range counts(cloud) {
		if !strings.HasPrefix(call, "GET ") {
			t.Errorf("a check called %s", call)
		}
	}
}

// What no catalog is needed for is told without a call, and by CheckMachine too when
// the catalog can't be read.
func TestCheckFormMakesNoCall(t *testing.T) {
	s := always(answer{status: 500})
	c := clientOf(t, s, &fixedSecrets{err: backends.Errorf(backends.InvalidConfig, "no secret")})
	spec := testSpec()
	spec.Name, spec.Labels, spec.Network = "Web", map[string]string{"-": "x"}, "main"
	spec.UserData = strings.Repeat("x", 33<<10)
	spec.Options = backends.Values{
		"placement_group_id": "one", "firewall_ids": []any{"1", "two", backends.Unknown}, "public_ipv4": false, "public_ipv6": backends.Unknown,
	}
	paths := func(issues []*backends.Error) string {
		var out []string
		for _, e := range issues {
			out = append(out, e.Path.String())
		}
		return strings.Join(out, " ")
	}
	const want = "hetzner_cloud.firewall_ids[1] hetzner_cloud.placement_group_id name network_id labels "
	if got := paths(c.CheckForm(spec)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(s.requests) > 0 {
		t.Errorf("calls %v", s.requests)
	}
	_, issues, err := c.CheckMachine(t.Context(), spec)
	if got := paths(issues); !backends.HasCode(err, backends.InvalidConfig) || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if issues := c.CheckForm(backends.MachineSpec{}); len(issues) > 0 {
		t.Errorf("nothing known: %v", issues)
	}
}

func TestWithdrawnOffersAreListedOnRequest(t *testing.T) {
	const list = `{"server_types":[
		{"id":1,"name":"sold","prices":[{"location":"fsn1","price_hourly":{"net":"1","gross":"1.19"}},{"location":"hel1","price_hourly":{"net":"2","gross":"2.38"}}],
		 "locations":[{"id":1,"name":"fsn1","available":true,"deprecation":null}]},
		{"id":2,"name":"going","prices":[{"location":"fsn1","price_hourly":{"net":"3","gross":"3.57"}}],
		 "locations":[{"id":1,"name":"fsn1","available":true,"deprecation":{"announced":"2020-01-01T00:00:00Z","unavailable_after":"2999-01-01T00:00:00Z"}}]},
		{"id":3,"name":"gone","prices":[{"location":"fsn1","price_hourly":{"net":"4","gross":"4.76"}}],
		 "locations":[{"id":1,"name":"fsn1","available":true,"deprecation":{"announced":"2020-01-01T00:00:00Z","unavailable_after":"2020-02-01T00:00:00Z"}}]}],
		"meta":{"pagination":{"page":1,"per_page":50}}}`
	c := clientOf(t, &script{answer: func(r *http.Request, _ int) answer {
		if strings.HasSuffix(r.URL.Path, "/pricing") {
			return jsonAnswer(200, `{"pricing":{"currency":"EUR"}}`)
		}
		return jsonAnswer(200, list)
	}}, &fixedSecrets{token: testToken})
	for withdrawn, want := range map[bool]string{
		false: "sold@fsn1=1.19 true",
		true:  "sold@fsn1=1.19 true, sold@hel1=2.38 false, going@fsn1=3.57 true, gone@fsn1=4.76 false",
	} {
		offers, err := c.Offers(t.Context(), backends.OfferQuery{Withdrawn: withdrawn})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range offers {
			got = append(got, fmt.Sprintf("%s@%s=%s %v", o.ID, o.Region, o.PricePerHour.FloatString(2), o.Available))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("withdrawn %v: %v, want %s", withdrawn, got, want)
		}
	}
}

func TestCheckReportsEverythingAtOnce(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Name, spec.Offer, spec.Image = "Web", "nope", "nope"
	spec.Labels = map[string]string{"-": "x", "ok": "not ok"}
	_, issues, err := c.CheckMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range issues {
		paths = append(paths, e.Path.String())
	}
	if got := strings.Join(paths, " "); got != "name labels labels offer image" {
		t.Errorf("got %s", got)
	}
}

func TestResolvedOfferAndImage(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Offer = "cax11"
	got, issues, err := c.CheckMachine(t.Context(), spec)
	if err != nil || len(issues) > 0 {
		t.Fatal(issues, err)
	}
	if got.ImageID != "161547270" || got.Offer == nil || got.Offer.Currency != "EUR" || got.Offer.PricePerHour == nil {
		t.Errorf("got %+v", got)
	}
	for range 3 {
		if _, _, err := c.CheckMachine(t.Context(), testSpec()); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"GET /v1/server_types": 1, "GET /v1/pricing": 1, "GET /v1/images": 1}
	if got := counts(cloud); !maps.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

func TestUserDataIsMeasuredAsSent(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJldHRlcmNvbXB1dGU test"
	for name, tt := range map[string]struct {
		userData string
		keys     []string
		says     string
	}{
		"32 KiB":             {"#!" + strings.Repeat("x", 32<<10-2), nil, ""},
		"one byte more":      {"#!" + strings.Repeat("x", 32<<10-1), nil, "32769 bytes"},
		"100 KiB of unicode": {"#cloud-config\n#" + strings.Repeat("ü", 50<<10), nil, "too long"},
		"keys make it long":  {"#!" + strings.Repeat("x\n", 16<<10-10), []string{key}, "too long"},
		"keys don't fit":     {"plain text", []string{key}, "ssh_keys"},
		"not UTF-8":          {"#!\xff", nil, "UTF-8"},
		"NUL":                {"#!a\x00b", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.UserData, spec.SSHKeys = tt.userData, tt.keys
			_, issues, err := c.CheckMachine(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if tt.says == "" {
				if len(issues) > 0 {
					t.Fatal(issues)
				}
				return
			}
			if len(issues) != 1 || !strings.Contains(issues[0].Message, tt.says) {
				t.Fatalf("got %v", issues)
			}
			// A CLI would print the source line of a top-level attribute.
			if issues[0].Path != nil || strings.Contains(issues[0].Message, "xxxx") {
				t.Errorf("points at %v: %s", issues[0].Path, issues[0].Message)
			}
		})
	}
}

func TestUnreadablePriceMakesNoPrice(t *testing.T) {
	for text, ok := range map[string]bool{
		"0.0052000000000000": true, "12": true, "1/3": false, "1e999999999": false, "-1": false, "": false, ".5": false, "NaN": false,
	} {
		if got := priceForm.MatchString(text); got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
