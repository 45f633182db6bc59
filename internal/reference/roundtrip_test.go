// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"math/big"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// drawReference makes any reference that the provider can make.
func drawReference(t *rapid.T, d *backends.Definition) (Reference, backends.Values) {
	config := drawConfig(t)
	name := rapid.StringMatching(`[a-z0-9._-]{1,63}`)
	volume := rapid.StringMatching(`[a-z]([-a-z0-9]{0,40}[a-z0-9])?`)
	r, issues := NewAccount(d, rapid.StringMatching(`[A-Za-z0-9._:-]{1,128}`).Draw(t, "tenant"), name.Draw(t, "account"), config)
	if len(issues) > 0 {
		t.Fatalf("NewAccount(%v): %v", config, issues)
	}
	pool := name.Draw(t, "pool")
	switch rapid.SampledFrom([]Kind{KindAccount, KindPool, KindInstance, KindVolume, KindSnapshot}).Draw(t, "kind") {
	case KindPool:
		limits := Limits{
			Instances: rapid.Ptr(rapid.Int64Min(0), true).Draw(t, "instances"),
			DiskGiB:   rapid.Ptr(rapid.Int64Min(0), true).Draw(t, "disk"),
		}
		if rapid.Bool().Draw(t, "priced") {
			price := big.NewRat(rapid.Int64Range(0, 1e12).Draw(t, "price"), 1e6)
			text, err := PriceText(price)
			if err != nil {
				t.Fatal(err)
			}
			limits.PricePerHour = text
		}
		r = r.NewPool(pool, rapid.Bool().Draw(t, "adopt"), limits)
	case KindInstance:
		machine := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09/:%?#&=+@,é\"' ~")), 0, 20, -1)
		instance := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?)?`)
		r = r.NewPool(pool, true, Limits{}).InstanceRef(instance.Draw(t, "instance"), machine.Draw(t, "machine"))
	case KindVolume:
		r = r.NewPool(pool, true, Limits{}).VolumeRef(volume.Draw(t, "volume"))
	case KindSnapshot:
		r = r.NewPool(pool, true, Limits{}).VolumeRef(volume.Draw(t, "volume")).SnapshotRef(volume.Draw(t, "snapshot"))
	}
	return r, config
}

// drawConfig makes a valid configuration of full-cloud, defaults spelled out now
// and then.
func drawConfig(t *rapid.T) backends.Values {
	text := rapid.OneOf(rapid.SampledFrom([]string{"local", "1c-2g", ",", "%2C", "a&b=c", "ü", "#"}), rapid.StringN(1, 20, -1)).
		Filter(func(s string) bool { return checkReferences(s, nil) == nil })
	list := rapid.SliceOfN(rapid.Map(text, func(s string) any { return s }), 0, 4)
	config := backends.Values{"token": rapid.SampledFrom([]string{"env://T", "secret://a:b/c", "vault://a/b(c)#d?e"}).Draw(t, "token")}
	maybe := func(v backends.Values, name string, draw func() any) {
		if rapid.Bool().Draw(t, "set "+name) {
			v[name] = draw()
		}
	}
	maybe(config, "url", func() any { return text.Draw(t, "url") })
	maybe(config, "pool", func() any { return text.Draw(t, "pool field") })
	maybe(config, "clone", func() any { return rapid.Bool().Draw(t, "clone") })
	maybe(config, "low", func() any { return rapid.OneOf(rapid.Just(int64(100)), rapid.Int64()).Draw(t, "low") })
	maybe(config, "offers", func() any {
		return rapid.OneOf(rapid.Just([]any{"1c-2g", "2c-4g"}), list).Draw(t, "offers")
	})
	maybe(config, "regions", func() any { return list.Draw(t, "regions") })
	maybe(config, "snippets", func() any {
		snippets := backends.Values{}
		maybe(snippets, "storage", func() any { return text.Draw(t, "storage") })
		maybe(snippets, "sftp", func() any {
			sftp := backends.Values{}
			maybe(sftp, "host", func() any { return text.Draw(t, "host") })
			maybe(sftp, "private_key", func() any { return "env://K" })
			return sftp
		})
		return snippets
	})
	return config
}

func TestRoundTrip(t *testing.T) {
	registry := testRegistry(t)
	d, _ := registry.Lookup("full-cloud")
	rapid.Check(t, func(t *rapid.T) {
		r, config := drawReference(t, d)
		uri := r.String()
		back, err := Parse(registry, uri)
		if err != nil {
			t.Fatalf("Parse(%s): %v", uri, err)
		}
		if !reflect.DeepEqual(back, r) {
			t.Fatalf("Parse(%s) = %+v, want %+v", uri, back, r)
		}
		// Nothing of the configuration is lost, but the order and repeats of a set.
		full := backends.WithDefaults(d.Manifest.Account, config)
		got := back.FullConfig()
		if regions, ok := full["regions"]; ok {
			full["regions"] = pruneValue(backends.Field{Type: backends.TypeStringSet}, regions)
		}
		if !reflect.DeepEqual(got, full) {
			t.Fatalf("FullConfig() of %s = %v, want %v", uri, got, full)
		}
	})
}

// Two configurations have the same uri only if they mean the same.
func TestNoTwoMeaningsOneURI(t *testing.T) {
	d := definition(t, "full-cloud")
	rapid.Check(t, func(t *rapid.T) {
		a, _ := drawReference(t, d)
		b, _ := drawReference(t, d)
		if (a.String() == b.String()) != reflect.DeepEqual(a, b) {
			t.Fatalf("%+v and %+v: %s and %s", a, b, a, b)
		}
	})
}

func FuzzParse(f *testing.F) {
	registry := testRegistry(f)
	for _, s := range []string{
		"hetzner-cloud://root/main?token=env://HCLOUD_TOKEN",
		"hetzner-cloud://org%3Aacme/main/web?pool.adopt=true&pool.limits.price_per_hour=0.5&token=env://T",
		"hetzner-cloud://root/main/web/instances/web-0/4711%2Fa?token=vault://a/b%23c",
		"hetzner-cloud://root/main/web/volumes/data/snapshots/first?endpoint=http://127.0.0.1:8801/v1&token=secret://root/x",
		"full-cloud://root/main?clone=false&low=-7&offers=a%2Cb,c%20d&regions=&snippets.sftp=&token=env://T",
		"full-cloud://root/main/web/instances/a/b/c/d/e/f?x", "://", "full-cloud://%", "pool_0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		r, err := Parse(registry, uri)
		if err != nil {
			if e := backends.AsError(err); e == nil || e.Code != backends.InvalidInput || e.Remedy == "" {
				t.Fatalf("Parse(%q): %#v", uri, err)
			}
			return
		}
		if got := r.String(); got != uri {
			t.Fatalf("Parse(%q).String() = %q", uri, got)
		}
		if again, err := Parse(registry, r.AccountKey()); err != nil || again.Kind != KindAccount {
			t.Fatalf("AccountKey() of %q = %q: %v", uri, r.AccountKey(), err)
		}
	})
}
