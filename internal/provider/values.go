// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"math"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// treeOf turns a value of the protocol into what [backends.Values] hold: null is
// nil, and absent inside a tree; unknown is [backends.Unknown]; a number is an
// int64 where it is whole and fits, else the nearest float64 that is finite and, but
// for zero, not zero (no number becomes one that means something else); lists, sets and tuples are
// []any, a null element in its place as nil, so that an index in an issue's path
// is the user's; objects and maps are [backends.Values].
func treeOf(v tftypes.Value) any {
	switch {
	case !v.IsKnown():
		return backends.Unknown
	case v.IsNull():
		return nil
	}
	// As can't fail below: the target is the type's own.
	typ := v.Type()
	switch {
	case typ.Is(tftypes.String):
		var s string
		_ = v.As(&s)
		return s
	case typ.Is(tftypes.Bool):
		var b bool
		_ = v.As(&b)
		return b
	case typ.Is(tftypes.Number):
		return numberOf(v)
	case typ.Is(tftypes.Object{}), typ.Is(tftypes.Map{}):
		var attributes map[string]tftypes.Value
		_ = v.As(&attributes)
		out := make(backends.Values, len(attributes))
		for name, attribute := range attributes {
			if value := treeOf(attribute); value != nil {
				out[name] = value
			}
		}
		return out
	default: // lists, sets and tuples: nothing else is in our schemas
		var elements []tftypes.Value
		_ = v.As(&elements)
		out := make([]any, len(elements))
		for i, element := range elements {
			out[i] = treeOf(element)
		}
		return out
	}
}

func numberOf(v tftypes.Value) any {
	n := new(big.Float)
	_ = v.As(&n)
	if i, accuracy := n.Int64(); accuracy == big.Exact {
		return i
	}
	f, _ := n.Float64()
	switch {
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, f)
	case f == 0:
		f = math.Copysign(math.SmallestNonzeroFloat64, f)
	}
	return f
}

// valuesOf is a whole configuration, plan or state (its Raw) as a tree; nil when
// it is null or unknown as a whole.
func valuesOf(raw tftypes.Value) backends.Values {
	tree, _ := treeOf(raw).(backends.Values)
	return tree
}

// protocolValue is the inverse of [treeOf] for a type: what the tree lacks is
// null. It fails where the tree doesn't fit the type.
func protocolValue(typ tftypes.Type, tree any) (tftypes.Value, error) {
	switch {
	case backends.IsUnknown(tree):
		return tftypes.NewValue(typ, tftypes.UnknownValue), nil
	case tree == nil:
		return tftypes.NewValue(typ, nil), nil
	}
	switch x := tree.(type) {
	case backends.Values:
		if object, ok := typ.(tftypes.Object); ok {
			return protocolObject(object, x)
		}
		if m, ok := typ.(tftypes.Map); ok {
			return protocolMap(m, x)
		}
	case []any:
		switch t := typ.(type) {
		case tftypes.List:
			return protocolElements(typ, t.ElementType, x)
		case tftypes.Set:
			return protocolElements(typ, t.ElementType, x)
		}
	default:
		if err := tftypes.ValidateValue(typ, tree); err != nil {
			return tftypes.Value{}, fmt.Errorf("a %T doesn't fit the type %s: %w", tree, typ, err)
		}
		return tftypes.NewValue(typ, tree), nil
	}
	return tftypes.Value{}, fmt.Errorf("a %T doesn't fit the type %s", tree, typ)
}

func protocolObject(typ tftypes.Object, tree backends.Values) (tftypes.Value, error) {
	for name := range tree {
		if _, ok := typ.AttributeTypes[name]; !ok {
			return tftypes.Value{}, fmt.Errorf("the type has no attribute %q", name)
		}
	}
	out := make(map[string]tftypes.Value, len(typ.AttributeTypes))
	for name, t := range typ.AttributeTypes {
		v, err := protocolValue(t, tree[name])
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = v
	}
	return tftypes.NewValue(typ, out), nil
}

func protocolMap(typ tftypes.Map, tree backends.Values) (tftypes.Value, error) {
	out := make(map[string]tftypes.Value, len(tree))
	for name, element := range tree {
		v, err := protocolValue(typ.ElementType, element)
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = v
	}
	return tftypes.NewValue(typ, out), nil
}

func protocolElements(typ, elementType tftypes.Type, list []any) (tftypes.Value, error) {
	out := make([]tftypes.Value, len(list))
	for i, element := range list {
		v, err := protocolValue(elementType, element)
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("[%d]: %w", i, err)
		}
		out[i] = v
	}
	return tftypes.NewValue(typ, out), nil
}

// numberPrecision is the precision in bits with which the CLIs read decimals: with
// another, 0.1 from a uri would differ from the 0.1 of a configuration.
const numberPrecision = 512

// priceDigits is how many digits a price keeps behind the point, where it needs
// more than that: the vendors' have 16.
const priceDigits = 18

// decimal is a price as the number that the CLIs make of its digits.
func decimal(price *big.Rat) *big.Float {
	digits, _ := price.FloatPrec()
	n, _ := parseDecimal(price.FloatString(min(digits, priceDigits))) // digits always parse
	return n
}

// parseDecimal reads a number as the CLIs do.
func parseDecimal(digits string) (*big.Float, bool) {
	n, _, err := big.ParseFloat(digits, 10, numberPrecision, big.ToNearestEven)
	return n, err == nil
}

// newRecords are two objects of one request: a plan, and the state before it or the
// configuration behind it.
func newRecords(planRaw, priorRaw tftypes.Value) (plan, prior record, err error) {
	if plan, err = newRecord(planRaw); err == nil {
		prior, err = newRecord(priorRaw)
	}
	return plan, prior, err
}
