// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func mustNew(t *testing.T, c Config) *Resolver {
	t.Helper()
	r, issues := New(c)
	if len(issues) > 0 {
		t.Fatalf("New: %v", issues)
	}
	return r
}

func wantValue(t *testing.T, r *Resolver, reference, want string) {
	t.Helper()
	got, err := r.Resolve(t.Context(), reference)
	if err != nil || got != want {
		t.Errorf("Resolve(%s) = %q, %v; want %q", reference, got, err, want)
	}
}

// wantFailure checks what every failure has, and that it says each of the words.
func wantFailure(t *testing.T, r *Resolver, reference string, words ...string) *backends.Error {
	t.Helper()
	value, err := r.Resolve(t.Context(), reference)
	e := backends.AsError(err)
	if e == nil || value != "" || e.Code != backends.InvalidConfig || e.Reason != backends.ReasonSecret || e.Remedy == "" || e.Path != nil {
		t.Fatalf("Resolve(%s) = %q, %#v", reference, value, err)
	}
	text := e.Message + " " + e.Remedy
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("Resolve(%s): %q doesn't say %q", reference, text, w)
		}
	}
	for _, secret := range []string{"S3CR3T", "t0k3n"} {
		if strings.Contains(text, secret) || (e.Err != nil && strings.Contains(e.Err.Error(), secret)) {
			t.Errorf("Resolve(%s) gives a secret away: %q, %v", reference, text, e.Err)
		}
	}
	return e
}

func TestEnvironment(t *testing.T) {
	r := mustNew(t, Config{})
	t.Setenv("BC_TEST_TOKEN", "S3CR3T")
	wantValue(t, r, "env://BC_TEST_TOKEN", "S3CR3T")
	t.Setenv("BC_TEST_TOKEN", "rotated")
	wantValue(t, r, "env://BC_TEST_TOKEN", "rotated") // read per request
	t.Setenv("BC_TEST_TOKEN", "")
	wantFailure(t, r, "env://BC_TEST_TOKEN", "BC_TEST_TOKEN is empty", "Export BC_TEST_TOKEN")
	wantFailure(t, r, "env://BC_TEST_UNSET_TOKEN", "BC_TEST_UNSET_TOKEN is not set", "Export")
	wantFailure(t, r, "S3CR3T", "malformed")
}

func TestValues(t *testing.T) {
	t.Setenv("OLD", "from the environment")
	for name, c := range map[string]struct {
		config    Config
		reference string
		want      string
	}{
		"a name":                {Config{Values: map[string]string{"x": "S"}}, "secret://root/x", "S"},
		"a name of the tenant":  {Config{TenantID: "acme", Values: map[string]string{"x": "S"}}, "secret://acme/x", "S"},
		"tenant and name":       {Config{Values: map[string]string{"acme/x": "S"}}, "secret://acme/x", "S"},
		"a full reference":      {Config{Values: map[string]string{"secret://acme/x": "S"}}, "secret://acme/x", "S"},
		"env:// overridden":     {Config{Values: map[string]string{"env://OLD": "S"}}, "env://OLD", "S"},
		"env:// unset":          {Config{Values: map[string]string{"env://BC_TEST_UNSET": "S"}}, "env://BC_TEST_UNSET", "S"},
		"vault:// overridden":   {Config{Values: map[string]string{"vault://a/b#c": "S"}, Vault: VaultConfig{Unknown: true}}, "vault://a/b#c", "S"},
		"another key unknown":   {Config{Values: map[string]string{"x": "S"}, UnknownKeys: []string{"y"}}, "secret://root/x", "S"},
		"not overridden":        {Config{Values: map[string]string{"env://OTHER": "S"}}, "env://OLD", "from the environment"},
		"newline at the end":    {Config{Values: map[string]string{"x": "S\n"}}, "secret://root/x", "S"},
		"crlf at the end":       {Config{Values: map[string]string{"x": "S\r\n"}}, "secret://root/x", "S"},
		"spaces stay":           {Config{Values: map[string]string{"x": " S "}}, "secret://root/x", " S "},
		"a key in PEM form":     {Config{Values: map[string]string{"x": "-----BEGIN A-----\r\nabc\n-----END A-----\n"}}, "secret://root/x", "-----BEGIN A-----\r\nabc\n-----END A-----\n"},
		"letters beyond ASCII":  {Config{Values: map[string]string{"x": "pässword"}}, "secret://root/x", "pässword"},
		"a url is a value":      {Config{Values: map[string]string{"x": "https://a/b"}}, "secret://root/x", "https://a/b"},
		"a tenant with a colon": {Config{TenantID: "org:a", Values: map[string]string{"x": "S"}}, "secret://org:a/x", "S"},
	} {
		t.Run(name, func(t *testing.T) { wantValue(t, mustNew(t, c.config), c.reference, c.want) })
	}
}

