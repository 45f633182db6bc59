// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

var testFields = []Field{
	{Name: "token", Type: TypeString, Required: true, Secret: true, Description: "d"},
	{Name: "location", Type: TypeString, Options: []string{"a", "b"}, Default: "a", Description: "d"},
	{Name: "count", Type: TypeInt, Description: "d", Check: func(v any) string {
		if n, _ := v.(int64); n < 1 {
			return "count is at least 1."
		}
		return ""
	}},
	{Name: "tags", Type: TypeStringSet, Options: []string{"x", "y"}, Description: "d"},
	{Name: "snippets", Type: TypeObject, Description: "d", Fields: []Field{
		{Name: "on", Type: TypeBool, Default: true, Description: "d"},
		{Name: "private_key", Type: TypeString, Description: "d"},
	}},
	{Name: "networks", Type: TypeObjectList, Description: "d", Fields: []Field{
		{Name: "ip", Type: TypeString, Required: true, Description: "d"},
		{Name: "mtu", Type: TypeInt, Default: int64(1500), Description: "d"},
	}},
}

func TestValidateReportsEverythingAtOnce(t *testing.T) {
	const literal = "s3cr3t-value"
	issues := Validate(testFields, Values{
		"token":    literal,
		"location": "c",
		"count":    int64(0),
		"tags":     []any{"x", "z", Unknown},
		"snippets": Values{"private_key": literal},
		"networks": []any{Values{"ip": "10.0.0.1"}, Values{"mtu": "x"}, Unknown},
		"colour":   "red",
	}, Path{"cloud"})
	var paths []string
	for _, e := range issues {
		paths = append(paths, e.Path.String())
		if strings.Contains(e.Error()+e.Remedy, literal) {
			t.Errorf("%s repeats the secret: %v %s", e.Path, e, e.Remedy)
		}
		if e.Code != InvalidInput {
			t.Errorf("%s: code %s", e.Path, e.Code)
		}
	}
	slices.Sort(paths)
	want := []string{
		"cloud.colour", "cloud.count", "cloud.location", "cloud.networks[1].ip", "cloud.networks[1].mtu",
		"cloud.snippets.private_key", "cloud.tags[1]", "cloud.token",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("issues at\n %v\nwant\n %v", paths, want)
	}
}

// Each type is said in words that read well after "must be".
func TestValidateSaysTheType(t *testing.T) {
	fields := []Field{
		{Name: "text", Type: TypeString}, {Name: "on", Type: TypeBool}, {Name: "count", Type: TypeInt},
		{Name: "list", Type: TypeStringList}, {Name: "set", Type: TypeStringSet},
		{Name: "object", Type: TypeObject}, {Name: "objects", Type: TypeObjectList},
	}
	const tooLarge = "count must be from -9223372036854775808 to 9223372036854775807."
	for _, test := range []struct {
		name  string
		value any
		want  string
		path  string
	}{
		{"text", int64(1), "text must be a string.", "text"},
		{"on", "yes", "on must be true or false.", "on"},
		{"count", "1", "count must be a whole number.", "count"},
		{"count", 1.5, "count must be a whole number.", "count"},
		{"count", 1e30, tooLarge, "count"},
		{"count", -1e30, tooLarge, "count"},
		{"list", "a", "list must be a list of strings.", "list"},
		{"list", []any{"a", int64(1)}, "Every element of list must be a string.", "list[1]"},
		{"set", true, "set must be a set of strings.", "set"},
		{"set", []any{nil}, "Every element of set must be a string.", "set[0]"},
		{"object", []any{}, "object must be an object.", "object"},
		{"objects", Values{}, "objects must be a list of objects.", "objects"},
		{"objects", []any{nil}, "Every element of objects must be an object.", "objects[0]"},
	} {
		issues := Validate(fields, Values{test.name: test.value}, nil)
		if len(issues) != 1 || issues[0].Message != test.want || issues[0].Path.String() != test.path {
			t.Errorf("%s = %v: got %v, want %q at %s", test.name, test.value, issues, test.want, test.path)
		}
	}
	for _, typ := range []Type{TypeString, TypeBool, TypeInt, TypeStringList, TypeStringSet, TypeObject, TypeObjectList} {
		if words[typ] == "" {
			t.Errorf("there are no words for a %s", typ)
		}
	}
}

func TestValidatePassesOverWhatIsNotKnown(t *testing.T) {
	issues := Validate(testFields, Values{"token": Unknown, "location": Unknown, "snippets": Unknown, "networks": []any{Unknown}}, nil)
	if len(issues) != 0 {
		t.Errorf("got %v", issues)
	}
}

