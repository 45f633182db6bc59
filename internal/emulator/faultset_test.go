// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import "testing"

func TestMatchPath(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"/v1/servers", "/v1/servers", true},
		{"/v1/servers", "/v1/servers/1", false},
		{"/v1/servers/*", "/v1/servers/1/actions/poweron", true},
		{"/v1/servers/*/actions/*", "/v1/servers/1/actions/poweron", true},
		{"*/poweron", "/v1/servers/1/actions/poweron", true},
		{"*", "/anything", true},
		{"/v1/servers/*", "/v1/servers", false},
		{"/a*a", "/a", false},
		{"/a*b*b", "/axb", false},
		{"/a*b*b", "/axbyb", true},
	} {
		if got := matchPath(test.pattern, test.path); got != test.want {
			t.Errorf("%q and %q: %v", test.pattern, test.path, got)
		}
	}
}

func TestNthAndTimes(t *testing.T) {
	for _, test := range []struct {
		rule Rule
		want string
	}{
		{Rule{}, "x-----"},
		{Rule{Nth: 3}, "--x---"},
		{Rule{Nth: 2, Times: 3}, "-xxx--"},
		{Rule{Times: Forever}, "xxxxxx"},
		{Rule{Nth: 4, Times: Forever}, "---xxx"},
	} {
		test.rule.Kind, test.rule.Method = KindReset, "get"
		if err := test.rule.check(CommonKinds()); err != nil {
			t.Fatal(err)
		}
		set := &faultSet{}
		set.add(test.rule)
		got := ""
		for range test.want {
			set.match("POST", "", "/other") // doesn't count
			if len(set.match("GET", "", "/")) > 0 {
				got += "x"
			} else {
				got += "-"
			}
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.rule, got, test.want)
		}
	}
}