func TestValuesRefused(t *testing.T) {
	t.Setenv("BC_TEST_TOKEN", "S3CR3T")
	t.Setenv("BC_TEST_LINES", "S3CR3T\nS3CR3T")
	for name, c := range map[string]struct {
		config    Config
		reference string
		words     []string
	}{
		"missing":               {Config{}, "secret://root/x", []string{"root/x", "Add it", "keep that block"}},
		"another tenant's":      {Config{Values: map[string]string{"x": "S3CR3T"}}, "secret://acme/x", []string{"acme/x"}},
		"case matters":          {Config{Values: map[string]string{"X": "S3CR3T"}}, "secret://root/x", []string{"root/x"}},
		"empty":                 {Config{Values: map[string]string{"x": ""}}, "secret://root/x", []string{"empty"}},
		"only a newline":        {Config{Values: map[string]string{"x": "\n"}}, "secret://root/x", []string{"empty"}},
		"two newlines":          {Config{Values: map[string]string{"x": "S3CR3T\n\n"}}, "secret://root/x", []string{"line break", "one line"}},
		"lines in the middle":   {Config{}, "env://BC_TEST_LINES", []string{"line break"}},
		"a tab":                 {Config{Values: map[string]string{"x": "S3CR3T\tx"}}, "secret://root/x", []string{"control character"}},
		"NUL in PEM":            {Config{Values: map[string]string{"x": "-----BEGIN \x00"}}, "secret://root/x", []string{"control characters"}},
		"a reference":           {Config{Values: map[string]string{"x": "env://S3CR3T"}}, "secret://root/x", []string{"a reference, not a value"}},
		"unknown key":           {Config{UnknownKeys: []string{"x"}}, "secret://root/x", []string{"not known before apply"}},
		"unknown override":      {Config{UnknownKeys: []string{"env://BC_TEST_TOKEN"}}, "env://BC_TEST_TOKEN", []string{"not known before apply"}},
		"unknown map":           {Config{UnknownValues: true}, "secret://root/x", []string{"not known before apply"}},
		"unknown map, env":      {Config{UnknownValues: true}, "env://BC_TEST_TOKEN", []string{"not known before apply"}},
		"unknown vault":         {Config{Vault: VaultConfig{Unknown: true}}, "vault://a/b#c", []string{"not known before apply"}},
		"vault without address": {Config{}, "vault://a/b#c", []string{"no address", "VAULT_ADDR"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("VAULT_ADDR", "")
			t.Setenv("VAULT_AGENT_ADDR", "")
			if e := wantFailure(t, mustNew(t, c.config), c.reference, c.words...); e.Retryable {
				t.Error("it is retryable")
			}
		})
	}
}

func TestKeysRefused(t *testing.T) {
	_, issues := New(Config{
		Values:      map[string]string{"S3CR3T S3CR3T": "x", "a/b/c": "x", "env://": "x", "x": "1", "root/x": "2", "secret://root/y": "1"},
		UnknownKeys: []string{"y", "z"},
	})
	if len(issues) != 5 {
		t.Fatalf("%d issues: %v", len(issues), issues)
	}
	var all strings.Builder
	for _, e := range issues {
		if e.Code != backends.InvalidConfig || e.Path != nil || e.Remedy == "" {
			t.Errorf("%#v", e)
		}
		all.WriteString(e.Message + e.Remedy)
	}
	for _, want := range []string{"mean secret://root/x", "mean secret://root/y"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no issue says %q: %s", want, all.String())
		}
	}
	if strings.Contains(all.String(), "S3CR3T") {
		t.Errorf("a malformed key is repeated: %s", all.String())
	}
}
