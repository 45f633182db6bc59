// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/secrets"
)

// checkConfig returns everything that is wrong with an account's configuration:
// what the manifest says, references that can't be parsed, and, when those are
// right, what the definition finds in the whole. Paths begin with at.
func checkConfig(d *backends.Definition, config backends.Values, at backends.Path) []*backends.Error {
	issues := backends.Validate(d.Manifest.Account, config, at)
	if len(issues) > 0 {
		return issues
	}
	if issues = checkReferences(config, at); len(issues) > 0 || d.CheckAccount == nil {
		return issues
	}
	for _, e := range d.CheckAccount(backends.WithDefaults(d.Manifest.Account, config)) {
		path := e.Path
		if len(path) == 0 || path[0] != d.Attribute() { // relative to the account's attribute
			path = at.Join(path...)
		} else {
			path = at.Join(path[1:]...)
		}
		issues = append(issues, e.At(path...))
	}
	return issues
}

// checkReferences parses every text that has a secret reference's scheme. Secret
// fields hold nothing else: [backends.Validate] has seen to that.
func checkReferences(value any, at backends.Path) []*backends.Error {
	var issues []*backends.Error
	switch x := value.(type) {
	case backends.Values:
		for _, name := range sortedKeys(x) {
			issues = append(issues, checkReferences(x[name], at.Join(name))...)
		}
	case []any:
		for i, e := range x {
			issues = append(issues, checkReferences(e, at.Join(i))...)
		}
	case string:
		scheme, _, _ := strings.Cut(x, "://")
		switch secrets.Scheme(scheme) {
		case secrets.SchemeEnv, secrets.SchemeSecret, secrets.SchemeVault:
			if _, err := secrets.Parse(x); err != nil {
				issues = append(issues, backends.AsError(err).At(at...))
			}
		}
	}
	return issues
}

func sortedKeys(v backends.Values) []string {
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// prune is a copy of a valid configuration without what equals a default, sets
// sorted and without repeats. A nested object or a list that is there stays,
// though it may become empty: being there is not the same as being absent.
func prune(fields []backends.Field, v backends.Values) backends.Values {
	out := backends.Values{}
	for _, f := range fields {
		value, set := v[f.Name]
		if !set {
			continue
		}
		pruned := pruneValue(f, value)
		if f.Default != nil && reflect.DeepEqual(pruned, pruneValue(f, f.Default)) {
			continue
		}
		out[f.Name] = pruned
	}
	return out
}

func pruneValue(f backends.Field, value any) any {
	switch x := value.(type) {
	case backends.Values:
		return prune(f.Fields, x)
	case []any:
		l := slices.Clone(x)
		known := !slices.ContainsFunc(l, backends.IsUnknown)
		if f.Type == backends.TypeStringSet && known {
			slices.SortFunc(l, func(a, b any) int { return strings.Compare(text(a), text(b)) })
			l = slices.Compact(l)
		}
		if l == nil {
			l = []any{}
		}
		return l
	default:
		return value
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// flatten writes a pruned configuration as entries of a query.
func flatten(v backends.Values, prefix string) []pair {
	var out []pair
	for name, value := range v {
		key := prefix + name
		switch x := value.(type) {
		case backends.Values:
			if len(x) == 0 {
				out = append(out, pair{key, ""})
			}
			out = append(out, flatten(x, key+".")...)
		case []any:
			elements := make([]string, len(x))
			for i, e := range x {
				elements[i] = encode(text(e), true)
			}
			out = append(out, pair{key, strings.Join(elements, ",")})
		case string:
			out = append(out, pair{key, encode(x, false)})
		case int64:
			out = append(out, pair{key, strconv.FormatInt(x, 10)})
		case bool:
			out = append(out, pair{key, strconv.FormatBool(x)})
		}
	}
	return out
}

// setField reads one entry of a query, its value still encoded, into a
// configuration.
func setField(fields []backends.Field, config backends.Values, key, value string) *backends.Error {
	all := fields
	steps := strings.Split(key, ".")
	for _, step := range steps[:len(steps)-1] {
		f, ok := field(fields, step)
		if !ok || f.Type != backends.TypeObject {
			return unknownKey(key, keysOf(all, ""))
		}
		inner := config.Object(step)
		if inner == nil {
			inner = backends.Values{}
			config[step] = inner
		}
		fields, config = f.Fields, inner
	}
	name := steps[len(steps)-1]
	f, ok := field(fields, name)
	if !ok {
		return unknownKey(key, keysOf(all, ""))
	}
	parsed, problem := parseValue(f, value)
	if problem != "" {
		return badPart(keyName(key), problem)
	}
	if _, there := config[name]; !there { // an object may be there by its fields
		config[name] = parsed
	}
	return nil
}

func parseValue(f backends.Field, value string) (any, string) {
	switch f.Type {
	case backends.TypeStringList, backends.TypeStringSet:
		list := []any{}
		if value == "" {
			return list, ""
		}
		for raw := range strings.SplitSeq(value, ",") {
			e, ok := decode(raw)
			if !ok {
				return nil, badEncoding
			}
			list = append(list, e)
		}
		return list, ""
	case backends.TypeObject:
		if value != "" {
			return nil, "It is an object: its fields have keys of their own, with dots."
		}
		return backends.Values{}, ""
	}
	s, ok := decode(value)
	if !ok {
		return nil, badEncoding
	}
	switch f.Type {
	case backends.TypeInt:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, "It is a whole number."
		}
		return n, ""
	case backends.TypeBool:
		b, ok := parseBool(s)
		if !ok {
			return nil, "It is true or false."
		}
		return b, ""
	default:
		return s, ""
	}
}

func parseBool(s string) (value, ok bool) { return s == "true", s == "true" || s == "false" }

func field(fields []backends.Field, name string) (backends.Field, bool) {
	i := slices.IndexFunc(fields, func(f backends.Field) bool { return f.Name == name })
	if i < 0 {
		return backends.Field{}, false
	}
	return fields[i], true
}

// keysOf are the keys that a cloud's uris know.
func keysOf(fields []backends.Field, prefix string) []string {
	var out []string
	for _, f := range fields {
		if f.Type == backends.TypeObject {
			out = append(out, keysOf(f.Fields, prefix+f.Name+".")...)
		} else {
			out = append(out, prefix+f.Name)
		}
	}
	slices.Sort(out)
	return out
}
