// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func TestOffers(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	cloud.SetSize("c-2", "nyc3")
	offers, err := c.Offers(t.Context(), backends.OfferQuery{Region: "fra1"})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]backends.Offer{}
	for _, o := range offers {
		byID[o.ID] = o
		if o.Region != "fra1" || o.Kind != backends.KindVPS || o.PricePerHour == nil || o.Currency != "USD" || o.DiskGiB == 0 || !o.Available {
			t.Errorf("malformed: %+v", o)
		}
	}
	if !slices.IsSortedFunc(offers, func(a, b backends.Offer) int { return a.PricePerHour.Cmp(b.PricePerHour) }) {
		t.Error("not by price")
	}
	// 0.00893 as the API writes it, not the float next to it.
	if o := byID["s-1vcpu-1gb"]; o.PricePerHour == nil || o.PricePerHour.Cmp(big.NewRat(893, 100000)) != 0 || o.VCPU != 1 || o.MemoryGiB != 1 || o.DiskGiB != 25 {
		t.Errorf("s-1vcpu-1gb: %+v", o)
	}
	if o := byID["s-1vcpu-512mb-10gb"]; o.MemoryGiB != 0.5 {
		t.Errorf("512 MB: %+v", o)
	}
	for _, id := range []string{"c-2", "s-3vcpu-1gb", "gpu-h100x1-80gb"} {
		if _, ok := byID[id]; ok {
			t.Errorf("%s is offered in fra1", id)
		}
	}
	gpus, err := c.Offers(t.Context(), backends.OfferQuery{GPUModel: "nvidia_h100", MinGPUs: 2})
	if err != nil || len(gpus) != 1 || gpus[0].ID != "gpu-h100x8-640gb" || gpus[0].Region != "nyc2" ||
		!slices.Equal(gpus[0].GPUs, []backends.GPU{{Model: "nvidia_h100", Count: 8}}) {
		t.Errorf("GPUs: %+v, %v", gpus, err)
	}
	for name, q := range map[string]backends.OfferQuery{
		"metal": {Kind: backends.KindMetal}, "many": {MinVCPU: 1_000_000}, "region": {Region: "moon"}, "model": {GPUModel: "x"},
	} {
		if got, err := c.Offers(t.Context(), q); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// What isn't sold any more still has a price where it runs.
	old, err := c.Offers(t.Context(), backends.OfferQuery{Region: "fra1", Withdrawn: true})
	i := slices.IndexFunc(old, func(o backends.Offer) bool { return o.ID == "c-2" })
	if err != nil || i < 0 || old[i].Available || old[i].PricePerHour == nil {
		t.Errorf("withdrawn: %v, %v", old, err)
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"GET /v2/sizes": 1, "GET /v2/regions": 1}) {
		t.Errorf("calls %v", got)
	}
}

