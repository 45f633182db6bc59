// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"strings"
	"testing"
)

func TestSelector(t *testing.T) {
	labels := map[string]string{"env": "prod", "better-compute.io/key": "k1", "empty": ""}
	for text, want := range map[string]bool{
		"env":                      true,
		"!env":                     false,
		"other":                    false,
		"!other":                   true,
		"env=prod":                 true,
		"env==prod":                true,
		"env = prod":               true,
		"env!=prod":                false,
		"other!=prod":              true,
		"empty=":                   true,
		"env=":                     false,
		"env in (dev,prod)":        true,
		"env in ( dev , test )":    false,
		"env notin (dev,test)":     true,
		"other notin (dev)":        true,
		"better-compute.io/key=k1": true,
		"env=prod,empty,!other":    true,
		"env=prod,other":           false,
		" env = prod , empty ":     true,
		"in in (a)":                false,
	} {
		parsed, err := parseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := parsed.matches(labels); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for _, text := range []string{"", ",", "env,", "=a", "env in", "env in (", "env in (a", "env in a", "env like (a)", "!", "env=a b", "env=-a", "a//b", "env===a", "env=a)", strings.Repeat("a", 64)} {
		if parsed, err := parseSelector(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, parsed)
		}
	}
}

// FuzzSelector: a selector that is accepted has requirements with good keys,
// and means the same when it is written in the plainest form.
func FuzzSelector(f *testing.F) {
	for _, seed := range []string{"a", "!a", "a=b", "a!=b", "a in (b,c)", "x/y notin (b)", "a=b,c", " a == b ", "a in ()"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseSelector(text)
		if err != nil {
			return
		}
		var plain []string
		for _, r := range parsed {
			if problem := labelKeyProblem(r.key); problem != "" {
				t.Fatalf("%q: key %q", text, r.key)
			}
			switch {
			case r.values == nil && r.negated:
				plain = append(plain, "!"+r.key)
			case r.values == nil:
				plain = append(plain, r.key)
			case r.negated:
				plain = append(plain, r.key+" notin ("+strings.Join(r.values, ",")+")")
			default:
				plain = append(plain, r.key+" in ("+strings.Join(r.values, ",")+")")
			}
		}
		again, err := parseSelector(strings.Join(plain, ","))
		if err != nil || len(again) != len(parsed) {
			t.Fatalf("%q became %q: %v", text, plain, err)
		}
		for _, labels := range []map[string]string{{}, {"a": "b"}, {"a": "c", "x/y": "b"}} {
			if parsed.matches(labels) != again.matches(labels) {
				t.Fatalf("%q and %q differ for %v", text, plain, labels)
			}
		}
	})
}
