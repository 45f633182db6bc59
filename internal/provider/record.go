// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// record is a resource's object, attribute by attribute. A model struct can't
// stand for it: part of the schema is declared by the backends' manifests. It also
// costs less than reading and writing attributes one by one by path.
type record struct {
	typ    tftypes.Object
	values map[string]tftypes.Value
}

// newRecord reads an object; a null one gives a record of nulls.
func newRecord(raw tftypes.Value) (record, error) {
	typ, ok := raw.Type().(tftypes.Object)
	if !ok {
		return record{}, fmt.Errorf("the object has type %s", raw.Type())
	}
	r := record{typ: typ, values: map[string]tftypes.Value{}}
	if raw.IsNull() || !raw.IsKnown() {
		for name, t := range typ.AttributeTypes {
			r.values[name] = tftypes.NewValue(t, nil)
		}
		return r, nil
	}
	if err := raw.As(&r.values); err != nil {
		return record{}, fmt.Errorf("reading the object: %w", err)
	}
	return r, nil
}

func (r record) clone() record { return record{r.typ, maps.Clone(r.values)} }

// raw is the object again.
func (r record) raw() tftypes.Value { return tftypes.NewValue(r.typ, r.values) }

func (r record) isNull(name string) bool { return r.values[name].IsNull() }

// isKnown tells whether a value is known through and through; null is known.
func (r record) isKnown(name string) bool { return r.values[name].IsFullyKnown() }

// has tells whether a value is known and not null.
func (r record) has(name string) bool { return r.isKnown(name) && !r.isNull(name) }

func (r record) equal(name string, other record) bool {
	return r.values[name].Equal(other.values[name])
}

// text is a string; "" when it is null or unknown.
func (r record) text(name string) string {
	var s string
	if r.has(name) {
		_ = r.values[name].As(&s) // the schema says it is a string
	}
	return s
}

// truth is a bool; false when it is null or unknown.
func (r record) truth(name string) bool {
	var b bool
	if r.has(name) {
		_ = r.values[name].As(&b) // the schema says it is a bool
	}
	return b
}

// whole is a whole number; 0 when it is null, unknown or none.
func (r record) whole(name string) int64 {
	n, _ := treeOf(r.values[name]).(int64)
	return n
}

// texts is a list or set of strings, without its unknown and null elements.
func (r record) texts(name string) []string {
	var list []tftypes.Value
	if v := r.values[name]; !v.IsKnown() || v.IsNull() || v.As(&list) != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		var s string
		if e.IsKnown() && !e.IsNull() && e.As(&s) == nil {
			out = append(out, s)
		}
	}
	return out
}

// textMap is a map of strings, without its unknown and null elements.
func (r record) textMap(name string) map[string]string {
	var m map[string]tftypes.Value
	if v := r.values[name]; !v.IsKnown() || v.IsNull() || v.As(&m) != nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, e := range m {
		var s string
		if e.IsKnown() && !e.IsNull() && e.As(&s) == nil {
			out[k] = s
		}
	}
	return out
}

func (r record) setNull(name string) {
	r.values[name] = tftypes.NewValue(r.typ.AttributeTypes[name], nil)
}

func (r record) setUnknown(names ...string) {
	for _, name := range names {
		r.values[name] = tftypes.NewValue(r.typ.AttributeTypes[name], tftypes.UnknownValue)
	}
}

// setText sets a string; "" is null.
func (r record) setText(name, s string) {
	if s == "" {
		r.setNull(name)
		return
	}
	r.values[name] = tftypes.NewValue(tftypes.String, s)
}

func (r record) setTruth(name string, b bool) {
	r.values[name] = tftypes.NewValue(tftypes.Bool, b)
}

// setNumber sets a number, nil is null.
func (r record) setNumber(name string, n *big.Rat) {
	if n == nil {
		r.setNull(name)
		return
	}
	r.values[name] = tftypes.NewValue(tftypes.Number, decimal(n))
}

// setWhole sets a whole number.
func (r record) setWhole(name string, n int64) { r.setNumber(name, new(big.Rat).SetInt64(n)) }

// setTexts sets a list or set of strings.
func (r record) setTexts(name string, texts []string) {
	values := make([]tftypes.Value, len(texts))
	for i, text := range texts {
		values[i] = tftypes.NewValue(tftypes.String, text)
	}
	r.values[name] = tftypes.NewValue(r.typ.AttributeTypes[name], values)
}

// setObject sets an object whose attributes are all strings; "" is null. A nil one
// is null as a whole.
func (r record) setObject(name string, attributes map[string]string) {
	if attributes == nil {
		r.setNull(name)
		return
	}
	r.values[name] = tftypes.NewValue(r.typ.AttributeTypes[name], stringValues(attributes))
}

// stringValues are strings as values; "" is null.
func stringValues(texts map[string]string) map[string]tftypes.Value {
	out := make(map[string]tftypes.Value, len(texts))
	for k, v := range texts {
		if v == "" {
			out[k] = tftypes.NewValue(tftypes.String, nil)
			continue
		}
		out[k] = tftypes.NewValue(tftypes.String, v)
	}
	return out
}

// setObjects sets a list of objects whose attributes are all strings; "" is null.
func (r record) setObjects(name string, rows []map[string]string) {
	list, ok := r.typ.AttributeTypes[name].(tftypes.List)
	if !ok {
		return
	}
	values := make([]tftypes.Value, len(rows))
	for i, row := range rows {
		values[i] = tftypes.NewValue(list.ElementType, stringValues(row))
	}
	r.values[name] = tftypes.NewValue(list, values)
}
