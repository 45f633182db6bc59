// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

const shareRegion = "nyc2" // one of those that the emulator has shares in

func testShare(vpc string) backends.VolumeSpec {
	marks := testSpec().Marks
	marks.Key, marks.Claim = "pvol_0123456789abcdefghjkmnpqrs", "lu2iok4oqwzxypd7sijt3zmk5e"
	marks.Digest = backends.Digest(marks.Key, map[backends.DigestField]string{
		backends.DigestKind: "shared", backends.DigestRegion: shareRegion, backends.DigestNetwork: vpc,
	})
	return backends.VolumeSpec{
		Name: "data", Kind: backends.SharedVolume, Region: shareRegion, SizeGiB: 50, Network: vpc, Marks: marks,
	}
}

func TestShareForm(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{}, backends.Values{"region": shareRegion, "regions": []any{shareRegion}})
	for name, tt := range map[string]struct {
		change func(*backends.VolumeSpec)
		want   string
	}{
		"good":             {func(*backends.VolumeSpec) {}, ""},
		"under 50 GiB":     {func(s *backends.VolumeSpec) { s.SizeGiB = 49 }, "INVALID_INPUT size_gib size"},
		"size unknown":     {func(s *backends.VolumeSpec) { s.SizeGiB, s.Unknown = 0, []string{"size_gib"} }, ""},
		"another region":   {func(s *backends.VolumeSpec) { s.Region = "atl1" }, "INVALID_INPUT region"},
		"no VPC's id":      {func(s *backends.VolumeSpec) { s.Network = "4711" }, "INVALID_INPUT network_id"},
		"network unknown":  {func(s *backends.VolumeSpec) { s.Network, s.Unknown = "", []string{"network_id"} }, ""},
		"from a snapshot":  {func(s *backends.VolumeSpec) { s.Restores = true }, "UNSUPPORTED from_snapshot snapshots"},
		"labels":           {func(s *backends.VolumeSpec) { s.Labels = map[string]string{"role": "db"} }, "INVALID_INPUT labels"},
		"tier":             {func(s *backends.VolumeSpec) { s.Options = backends.Values{"performance_tier": "high"} }, ""},
		"unknown tier":     {func(s *backends.VolumeSpec) { s.Options = backends.Values{"performance_tier": "low"} }, "INVALID_INPUT digitalocean.performance_tier"},
		"a block volume's": {func(s *backends.VolumeSpec) { s.Options = backends.Values{"tags": []any{"a"}} }, "INVALID_INPUT digitalocean.tags"},
	} {
		spec := testShare("760e09ef-dc84-11e8-981e-3cfdfeaae000")
		tt.change(&spec)
		if got := formIssues(c.SharedVolumes(), spec); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if len(cloud.Calls()) > 0 {
		t.Errorf("the form needed calls: %v", counts(cloud))
	}
}

