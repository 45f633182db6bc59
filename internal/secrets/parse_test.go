// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Reference{
		"env://HCLOUD_TOKEN":             {Scheme: SchemeEnv, Name: "HCLOUD_TOKEN"},
		"env://_x9":                      {Scheme: SchemeEnv, Name: "_x9"},
		"secret://root/hcloud-token":     {Scheme: SchemeSecret, Tenant: "root", Name: "hcloud-token"},
		"secret://root/sec_01":           {Scheme: SchemeSecret, Tenant: "root", Name: "sec_01"},
		"secret://org:acme/a.b":          {Scheme: SchemeSecret, Tenant: "org:acme", Name: "a.b"},
		"vault://secret/hcloud#token":    {Scheme: SchemeVault, Path: "secret/hcloud", Field: "token"},
		"vault://team/kv/a/b@c#api.key/": {Scheme: SchemeVault, Path: "team/kv/a/b@c", Field: "api.key/"},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("Parse(%q).String() = %q", text, got.String())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "not a secret reference",
		"S3CR3T":                      "not a secret reference",
		"env:S3CR3T":                  "not a secret reference",
		"http://S3CR3T":               "scheme is not env",
		"ENV://S3CR3T":                "scheme is not env",
		"env://":                      "name of an environment variable",
		"env://1S3CR3T":               "name of an environment variable",
		"env://S3CR3T-A":              "name of an environment variable",
		"env://S3CR3T\n":              "name of an environment variable",
		"secret://S3CR3T":             "a tenant, a slash and a name",
		"secret:///S3CR3T":            "tenant after secret://",
		"secret://a b/S3CR3T":         "tenant after secret://",
		"secret://root/":              "name in secret://",
		"secret://root/S3CR3T/x":      "name in secret://",
		"vault://secret/S3CR3T":       "field after a #",
		"vault://secret/S3CR3T#":      "field after a #",
		"vault://S3CR3T#token":        "a mount, a slash",
		"vault://u:S3CR3T@kv/app#x":   "not a server or a login",
		"vault://host:8200/kv/app#x":  "not a server or a login",
		"vault://secret//S3CR3T#x":    "empty part",
		"vault://secret/S3CR3T/#x":    "empty part",
		"vault:///secret/S3CR3T#x":    "empty part",
		"vault://secret/../S3CR3T#x":  "empty part",
		"vault://secret/./S3CR3T#x":   "empty part",
		"vault://secret/S3CR3T%2F#x":  "empty part",
		"vault://secret/S3CR3T?v=1#x": "empty part",
		"vault://secret/a#S3CR3T#x":   "field after the #",
		"vault://secret/a#S3CR3T x":   "field after the #",
	} {
		_, err := Parse(text)
		e := backends.AsError(err)
		if e == nil || e.Code != backends.InvalidInput || e.Reason != backends.ReasonSecret || e.Remedy == "" {
			t.Errorf("Parse(%q): %#v", text, err)
			continue
		}
		if !strings.Contains(e.Message, want) {
			t.Errorf("Parse(%q): %q, want it to say %q", text, e.Message, want)
		}
		if strings.Contains(e.Message+e.Remedy, "S3CR3T") {
			t.Errorf("Parse(%q) repeats the text: %s %s", text, e.Message, e.Remedy)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"env://A", "secret://root/x", "secret://a:b/x", "vault://secret/a/b#c", "vault://a/..#b", "env://", "://", "vault://a/b#c#d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			if backends.AsError(err) == nil {
				t.Fatalf("Parse(%q): %T", text, err)
			}
			return
		}
		if r.String() != text {
			t.Fatalf("Parse(%q).String() = %q", text, r.String())
		}
	})
}
