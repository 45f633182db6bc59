// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"slices"
	"strings"
	"testing"
)

func TestVendorState(t *testing.T) {
	s, err := ReadVendorState([]byte(`{
		"id": "4711", "number": 9007199254740993, "size": "20", "half": 1.5, "on": true, "null": null, "empty": "",
		"network": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.3"}, null], "block": {"ip": "10.0.0.4"},
		"flat": ["a", "b", 1], "nested": [["a"], [], ["b", "c"], "d"]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"id": "4711", "number": "9007199254740993", "null": "", "empty": "", "on": "", "network": "", "none": ""} {
		if got := s.Text(name); got != want {
			t.Errorf("Text(%s) is %q", name, got)
		}
	}
	if got := s.Text("none", "empty", "size", "id"); got != "20" {
		t.Errorf("the first text is %q", got)
	}
	for name, want := range map[string]int64{"size": 20, "number": 9007199254740993, "half": 0, "on": 0, "none": 0} {
		if got := s.Whole(name); got != want {
			t.Errorf("Whole(%s) is %d", name, got)
		}
	}
	if on, known := s.Truth("on"); !on || !known {
		t.Error("on is not true")
	}
	if _, known := s.Truth("null"); known {
		t.Error("null is a truth")
	}
	for name, want := range map[string][]string{"network": {"10.0.0.2", "10.0.0.3"}, "block": {"10.0.0.4"}, "id": nil, "none": nil} {
		var got []string
		for _, o := range s.Objects(name) {
			got = append(got, o.Text("ip"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Objects(%s) are %q", name, got)
		}
	}
	if got := s.Texts("flat"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Texts(flat) are %q", got)
	}
	if got := s.Texts("id"); !slices.Equal(got, []string{"4711"}) {
		t.Errorf("Texts(id) are %q", got)
	}
	if got := s.Lists("nested"); len(got) != 3 || len(got[1]) > 0 || !slices.Equal(got[2], []string{"b", "c"}) {
		t.Errorf("Lists(nested) are %q", got)
	}
	if got := s.Lists("flat"); len(got) > 0 {
		t.Errorf("Lists(flat) are %q", got)
	}
}

// A state that can't be read is refused without a word of what is in it.
func TestVendorStateThatIsNone(t *testing.T) {
	for _, raw := range []string{"", "null", "[]", "hunter2", `{"a": "hunter2"} {}`, `{"a": hunter2}`} {
		s, err := ReadVendorState([]byte(raw))
		if !HasCode(err, InvalidState) || s != nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, %v", raw, s, err)
		}
	}
}

func TestAddressOf(t *testing.T) {
	for text, want := range map[string]Address{
		"203.0.113.7": {"203.0.113.7", IPv4, Public}, "2001:DB8::1": {"2001:db8::1", IPv6, Public}, "::ffff:203.0.113.7": {"203.0.113.7", IPv4, Public},
	} {
		if got := AddressOf(text, Public); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %+v", text, got)
		}
	}
	for _, text := range []string{"", "0.0.0.0", "::", "web-0", "203.0.113.7/24"} {
		if got := AddressOf(text, Public); got != nil {
			t.Errorf("%s is %+v", text, got)
		}
	}
}

func TestMovesAreChecked(t *testing.T) {
	good := Move[Snapshot]{Provider: "p", Resource: "p_snapshot", Read: func(VendorState) (Snapshot, error) { return Snapshot{}, nil }}
	if err := checkMoves(Moves{Snapshots: []Move[Snapshot]{good}}); err != nil {
		t.Error(err)
	}
	noRead := good
	noRead.Read = nil
	for name, moves := range map[string][]Move[Snapshot]{
		"twice": {good, good}, "without a function": {noRead}, "without a provider": {{Resource: good.Resource, Read: good.Read}}, "without a type": {{Provider: "p", Read: good.Read}},
	} {
		if err := checkMoves(Moves{Snapshots: moves}); !HasCode(err, InvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