func TestShareIsCheckedAgainstTheAccountsOptions(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	here, elsewhere := madeVPC(t, cloud, "here", shareRegion), madeVPC(t, cloud, "elsewhere", "atl1")
	for name, tt := range map[string]struct {
		change func(*backends.VolumeSpec)
		want   string
	}{
		"good":                 {func(*backends.VolumeSpec) {}, ""},
		"no shares there":      {func(s *backends.VolumeSpec) { s.Region, s.Network = "fra1", "" }, "region"},
		"too large":            {func(s *backends.VolumeSpec) { s.SizeGiB = 16000 }, "size_gib"},
		"too small for high":   {func(s *backends.VolumeSpec) { s.Options = backends.Values{"performance_tier": "high"} }, "size_gib"},
		"large enough":         {func(s *backends.VolumeSpec) { s.SizeGiB, s.Options = 500, backends.Values{"performance_tier": "high"} }, ""},
		"tier unknown":         {func(s *backends.VolumeSpec) { s.Options = backends.Values{"performance_tier": backends.Unknown} }, ""},
		"VPC of elsewhere":     {func(s *backends.VolumeSpec) { s.Network = elsewhere }, "network_id"},
		"no such VPC":          {func(s *backends.VolumeSpec) { s.Network = "760e09ef-dc84-11e8-981e-3cfdfeaae000" }, "network_id"},
		"form and options too": {func(s *backends.VolumeSpec) { s.SizeGiB, s.Network = 1, elsewhere }, "size_gib network_id"},
	} {
		spec := testShare(here)
		tt.change(&spec)
		issues, err := c.SharedVolumes().Check(t.Context(), spec)
		var at []string
		for _, e := range issues {
			at = append(at, e.Path.String())
			if e.Path.String() == "size_gib" && e.Reason != backends.ReasonSize {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if got := strings.Join(at, " "); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v, want %s", name, issues, err, tt.want)
		}
	}
	if got := counts(cloud)["GET /v2/nfs/options"]; got != 1 {
		t.Errorf("the options were read %d times", got)
	}
	c = scripted(t, always(refusal(403, "forbidden", "You do not have access for the attempted action.")))
	if issues, err := c.SharedVolumes().Check(t.Context(), testShare(here)); err != nil || len(issues) > 0 {
		t.Errorf("a token that may not read the options: %v, %v", issues, err)
	}
}

func TestShareLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 20 * time.Second})
		shares := c.SharedVolumes()
		vpc := madeVPC(t, cloud, "main", shareRegion)
		spec := testShare(vpc)
		cloud.ClearCalls()
		v, err := shares.Make(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v2/nfs": 1}) {
			t.Errorf("calls %v", got)
		}
		m := v.Marks
		if v.State != backends.StatePending || v.Kind != backends.SharedVolume || v.Network != vpc || v.SizeGiB != 50 || v.Mount != nil ||
			v.Region != shareRegion || v.Created.IsZero() || len(v.Machines) > 0 || v.Device != "" {
			t.Errorf("got %+v", v)
		}
		if !m.Managed || !m.Fixed || m.Complete || m.GoesWithMachine || m.Key != spec.Marks.Key || m.Digest != spec.Marks.Digest ||
			m.Claim != spec.Marks.Claim[:backends.FixedClaimLength] {
			t.Errorf("marks %+v of %s", m, v.Name)
		}
		for _, filter := range []backends.Filter{{}, {Pool: spec.Marks.Pool}, {Account: spec.Marks.Account, Pool: spec.Marks.Pool}} {
			if !filter.Holds(m) {
				t.Errorf("%v doesn't hold %+v", filter, m)
			}
		}
		time.Sleep(time.Minute) // of the bubble's clock
		if v = again(t, shares, v); v.State != backends.StateReady || !v.Marks.Complete || v.Mount == nil || v.Mount.Type != "nfs4" ||
			!strings.Contains(v.Mount.Source, ":/") {
			t.Errorf("then %+v, %+v", v, v.Mount)
		}
		if err := shares.Resize(t.Context(), v, 60); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		if v = again(t, shares, v); v.SizeGiB != 60 {
			t.Errorf("grown to %d", v.SizeGiB)
		}
		if err := shares.Resize(t.Context(), v, 60); err != nil {
			t.Errorf("again: %v", err)
		}
		if e := wantError(t, shares.Resize(t.Context(), v, 55)); e.Reason != backends.ReasonInvalid {
			t.Errorf("shrinking: %+v", e)
		}
		if err := shares.Delete(t.Context(), v); err != nil || len(cloud.Shares()) != 0 {
			t.Errorf("deleting: %v", err)
		}
		if err := shares.Delete(t.Context(), v); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("again: %v", err)
		}
		if _, err := shares.Get(t.Context(), v.ID); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("read: %v", err)
		}
	})
}

