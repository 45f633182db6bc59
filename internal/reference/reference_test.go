// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"math/big"
	"reflect"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

type values = backends.Values

func TestString(t *testing.T) {
	three, nothing := int64(3), int64(0)
	h := account(t, "hetzner-cloud", values{"token": "env://HCLOUD_TOKEN", "location": "fsn1"})
	pool := h.NewPool("web", true, Limits{})
	acme := h
	acme.Tenant = "org:acme"
	full := func(v values) Reference { v["token"] = "env://T"; return account(t, "full-cloud", v) }
	for want, r := range map[string]Reference{
		"": {},
		"hetzner-cloud://root/main?token=env://HCLOUD_TOKEN":                                                                                  h,
		"hetzner-cloud://org%3Aacme/main?token=env://HCLOUD_TOKEN":                                                                            acme,
		"hetzner-cloud://root/main?location=nbg1&token=vault://secret/a%23b":                                                                  account(t, "hetzner-cloud", values{"token": "vault://secret/a#b", "location": "nbg1"}),
		"hetzner-cloud://root/main?endpoint=http://127.0.0.1:8801/v1&token=secret://root/h":                                                   account(t, "hetzner-cloud", values{"token": "secret://root/h", "endpoint": "http://127.0.0.1:8801/v1"}),
		"hetzner-cloud://root/main/web?pool.adopt=true&token=env://HCLOUD_TOKEN":                                                              pool,
		"hetzner-cloud://root/main/web?token=env://HCLOUD_TOKEN":                                                                              pool.PoolRef(),
		"hetzner-cloud://root/main/db?pool.limits.disk_gib=0&pool.limits.instances=3&pool.limits.price_per_hour=0.5&token=env://HCLOUD_TOKEN": h.NewPool("db", false, Limits{&three, &nothing, "0.5"}),
		"hetzner-cloud://root/main/web/instances/web-0?token=env://HCLOUD_TOKEN":                                                              pool.InstanceRef("web-0", ""),
		"hetzner-cloud://root/main/web/instances/web-0/4711?token=env://HCLOUD_TOKEN":                                                         pool.InstanceRef("web-0", "4711"),
		"hetzner-cloud://root/main/web/instances/web-0/pve%2Fa:%25b?token=env://HCLOUD_TOKEN":                                                 pool.InstanceRef("web-0", "pve/a:%b"),
		"hetzner-cloud://root/main/web/volumes/data?token=env://HCLOUD_TOKEN":                                                                 pool.VolumeRef("data"),
		"hetzner-cloud://root/main/web/volumes/data/snapshots/first?token=env://HCLOUD_TOKEN":                                                 pool.VolumeRef("data").SnapshotRef("first"),
		"full-cloud://root/main?token=env://T":                                                                                                full(values{"clone": true, "low": int64(100), "offers": []any{"1c-2g", "2c-4g"}}),
		"full-cloud://root/main?clone=false&low=-7&offers=2c-4g,1c-2g&token=env://T":                                                          full(values{"clone": false, "low": int64(-7), "offers": []any{"2c-4g", "1c-2g"}}),
		"full-cloud://root/main?offers=a%2Cb,c%20d&token=env://T&url=a,b":                                                                     full(values{"offers": []any{"a,b", "c d"}, "url": "a,b"}),
		"full-cloud://root/main?offers=&token=env://T":                                                                                        full(values{"offers": []any{}}),
		"full-cloud://root/main?regions=a,b,c&token=env://T":                                                                                  full(values{"regions": []any{"c", "a", "b", "a"}}),
		"full-cloud://root/main?snippets=&token=env://T":                                                                                      full(values{"snippets": values{"storage": "local"}}),
		"full-cloud://root/main?snippets.sftp=&token=env://T":                                                                                 full(values{"snippets": values{"sftp": values{}}}),
		"full-cloud://root/main?snippets.sftp.host=h&snippets.sftp.private_key=env://K&snippets.storage=nas&token=env://T":                    full(values{"snippets": values{"storage": "nas", "sftp": values{"host": "h", "private_key": "env://K"}}}),
		"full-cloud://root/main?token=env://T&url=user@h/%C3%A9%26%3F%2B%22%27%24%7B":                                                         full(values{"url": "user@h/é&?+\"'${"}),
	} {
		if got := r.String(); got != want {
			t.Errorf("String() = %s, want %s", got, want)
		}
		if want == "" {
			continue
		}
		back, err := Parse(testRegistry(t), want)
		if err != nil {
			t.Errorf("Parse(%s): %v", want, err)
			continue
		}
		back.definition, r.definition = nil, nil // of two registries
		if !reflect.DeepEqual(back, r) {
			t.Errorf("Parse(%s) = %+v, want %+v", want, back, r)
		}
	}
}

