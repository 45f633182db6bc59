// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// testRegistry has a cloud like Hetzner's and one with a field of every type, at
// two depths.
func testRegistry(t testing.TB) *backends.Registry {
	t.Helper()
	region := func(v backends.Values) string { return v.String("location") }
	create := func(backends.Values, backends.Environment) (backends.Backend, error) { return nil, nil }
	token := backends.Field{Name: "token", Type: backends.TypeString, Description: "d", Required: true, Secret: true}
	full := &backends.Definition{
		ID: "full-cloud", Title: "Full", Version: "1.0.0", Provides: []backends.Kind{backends.KindVPS}, Region: region, Create: create,
		Manifest: backends.Manifest{Account: []backends.Field{
			token,
			{Name: "url", Type: backends.TypeString, Description: "d"},
			{Name: "pool", Type: backends.TypeString, Description: "d"},
			{Name: "clone", Type: backends.TypeBool, Description: "d", Default: true},
			{Name: "low", Type: backends.TypeInt, Description: "d", Default: int64(100)},
			{Name: "high", Type: backends.TypeInt, Description: "d"},
			{Name: "offers", Type: backends.TypeStringList, Description: "d", Default: []any{"1c-2g", "2c-4g"}},
			{Name: "regions", Type: backends.TypeStringSet, Description: "d"},
			{Name: "snippets", Type: backends.TypeObject, Description: "d", Fields: []backends.Field{
				{Name: "storage", Type: backends.TypeString, Description: "d", Default: "local"},
				{Name: "sftp", Type: backends.TypeObject, Description: "d", Fields: []backends.Field{
					{Name: "host", Type: backends.TypeString, Description: "d"},
					{Name: "private_key", Type: backends.TypeString, Description: "d"},
				}},
			}},
		}},
		CheckAccount: func(v backends.Values) []*backends.Error {
			if v.Has("high") && v.Int("low") > v.Int("high") {
				return []*backends.Error{backends.Errorf(backends.InvalidInput, "high is below low.").At("high")}
			}
			return nil
		},
	}
	hetzner := &backends.Definition{
		ID: "hetzner-cloud", Title: "Hetzner Cloud", Version: "1.0.0", Provides: []backends.Kind{backends.KindVPS}, Region: region, Create: create,
		Manifest: backends.Manifest{Account: []backends.Field{
			token,
			{Name: "location", Type: backends.TypeString, Description: "d", Default: "fsn1", Options: []string{"fsn1", "nbg1"}},
			{Name: "endpoint", Type: backends.TypeString, Description: "d"},
		}},
	}
	r, err := backends.NewRegistry(full, hetzner)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func definition(t testing.TB, id string) *backends.Definition {
	t.Helper()
	d, ok := testRegistry(t).Lookup(id)
	if !ok {
		t.Fatalf("no definition %s", id)
	}
	return d
}

func account(t testing.TB, cloud string, config backends.Values) Reference {
	t.Helper()
	r, issues := NewAccount(definition(t, cloud), "root", "main", config)
	if len(issues) > 0 {
		t.Fatalf("NewAccount: %v", issues)
	}
	return r
}