func TestDefaultsFillWhatIsUnset(t *testing.T) {
	in := Values{"token": "env://T", "snippets": Values{}, "networks": []any{Values{"ip": "i"}}}
	out := WithDefaults(testFields, in)
	if out["location"] != "a" || out.Object("snippets")["on"] != true {
		t.Errorf("got %v", out)
	}
	network, _ := out.List("networks")[0].(Values)
	if network["mtu"] != int64(1500) {
		t.Errorf("got %v", out)
	}
	if _, changed := in["location"]; changed || len(in.Object("snippets")) != 0 {
		t.Errorf("the input changed: %v", in)
	}
}

// An object that is left out is its default, and what that leaves out are its
// fields' defaults.
func TestDefaultsOfADefaultObject(t *testing.T) {
	inner := []Field{
		{Name: "a", Type: TypeString, Default: "x", Description: "d"},
		{Name: "b", Type: TypeInt, Default: int64(1), Description: "d"},
	}
	fields := []Field{
		{Name: "object", Type: TypeObject, Default: Values{"a": "y"}, Fields: inner, Description: "d"},
		{Name: "list", Type: TypeObjectList, Default: []any{Values{"b": int64(2)}}, Fields: inner, Description: "d"},
		{Name: "none", Type: TypeObject, Fields: inner, Description: "d"},
	}
	want := Values{"object": Values{"a": "y", "b": int64(1)}, "list": []any{Values{"a": "x", "b": int64(2)}}}
	for range 2 { // a second time: the defaults themselves have not changed
		if out := WithDefaults(fields, nil); !reflect.DeepEqual(out, want) {
			t.Errorf("got %v", out)
		}
	}
	if d := fields[0].Default.(Values); len(d) != 1 {
		t.Errorf("the default changed: %v", d)
	}
}

func TestDefinitionsThatAreWrongAreRefused(t *testing.T) {
	good := func() *Definition {
		return &Definition{
			ID: "acme-cloud", Title: "Acme", Version: "1.0.0", Provides: []Kind{KindVPS},
			Manifest: Manifest{Account: testFields[:len(testFields)-1], Machine: testFields},
			Region:   func(Values) string { return "a" },
			Create:   func(Values, Environment) (Backend, error) { return nil, nil },
		}
	}
	if _, err := NewRegistry(good()); err != nil {
		t.Fatalf("a good definition: %v", err)
	}
	if d := good(); d.Attribute() != "acme_cloud" {
		t.Errorf("attribute %q", d.Attribute())
	}
	field := func(f Field) func(*Definition) {
		return func(d *Definition) { d.Manifest.Machine = []Field{f} }
	}
	accountField := func(f Field) func(*Definition) {
		return func(d *Definition) { d.Manifest.Account = []Field{f} }
	}
	object := []Field{{Name: "x", Type: TypeInt, Description: "d"}}
	for path, spoil := range map[string]func(*Definition){
		"id":                    func(d *Definition) { d.ID = "Acme" },
		"title":                 func(d *Definition) { d.Title = "" },
		"version":               func(d *Definition) { d.Version = "1" },
		"provides":              func(d *Definition) { d.Provides = nil },
		"provides[0]":           func(d *Definition) { d.Provides = []Kind{"cow"} },
		"create":                func(d *Definition) { d.Create = nil },
		"region":                func(d *Definition) { d.Region = nil },
		"list_lag":              func(d *Definition) { d.ListLag = -1 },
		"manifest.account.pool": accountField(Field{Name: "pool", Type: TypeObject, Description: "d", Fields: object}),
		"manifest.account.list": accountField(Field{Name: "list", Type: TypeObjectList, Description: "d", Fields: object}),
		"manifest.account.o.deep": accountField(Field{Name: "o", Type: TypeObject, Description: "d", Fields: []Field{
			{Name: "deep", Type: TypeObjectList, Description: "d", Fields: object},
		}}),
		"manifest.machine.Bad":   field(Field{Name: "Bad", Type: TypeString, Description: "d"}),
		"manifest.machine.bare":  field(Field{Name: "bare", Type: TypeString}),
		"manifest.machine.typed": field(Field{Name: "typed", Type: "cow", Description: "d"}),
		"manifest.machine.off":   field(Field{Name: "off", Type: TypeBool, Default: "yes", Description: "d"}),
		"manifest.machine.empty": field(Field{Name: "empty", Type: TypeObject, Description: "d"}),
		"manifest.machine.both":  field(Field{Name: "both", Type: TypeBool, Default: true, Required: true, Description: "d"}),
		"manifest.machine.o.no":  field(Field{Name: "o", Type: TypeObject, Description: "d", Fields: []Field{{Name: "no", Type: TypeInt}}}),
	} {
		d := good()
		spoil(d)
		_, err := NewRegistry(d)
		e := AsError(err)
		if e == nil || e.Code != InvalidConfig || e.Details["path"] != path {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := NewRegistry(good(), good()); !HasCode(err, InvalidConfig) {
		t.Errorf("twice: got %v", err)
	}
	if _, err := NewRegistry(nil); !HasCode(err, InvalidConfig) {
		t.Errorf("nil: got %v", err)
	}
}
