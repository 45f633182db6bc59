// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// A null element of a list, set or map means nothing: in every attribute of every
// resource and data source, and in those of every cloud at any depth, it is
// INVALID_INPUT at its path when the configuration is validated.
func TestNullElementsAreRefused(t *testing.T) {
	w := newOcean(t, oceanemulator.Options{})
	server := w.server()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	hold := func(name string, s *tfprotov6.Schema, validate func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic) {
		typ, ok := s.ValueType().(tftypes.Object)
		if !ok {
			t.Fatalf("%s is no object", name)
		}
		for _, c := range withNulls(s.Block.Attributes) {
			seen[name+"."+c.at] = true
			value := tftypes.NewValue(typ, c.in(nulls(typ)))
			config, err := tfprotov6.NewDynamicValue(typ, value)
			if err != nil {
				t.Fatal(err)
			}
			var matching []string
			for _, d := range validate(&config) {
				if strings.HasPrefix(d.Summary, "INVALID_INPUT: "+c.at+" is null.") && d.Attribute != nil && len(d.Attribute.Steps()) == c.steps {
					matching = append(matching, d.Summary)
				} else if strings.Contains(d.Summary+d.Detail, c.element) {
					t.Errorf("%s.%s: also %s: %s", name, c.at, d.Summary, d.Detail)
				}
			}
			if len(matching) != 1 {
				t.Errorf("%s.%s: refused %d times", name, c.at, len(matching))
			}
		}
	}
	for name, s := range schemas.ResourceSchemas {
		hold(name, s, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			resp, err := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: name, Config: config, ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{},
			})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Diagnostics
		})
	}
	for name, s := range schemas.DataSourceSchemas {
		hold("data."+name, s, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			resp, err := server.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: config})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Diagnostics
		})
	}
	for _, want := range []string{
		"bettercompute_provider_volume.instances[0]", "bettercompute_provider_volume.labels.a", "bettercompute_instance.ssh_keys[0]",
		"bettercompute_instance.labels.a", "bettercompute_pool.flavors.a", "bettercompute_provider_volume.digitalocean.tags[0]",
		"bettercompute_provider_account.digitalocean.regions[0]", "bettercompute_instance.hetzner_cloud.networks[0]",
		"bettercompute_instance.hetzner_cloud.networks[0].alias_ips[0]", "data.bettercompute_instances.pools[0]",
	} {
		if !seen[want] {
			t.Errorf("%s was not tried", want)
		}
	}
}

// nullCase is a configuration with one null element.
type nullCase struct {
	at, element string // its path, and what a second complaint would say of it
	steps       int    // of the path
	in          func(all map[string]tftypes.Value) map[string]tftypes.Value
}

// withNulls are the cases of all attributes that a configuration may set.
func withNulls(attributes []*tfprotov6.SchemaAttribute) []nullCase {
	var out []nullCase
	for _, a := range attributes {
		if !a.Optional && !a.Required {
			continue
		}
		for _, c := range nullsIn(a.ValueType()) {
			value := c.value
			out = append(out, nullCase{
				at: a.Name + c.at, steps: 1 + c.steps, element: "Every element of",
				in: func(all map[string]tftypes.Value) map[string]tftypes.Value {
					all[a.Name] = value
					return all
				},
			})
		}
	}
	return out
}

type nullValue struct {
	at    string
	steps int
	value tftypes.Value
}

// nullsIn are values of a type with one null element each, at any depth.
func nullsIn(typ tftypes.Type) []nullValue {
	var out []nullValue
	elements := func(element tftypes.Type, at string, wrap func(tftypes.Value) any) {
		for _, c := range append(nullsIn(element), nullValue{value: tftypes.NewValue(element, nil)}) {
			out = append(out, nullValue{at + c.at, 1 + c.steps, tftypes.NewValue(typ, wrap(c.value))})
		}
	}
	switch typ := typ.(type) {
	case tftypes.List:
		elements(typ.ElementType, "[0]", func(v tftypes.Value) any { return []tftypes.Value{v} })
	case tftypes.Set:
		elements(typ.ElementType, "[0]", func(v tftypes.Value) any { return []tftypes.Value{v} })
	case tftypes.Map:
		elements(typ.ElementType, ".a", func(v tftypes.Value) any { return map[string]tftypes.Value{"a": v} })
	case tftypes.Object:
		for name, attribute := range typ.AttributeTypes {
			for _, c := range nullsIn(attribute) {
				values := nulls(typ)
				values[name] = c.value
				out = append(out, nullValue{"." + name + c.at, 1 + c.steps, tftypes.NewValue(typ, values)})
			}
		}
	}
	slices.SortFunc(out, func(a, b nullValue) int { return strings.Compare(a.at, b.at) })
	return out
}

// What becomes null after the validation is refused by the plan.
func TestNullElementsKnownLateAreRefused(t *testing.T) {
	w := newOcean(t, oceanemulator.Options{})
	wire := w.wire()
	null := []tftypes.Value{tftypes.NewValue(tftypes.String, nil)}
	for resource, attribute := range map[string]string{volumeType: "instances", instanceType: "ssh_keys"} {
		config := volumeConfig(wire, nil)
		if resource == instanceType {
			config = instanceConfig(wire, nil)
		}
		var values map[string]tftypes.Value
		if err := config.As(&values); err != nil {
			t.Fatal(err)
		}
		values[attribute] = tftypes.NewValue(wire.types[resource].AttributeTypes[attribute], null)
		_, diags := wire.plan(resource, wire.none(resource), tftypes.NewValue(wire.types[resource], values))
		if got, want := errorsOf(diags), fmt.Sprintf("INVALID_INPUT: %s[0] is null.", attribute); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", resource, got)
		}
	}
}