// What a child's pool reference says about the pool's keys must not reach the
// child (DESIGN.md §4 "Pool keys").
func TestPoolKeysStayInThePool(t *testing.T) {
	n := int64(1)
	a := account(t, "hetzner-cloud", values{"token": "env://A"})
	p := a.NewPool("web", true, Limits{Instances: &n, PricePerHour: "1"})
	q := a.NewPool("web", false, Limits{})
	for _, derive := range []func(Reference) Reference{
		Reference.PoolRef, Reference.AccountRef,
		func(r Reference) Reference { return r.InstanceRef("a", "1") },
		func(r Reference) Reference { return r.VolumeRef("a") },
		func(r Reference) Reference { return r.VolumeRef("a").SnapshotRef("b") },
		func(r Reference) Reference { return r.InstanceRef("a", "1").PoolRef() },
	} {
		if x, y := derive(p), derive(q); x.String() != y.String() || x.Adopt || x.Limits != (Limits{}) {
			t.Errorf("%s and %s differ", x, y)
		}
	}
	if p.AccountKey() != a.String() || p.InstanceRef("a", "1").AccountKey() != a.String() {
		t.Errorf("AccountKey() = %s, want %s", p.AccountKey(), a)
	}
}

func TestFullConfig(t *testing.T) {
	r := account(t, "full-cloud", values{"token": "env://T", "snippets": values{}})
	full := r.FullConfig()
	want := values{"token": "env://T", "clone": true, "low": int64(100), "offers": []any{"1c-2g", "2c-4g"}, "snippets": values{"storage": "local"}}
	if !reflect.DeepEqual(full, want) {
		t.Errorf("FullConfig() = %v, want %v", full, want)
	}
	full["clone"] = false
	if r.Config.Has("clone") {
		t.Error("FullConfig isn't a copy")
	}
}

func TestUnknownConfig(t *testing.T) {
	r := account(t, "full-cloud", values{"token": backends.Unknown, "regions": []any{backends.Unknown, "a"}})
	if r.Known() || r.String() != "" || r.AccountKey() != "" || r.InstanceRef("a", "").String() != "" {
		t.Errorf("a reference with an unknown configuration has a uri: %q", r)
	}
	if r.ID() != AccountID("root", "full-cloud", "main") {
		t.Error("its id isn't known")
	}
}

func TestNewAccountRefuses(t *testing.T) {
	_, issues := NewAccount(definition(t, "full-cloud"), "a b", "Main", values{
		"token": "S3CR3T", "nope": "x", "low": "1", "snippets": values{"sftp": values{"private_key": "S3CR3T"}},
	})
	var paths []string
	for _, e := range issues {
		paths = append(paths, e.Path.String())
	}
	want := []string{"tenant_id", "name", "full_cloud.nope", "full_cloud.token", "full_cloud.low", "full_cloud.snippets.sftp.private_key"}
	if !reflect.DeepEqual(paths, want) {
		t.Errorf("issues at %v, want %v", paths, want)
	}
	for config, want := range map[*values]string{
		{"token": "vault://a/b"}:                                             "full_cloud.token",
		{"token": "env://T", "offers": []any{"env://1"}}:                     "full_cloud.offers[0]",
		{"token": "env://T", "high": int64(1)}:                               "full_cloud.high",
		{"token": "env://T", "snippets": values{"sftp": values{"host": ""}}}: "full_cloud.snippets.sftp.host",
	} {
		_, issues := NewAccount(definition(t, "full-cloud"), "root", "main", *config)
		if len(issues) != 1 || issues[0].Path.String() != want || issues[0].Code != backends.InvalidInput {
			t.Errorf("NewAccount(%v): %v, want one issue at %s", *config, issues, want)
		}
	}
}

func TestPriceText(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "1.50": "1.5", "0.0125": "0.0125", "100": "100", "1/8": "0.125", "-1": "", "1/3": "", "1e-19": "", "1e18": "", "-0": "0"} {
		r, ok := new(big.Rat).SetString(in)
		if !ok {
			t.Fatal(in)
		}
		got, err := PriceText(r)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("PriceText(%s) = %q, %v; want %q", in, got, err, want)
		}
		if want != "" && (Limits{PricePerHour: got}).Price().Cmp(r) != 0 {
			t.Errorf("Price() of %s isn't %s", got, in)
		}
	}
	if (Limits{}).Price() != nil {
		t.Error("an unset price is a number")
	}
}
