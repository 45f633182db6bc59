// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

// Values is a configuration as a plain tree. A leaf is a string, bool, int64 or
// float64; a node is Values or []any. A null is an absent key. [Unknown] stands
// for what a plan doesn't know yet: checks pass over it.
type Values map[string]any

// Unknown is the value of something not known until apply.
var Unknown any = unknown{}

type unknown struct{}

// IsUnknown tells whether v is [Unknown].
func IsUnknown(v any) bool {
	_, ok := v.(unknown)
	return ok
}

// String is the text at a name; "" when absent or unknown.
func (v Values) String(name string) string {
	s, _ := v[name].(string)
	return s
}

// Bool is the truth at a name; false when absent or unknown.
func (v Values) Bool(name string) bool {
	b, _ := v[name].(bool)
	return b
}

// Int is the integer at a name; 0 when absent or unknown.
func (v Values) Int(name string) int64 {
	i, _ := v[name].(int64)
	return i
}

// Has tells whether a name is set to a known value.
func (v Values) Has(name string) bool {
	x, ok := v[name]
	return ok && !IsUnknown(x)
}

// Object is the nested tree at a name; nil when absent or unknown.
func (v Values) Object(name string) Values {
	o, _ := v[name].(Values)
	return o
}

// List is the list at a name; nil when absent or unknown.
func (v Values) List(name string) []any {
	l, _ := v[name].([]any)
	return l
}

// Strings are the known texts of the list at a name.
func (v Values) Strings(name string) []string {
	var out []string
	for _, e := range v.List(name) {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Clone is a deep copy.
func (v Values) Clone() Values {
	if v == nil {
		return nil
	}
	out := make(Values, len(v))
	for k, e := range v {
		out[k] = cloneValue(e)
	}
	return out
}

func cloneValue(e any) any {
	switch x := e.(type) {
	case Values:
		return x.Clone()
	case []any:
		l := make([]any, len(x))
		for i := range x {
			l[i] = cloneValue(x[i])
		}
		return l
	default:
		return e
	}
}

// AllKnown tells whether no part of the tree is [Unknown].
func (v Values) AllKnown() bool {
	for _, e := range v {
		if !known(e) {
			return false
		}
	}
	return true
}

func known(e any) bool {
	switch x := e.(type) {
	case unknown:
		return false
	case Values:
		return x.AllKnown()
	case []any:
		for i := range x {
			if !known(x[i]) {
				return false
			}
		}
	}
	return true
}
