// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"math/big"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// typedTree is a type and a tree that fits it.
type typedTree struct {
	typ  tftypes.Type
	tree any
}

// drawTyped makes a type of any shape that a manifest can declare, and a value,
// unknown in places; inObject allows null, which a tree has no place for elsewhere.
func drawTyped(t *rapid.T, depth int, inObject bool) typedTree {
	kinds := []string{"string", "bool", "int", "float"}
	if depth > 0 {
		kinds = append(kinds, "list", "map", "object")
	}
	var out typedTree
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "string":
		out = typedTree{tftypes.String, rapid.String().Draw(t, "text")}
	case "bool":
		out = typedTree{tftypes.Bool, rapid.Bool().Draw(t, "truth")}
	case "int":
		out = typedTree{tftypes.Number, rapid.Int64().Draw(t, "whole")}
	case "float":
		out = typedTree{tftypes.Number, float64(rapid.Int32().Draw(t, "eighths"))*8 + 0.125}
	case "list", "map":
		first := drawTyped(t, depth-1, false)
		if kind == "list" {
			out = typedTree{tftypes.List{ElementType: first.typ}, []any{first.tree, backends.Unknown}}
		} else {
			out = typedTree{tftypes.Map{ElementType: first.typ}, backends.Values{"a": first.tree, "b": backends.Unknown}}
		}
	default:
		types, tree := map[string]tftypes.Type{}, backends.Values{}
		for i := range rapid.IntRange(0, 3).Draw(t, "attributes") {
			name := fmt.Sprintf("a%d", i)
			attribute := drawTyped(t, depth-1, true)
			types[name] = attribute.typ
			if attribute.tree != nil {
				tree[name] = attribute.tree
			}
		}
		out = typedTree{tftypes.Object{AttributeTypes: types}, tree}
	}
	switch rapid.IntRange(0, 9).Draw(t, "instead") {
	case 0:
		out.tree = backends.Unknown
	case 1:
		if inObject {
			out.tree = nil
		}
	}
	return out
}

func TestTreesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTyped(t, 3, true)
		value, err := protocolValue(want.typ, want.tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := treeOf(value); !reflect.DeepEqual(got, want.tree) {
			t.Fatalf("got %#v, want %#v", got, want.tree)
		}
	})
}

func TestTreeOf(t *testing.T) {
	text := func(s any) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	for name, test := range map[string]struct {
		value tftypes.Value
		want  any
	}{
		"null":            {text(nil), nil},
		"unknown":         {text(tftypes.UnknownValue), backends.Unknown},
		"2^53 + 1":        {tftypes.NewValue(tftypes.Number, new(big.Float).SetInt64(1<<53+1)), int64(1<<53 + 1)},
		"more than int64": {tftypes.NewValue(tftypes.Number, big.NewFloat(1e30)), 1e30},
		"null in a list stays": {
			tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{text("a"), text(nil), text("c")}),
			[]any{"a", nil, "c"},
		},
		"null in an object goes": {
			tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.String, "b": tftypes.String}},
				map[string]tftypes.Value{"a": text(nil), "b": text("b")}),
			backends.Values{"b": "b"},
		},
		"set": {
			tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text("a")}),
			[]any{"a"},
		},
	} {
		if got := treeOf(test.value); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %#v, want %#v", name, got, test.want)
		}
	}
}

func TestProtocolValueRefuses(t *testing.T) {
	object := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.String}}
	for name, test := range map[string]typedTree{
		"a number as text":  {tftypes.String, int64(1)},
		"a list as text":    {tftypes.String, []any{"a"}},
		"a tree as text":    {tftypes.String, backends.Values{}},
		"unknown attribute": {object, backends.Values{"b": "b"}},
		"deep":              {object, backends.Values{"a": true}},
		"in a list":         {tftypes.List{ElementType: tftypes.Bool}, []any{"a"}},
		"in a map":          {tftypes.Map{ElementType: tftypes.Bool}, backends.Values{"a": "b"}},
	} {
		if v, err := protocolValue(test.typ, test.tree); err == nil {
			t.Errorf("%s: became %s", name, v)
		}
	}
}

func TestSecretReferences(t *testing.T) {
	got := secretReferences(backends.Values{
		"token": "secret://root/b", "text": "no reference", "unknown": backends.Unknown, "n": int64(1),
		"certificate": "env://CA", "nested": backends.Values{"list": []any{"vault://kv/a#b", backends.Values{"key": "env://CA"}}},
	})
	if want := []string{"env://CA", "secret://root/b", "vault://kv/a#b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A decimal means what was written, not the nearest binary number.
func TestExact(t *testing.T) {
	n, _, err := big.ParseFloat("0.1", 10, numberPrecision, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	if got := exact(treeOf(tftypes.NewValue(tftypes.Number, n))); got == nil || got.Cmp(big.NewRat(1, 10)) != 0 {
		t.Errorf("0.1 became %v", got)
	}
	if got := decimal(big.NewRat(1, 10)); got.Cmp(n) != 0 {
		t.Errorf("1/10 became %v", got)
	}
}

// Prices keep the vendors' 16 digits, and are in a state the number that the same
// digits are in a configuration or a data source.
func TestPricesAreOneNumber(t *testing.T) {
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"price_per_hour": tftypes.Number}}
	for _, digits := range []string{"0.0052000000000017", "0.1", "12", "0.000000000000000001"} {
		r, err := newRecord(tftypes.NewValue(typ, nil))
		if err != nil {
			t.Fatal(err)
		}
		price, _ := new(big.Rat).SetString(digits)
		r.setNumber("price_per_hour", price)
		n, _ := parseDecimal(digits)
		if want := tftypes.NewValue(tftypes.Number, n); !r.values["price_per_hour"].Equal(want) {
			t.Errorf("%s: got %s, want %s", digits, r.values["price_per_hour"], want)
		}
		if row := offerRow(backends.Offer{PricePerHour: price}); n.Cmp(row["price_per_hour"].(*big.Float)) != 0 {
			t.Errorf("%s: the data source has %v", digits, row["price_per_hour"])
		}
	}
}