func TestSharesAreFoundByTheirNames(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	vpc := madeVPC(t, cloud, "main", shareRegion)
	spec := testShare(vpc)
	v, err := c.SharedVolumes().Make(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	other := spec
	other.Marks.Key, other.Marks.Pool = "pvol_zzzzzzzzzzzzzzzzzzzzzzzzzz", "pool_zzzzzzzzzzzzzzzzzzzzzzzzzz"
	if _, err := c.SharedVolumes().Make(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stranger", "bc-stranger", v.Name + "x", strings.ToLower("bc-0123456789abcdefghjkmnpqrs-0123456789-0123456789-short")} {
		send(t, cloud, "POST", "/v2/nfs", map[string]any{"name": name, "size_gib": 50, "region": shareRegion, "vpc_ids": []string{vpc}})
	}
	for filter, n := range map[backends.Filter]int{
		{}: 2, {Account: spec.Marks.Account}: 2, {Pool: spec.Marks.Pool}: 1, {Pool: "pool_another"}: 0,
	} {
		if all, err := backends.ListAll(t.Context(), c.SharedVolumes().List, filter); err != nil || len(all) != n {
			t.Errorf("%v: %v, %v", filter, all, err)
		}
	}
	found, err := c.SharedVolumes().Named(t.Context(), v.Name)
	if err != nil || len(found) != 1 || found[0].ID != v.ID {
		t.Errorf("named: %v, %v", found, err)
	}
	if found, err := c.SharedVolumes().Named(t.Context(), "stranger"); err != nil || len(found) != 1 || found[0].Marks != (backends.Marks{}) {
		t.Errorf("a stranger: %v, %v", found, err)
	}
	for range 410 {
		send(t, cloud, "POST", "/v2/nfs", map[string]any{"name": "many", "size_gib": 50, "region": shareRegion, "vpc_ids": []string{vpc}})
	}
	cloud.ClearCalls()
	if many, err := c.SharedVolumes().Named(t.Context(), "many"); err != nil || len(many) != 410 || len(cloud.Calls()) != 3 {
		t.Errorf("%d of 410 in %v, %v", len(many), counts(cloud), err)
	}
}

func TestShareStates(t *testing.T) {
	name, err := markedName(idShare, testShare("").Marks)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status, host string
		want         backends.State
		complete     bool
	}{
		{"CREATING", "", backends.StatePending, false},
		{"ACTIVE", "10.0.0.2", backends.StateReady, true},
		{"ACTIVE", "", backends.StateReady, true},
		// Holds data, and must not be taken for half made, which may be deleted.
		{"INACTIVE", "10.0.0.2", backends.StateError, true},
		{"INACTIVE", "", backends.StateError, true},
		{"FAILED", "10.0.0.2", backends.StateError, true},
		{"FAILED", "", backends.StateError, false},
		{"DELETED", "", backends.StateDeleted, false},
		{"", "", backends.StateUnknown, false},
		{"ODD", "", backends.StateUnknown, false},
	} {
		path := ""
		if tt.host != "" {
			path = "/1/x"
		}
		c := scripted(t, always(jsonAnswer(200, fmt.Sprintf(
			`{"share":{"id":"11111111-2222-3333-4444-555555555555","name":%q,"size_gib":50,"status":%q,"host":%q,"mount_path":%q}}`,
			name, tt.status, tt.host, path))))
		v, err := c.SharedVolumes().Get(t.Context(), "11111111-2222-3333-4444-555555555555")
		says := tt.want == backends.StateError || tt.want == backends.StateUnknown
		if err != nil || v.State != tt.want || v.Marks.Complete != tt.complete || (v.Message != "") != says || (v.Mount != nil) != (tt.host != "") {
			t.Errorf("%+v: %+v, %v", tt, v, err)
		}
	}
}

func TestMarkedNames(t *testing.T) {
	marks := testShare("").Marks
	name, err := markedName(idShare, marks)
	if err != nil || len(name) != 62 || !volumeName.MatchString(name) ||
		name != "bc-0123456789abcdefghjkmnpqrs-0123456789-0123456789-lu2iok4oqw" {
		t.Errorf("%q, %v", name, err)
	}
	back := namedMarks(idShare, name)
	want := backends.Marks{
		Managed: true, Fixed: true, Key: marks.Key, Pool: "pool_0123456789", Account: "pacct_0123456789", Claim: "lu2iok4oqw",
	}
	if back != want {
		t.Errorf("read back %+v", back)
	}
	for what, change := range map[string]func(*backends.Marks){
		"another kind's key": func(m *backends.Marks) { m.Key = "psnap_0123456789abcdefghjkmnpqrs" },
		"short key":          func(m *backends.Marks) { m.Key = "pvol_0123" },
		"long key":           func(m *backends.Marks) { m.Key += "0" },
		"odd key":            func(m *backends.Marks) { m.Key = "pvol_0123456789abcdefghjkmnpqru" },
		"no pool":            func(m *backends.Marks) { m.Pool = "" },
		"no account":         func(m *backends.Marks) { m.Account = "" },
		"short claim":        func(m *backends.Marks) { m.Claim = "c0ffee" },
		"odd claim":          func(m *backends.Marks) { m.Claim = "lu2iok4oqw-xypd7" },
	} {
		m := marks
		change(&m)
		if name, err := markedName(idShare, m); err == nil {
			t.Errorf("%s: %s", what, name)
		}
	}
	for _, name := range []string{
		"", "data", name + "x", "x" + name, strings.ToUpper(name), strings.Replace(name, "bc-", "bd-", 1),
		strings.Replace(name, "abcdefg", "abcdefu", 1), strings.Replace(name, "-", "_", 1), name + "\n",
	} {
		if m := namedMarks(idShare, name); m != (backends.Marks{}) {
			t.Errorf("%q reads as %+v", name, m)
		}
	}
}

func TestSharesAreNeverMadeTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		rule  emulator.Rule
		there int
		ok    bool
	}{
		"lost answer": {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, there: 1},
		"HTML":        {rule: emulator.Rule{Kind: emulator.KindHTML}},
		"burst":       {rule: emulator.Rule{Kind: emulator.KindRateLimitBurst, Times: 2}, there: 1, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				spec := testShare(madeVPC(t, cloud, "main", shareRegion))
				tt.rule.Method, tt.rule.Path = "POST", "/nfs"
				fault(t, cloud, tt.rule)
				_, err := c.SharedVolumes().Make(t.Context(), spec)
				if (err == nil) != tt.ok || len(cloud.Shares()) != tt.there || err != nil && !wantError(t, err).Ambiguous {
					t.Fatalf("%d shares, %v", len(cloud.Shares()), err)
				}
				found, err := backends.ListAll(t.Context(), c.SharedVolumes().List, backends.Filter{Pool: spec.Marks.Pool})
				if err != nil || len(found) != tt.there || tt.there > 0 && found[0].Marks.Key != spec.Marks.Key {
					t.Errorf("found again: %+v, %v", found, err)
				}
			})
		})
	}
	for name, rule := range map[string]emulator.Rule{
		"lost resize": {Method: "POST", Path: "/nfs/*/actions", Kind: emulator.KindLoseAnswer},
		"HTML":        {Method: "POST", Path: "/nfs/*/actions", Kind: emulator.KindHTML, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				v, err := c.SharedVolumes().Make(t.Context(), testShare(madeVPC(t, cloud, "main", shareRegion)))
				if err != nil {
					t.Fatal(err)
				}
				fault(t, cloud, rule)
				if err := c.SharedVolumes().Resize(t.Context(), v, 70); err != nil || cloud.Shares()[0].SizeGiB != 70 {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestFailedShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: 20 * time.Second})
		spec := testShare(madeVPC(t, cloud, "main", shareRegion))
		fault(t, cloud, emulator.Rule{Method: "POST", Path: "/nfs", Kind: emulator.KindFailAction})
		v, err := c.SharedVolumes().Make(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		if v = again(t, c.SharedVolumes(), v); v.State != backends.StateError || v.Message == "" || v.Marks.Complete {
			t.Errorf("got %+v", v)
		}
		if err := c.SharedVolumes().Delete(t.Context(), v); err != nil {
			t.Errorf("deleting: %v", err)
		}
	})
}

// The API accepts an action and says later that it failed; only who started it knows
// its id.
func TestFailedActionOfAShareIsDiagnosed(t *testing.T) {
	for name, begin := range map[string]struct {
		method, path string
		do           func(t *testing.T, store backends.VolumeStore, v backends.Volume) error
	}{
		"resize": {"POST", "/nfs/*/actions", func(t *testing.T, store backends.VolumeStore, v backends.Volume) error {
			t.Helper()
			return store.Resize(t.Context(), v, 60)
		}},
		"delete": {"DELETE", "/nfs/*", func(t *testing.T, store backends.VolumeStore, v backends.Volume) error {
			t.Helper()
			return store.Delete(t.Context(), v)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{Boot: 20 * time.Second})
				store := c.SharedVolumes()
				v, err := store.Make(t.Context(), testShare(madeVPC(t, cloud, "main", shareRegion)))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				diagnose := func() error { return c.SharedVolumes().(backends.VolumeDiagnoser).Diagnose(t.Context(), v) }
				if err := diagnose(); err != nil {
					t.Errorf("before any action: %v", err)
				}
				fault(t, cloud, emulator.Rule{Method: begin.method, Path: begin.path, Kind: emulator.KindFailAction})
				if err := begin.do(t, store, v); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if err := diagnose(); !backends.HasReason(err, backends.ReasonAction) {
					t.Errorf("after a failed action: %v", err)
				}
				cloud.ClearFaults()
				if err := store.Resize(t.Context(), v, 60); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // of the bubble's clock
				if err := diagnose(); err != nil {
					t.Errorf("after one that went well: %v", err)
				}
			})
		})
	}
}