func TestOffersOfTheAccountsRegions(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{}, backends.Values{"region": "fra1", "regions": []any{"fra1", "ams3"}})
	cloud.SetRegion("ams3", false)
	offers, err := c.Offers(t.Context(), backends.OfferQuery{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range offers {
		seen[o.Region] = true
		if o.Available != (o.Region == "fra1") {
			t.Errorf("%s in %s: available %v", o.ID, o.Region, o.Available)
		}
	}
	if !maps.Equal(seen, map[string]bool{"fra1": true, "ams3": true}) {
		t.Errorf("regions %v", seen)
	}
}

func TestCheckMachine(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{}, backends.Values{"regions": []any{"fra1", "ams3", "nyc2", "nyc3", "nowhere"}})
	vpc := cloud.AddVPC("main", "fra1")
	elsewhere := cloud.AddVPC("other", "nyc3")
	key := makeKey(t, cloud, "laptop")
	cloud.SetRegion("nyc3", false)
	cloud.SetSize("c-2", "nyc2")
	cloud.AddImage(emulated.Image{Slug: "large-x64", MinDisk: 200})
	cloud.RetireImage("debian-12-x64")
	cloud.ClearCalls()
	tests := map[string]struct {
		change func(*backends.MachineSpec)
		path   string // "": no issue
		code   backends.Code
		says   []string // parts of message and remedy
	}{
		"good":           {change: func(*backends.MachineSpec) {}},
		"nothing known":  {change: func(s *backends.MachineSpec) { *s = backends.MachineSpec{} }},
		"unknown offer":  {func(s *backends.MachineSpec) { s.Offer = "s-1vcpu-1g" }, "offer", backends.InvalidInput, []string{`"s-1vcpu-1g"`, "s-1vcpu-1gb"}},
		"absurd offer":   {func(s *backends.MachineSpec) { s.Offer = "t3.micro" }, "offer", backends.InvalidInput, []string{"s-1vcpu-512mb-10gb"}},
		"elsewhere":      {func(s *backends.MachineSpec) { s.Offer = "c-2" }, "offer", backends.InvalidInput, []string{"not offered in fra1", "offered in nyc2; in fra1 use"}},
		"nowhere":        {func(s *backends.MachineSpec) { s.Offer = "s-3vcpu-1gb" }, "offer", backends.InvalidInput, []string{"In fra1 use s-4vcpu-8gb"}},
		"GPU elsewhere":  {func(s *backends.MachineSpec) { s.Offer = "gpu-h100x8-640gb" }, "offer", backends.InvalidInput, []string{"nyc2"}},
		"closed region":  {func(s *backends.MachineSpec) { s.Region = "nyc3" }, "region", backends.CapacityUnavailable, []string{"nyc3 takes no new Droplets"}},
		"unknown region": {func(s *backends.MachineSpec) { s.Region = "nowhere" }, "region", backends.InvalidInput, []string{"no region", "ams3, fra1"}},
		"not ours":       {func(s *backends.MachineSpec) { s.Region = "lon1" }, "region", backends.InvalidInput, []string{"account's regions", "ams3, fra1"}},
		"region alone":   {func(s *backends.MachineSpec) { s.Region, s.Offer, s.Image = "moon", "", "" }, "region", backends.InvalidInput, nil},
		"offer alone":    {change: func(s *backends.MachineSpec) { s.Region = "" }},
		"unknown image":  {func(s *backends.MachineSpec) { s.Image = "ubuntu-24-04" }, "image", backends.InvalidInput, []string{"ubuntu-24-04-x64"}},
		"odd image":      {func(s *backends.MachineSpec) { s.Image = "a/../b?c" }, "image", backends.InvalidInput, nil},
		"unknown id":     {func(s *backends.MachineSpec) { s.Image = "4" }, "image", backends.InvalidInput, nil},
		"image id":       {change: func(s *backends.MachineSpec) { s.Image = "195932981" }},
		"image's disk":   {func(s *backends.MachineSpec) { s.Image = "large-x64" }, "image", backends.InvalidInput, []string{"200 GB", "25 GB"}},
		"retired image":  {func(s *backends.MachineSpec) { s.Image = "136681983" }, "image", backends.InvalidInput, []string{"retired"}},
		"VPC":            {change: func(s *backends.MachineSpec) { s.Network = vpc }},
		"VPC's region":   {func(s *backends.MachineSpec) { s.Network = elsewhere }, "network_id", backends.InvalidInput, []string{"is in nyc3", "in fra1"}},
		"unknown VPC": {
			func(s *backends.MachineSpec) { s.Network = "760e09ef-dc84-11e8-981e-3cfdfeaae000" }, "network_id", backends.InvalidInput, []string{"no VPC 760e09ef", "digitalocean_vpc.NAME.id"},
		},
		"VPC name": {func(s *backends.MachineSpec) { s.Network = "main" }, "network_id", backends.InvalidInput, []string{"UUID"}},
		"keys": {change: func(s *backends.MachineSpec) {
			s.Options = backends.Values{"ssh_key_ids": []any{key.id, key.fingerprint}}
		}},
		"unknown key": {func(s *backends.MachineSpec) { s.Options = backends.Values{"ssh_key_ids": []any{key.id, "4711"}} }, "digitalocean.ssh_key_ids[1]", backends.InvalidInput, []string{"no SSH key 4711"}},
		"unknown print": {func(s *backends.MachineSpec) {
			s.Options = backends.Values{"ssh_key_ids": []any{"3b:16:e4:bf:8b:00:8b:b8:59:8c:a9:d3:f0:19:fa:45"}}
		}, "digitalocean.ssh_key_ids[0]", backends.InvalidInput, []string{"no SSH key"}},
		"capitals":  {func(s *backends.MachineSpec) { s.Name = "Web-0" }, "name", backends.InvalidInput, []string{`"Web-0"`}},
		"long name": {func(s *backends.MachineSpec) { s.Name = strings.Repeat("a", 64) }, "name", backends.InvalidInput, nil},
		"our label": {func(s *backends.MachineSpec) { s.Labels = map[string]string{"better-compute": "x"} }, "labels", backends.InvalidInput, []string{"reserved"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			tt.change(&spec)
			_, issues, err := c.CheckMachine(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if tt.path == "" {
				if len(issues) != 0 {
					t.Fatalf("issues %v", issues)
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

type sshKey struct{ id, fingerprint string }

func makeKey(t *testing.T, cloud *emulated.Service, name string) sshKey {
	t.Helper()
	got := send(t, cloud, "POST", "/v2/account/keys", map[string]any{
		"name": name, "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJldHRlcmNvbXB1dGUgdGVzdCBrZXkgMDAwMDAwMDAx " + name,
	})
	return sshKey{fmt.Sprintf("%.0f", field[float64](t, got, "ssh_key", "id")), field[string](t, got, "ssh_key", "fingerprint")}
}

// What is asked of the cloud for one check is asked once in ten minutes, and the
// keys, whose list is limited to ten calls a minute, together.
func TestChecksShareTheirCalls(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	key := makeKey(t, cloud, "laptop")
	vpc := cloud.AddVPC("main", "fra1")
	cloud.ClearCalls()
	for i := range 20 {
		spec := testSpec()
		spec.Name, spec.Network = fmt.Sprintf("web-%d", i), vpc
		spec.Options = backends.Values{"ssh_key_ids": []any{key.id, key.fingerprint}}
		got, issues, err := c.CheckMachine(t.Context(), spec)
		if err != nil || len(issues) > 0 {
			t.Fatal(issues, err)
		}
		if got.ImageID != "195932981" || got.Offer == nil || got.Offer.PricePerHour == nil {
			t.Fatalf("got %+v", got)
		}
	}
	want := map[string]int{
		"GET /v2/sizes": 1, "GET /v2/regions": 1, "GET /v2/images/ubuntu-24-04-x64": 1, "GET /v2/vpcs/ID": 1, "GET /v2/account/keys": 1,
	}
	if got := counts(cloud); !maps.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

// A token with custom scopes may not read VPCs or keys: that says nothing about the
// wish. One that is refused altogether does.
func TestLookUpsThatAreNotAllowed(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	for _, path := range []string{"/vpcs/*", "/account/keys"} {
		if err := cloud.AddFault(emulator.Rule{Service: "digitalocean", Method: "GET", Path: path, Kind: emulator.KindStatus, Status: 403, Times: 100}); err != nil {
			t.Fatal(err)
		}
	}
	spec := testSpec()
	spec.Network = "760e09ef-dc84-11e8-981e-3cfdfeaae000"
	spec.Options = backends.Values{"ssh_key_ids": []any{"4711"}}
	if _, issues, err := c.CheckMachine(t.Context(), spec); err != nil || len(issues) > 0 {
		t.Errorf("%v, %v", issues, err)
	}
	strict := clientOf(t, emulator.Transport(emulated.New(emulated.Options{Projects: emulator.Projects{"right": "a"}})), &fixedSecrets{token: testToken})
	spec.Offer, spec.Image, spec.Region = "", "", ""
	if _, _, err := strict.CheckMachine(t.Context(), spec); !backends.HasReason(err, backends.ReasonCredentials) {
		t.Errorf("got %v", err)
	}
}

// What no catalog is needed for is told without a call, and by CheckMachine too when
// the catalog can't be read.
func TestCheckFormMakesNoCall(t *testing.T) {
	s := always(answer{status: 500})
	c := clientOf(t, s, &fixedSecrets{err: backends.Errorf(backends.InvalidConfig, "no secret")})
	spec := testSpec()
	spec.Name, spec.Labels, spec.Network = "Web", map[string]string{"a.b": "x"}, "main"
	spec.UserData = strings.Repeat("x", 65<<10)
	spec.Options = backends.Values{"ssh_key_ids": []any{"1", "two", backends.Unknown}, "backup_policy": backends.Values{"plan": "daily"}}
	paths := func(issues []*backends.Error) string {
		var out []string
		for _, e := range issues {
			out = append(out, e.Path.String())
		}
		return strings.Join(out, " ")
	}
	const want = "digitalocean.ssh_key_ids[1] name network_id digitalocean.backup_policy labels "
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

func TestCheckReportsEverythingAtOnce(t *testing.T) {
	c, _ := emulatedClient(t, emulated.Options{})
	spec := testSpec()
	spec.Name, spec.Offer, spec.Image = "Web", "nope", "nope"
	spec.Network = "760e09ef-dc84-11e8-981e-3cfdfeaae000"
	spec.Labels = map[string]string{"a.b": "x", "ok": "not ok"}
	_, issues, err := c.CheckMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range issues {
		paths = append(paths, e.Path.String())
	}
	if got := strings.Join(paths, " "); got != "name labels labels network_id offer image" {
		t.Errorf("got %s", got)
	}
}

func TestUserDataIsMeasuredAsSent(t *testing.T) {
	c := scripted(t, always(answer{status: 500}))
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJldHRlcmNvbXB1dGU test"
	for name, tt := range map[string]struct {
		userData string
		keys     []string
		says     string
	}{
		"64 KiB":            {"#!" + strings.Repeat("x", 64<<10-2), nil, ""},
		"one byte more":     {"#!" + strings.Repeat("x", 64<<10-1), nil, "65537 bytes"},
		"keys make it long": {"#!" + strings.Repeat("x\n", 32<<10-10), []string{key}, "too long"},
		"keys don't fit":    {"plain text", []string{key}, "ssh_keys"},
		"not UTF-8":         {"#!\xff", nil, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.UserData, spec.SSHKeys = tt.userData, tt.keys
			issues := c.CheckForm(spec)
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
