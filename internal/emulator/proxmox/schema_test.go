// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/pveapitest"
)

// TestTables holds the methods, and what each says of its parameters, against the
// description.
func TestTables(t *testing.T) {
	document := pveapitest.Load(t)
	for _, r := range routes() {
		method, known := document.Method(r.method, r.path)
		if !known || !method.AllowToken {
			t.Errorf("%s %s: described %v, with a token %v", r.method, r.path, known, method.AllowToken)
			continue
		}
		want := maps.Clone(method.Params)
		for _, part := range r.parts() {
			if name, variable := strings.CutPrefix(part, "{"); variable {
				delete(want, strings.TrimSuffix(name, "}"))
			}
		}
		got := map[string]pveapitest.Definition{}
		for _, p := range r.params {
			got[p.name] = p.definition(want[p.name])
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			definition := want[name]
			if len(definition.Enum) == 0 {
				definition.Enum = nil
			}
			definition.Properties, definition.Items = nil, nil
			if !reflect.DeepEqual(got[name], definition) {
				t.Errorf("%s %s, %s: got %+v, want %+v", r.method, r.path, name, got[name], definition)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("%s %s: not in the description: %v", r.method, r.path, got)
		}
	}
}

// definition is the parameter as the description would have it. A format is the
// same when it has the same name; parts that the description spells out have none.
func (p param) definition(want pveapitest.Definition) pveapitest.Definition {
	d := pveapitest.Definition{
		Type: p.kind.String(), Optional: p.optional, Enum: p.enum, Minimum: p.min, Maximum: p.max, MaxLength: p.maxLength, Pattern: p.pattern,
	}
	var name string
	switch err := json.Unmarshal(want.Format, &name); {
	case p.format == "":
	case err == nil && name == p.format, err != nil && (p.format == "properties" || p.format == p.name):
		d.Format = want.Format
	}
	return d
}
