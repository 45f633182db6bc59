// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package pveapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var index = regexp.MustCompile(`^(.*?)(\d+)$`)

// lookup finds the definition of a name; "net[n]" is that of net0.
func lookup(all map[string]Definition, name string) (Definition, bool) {
	if d, found := all[name]; found {
		return d, true
	}
	parts := index.FindStringSubmatch(name)
	if parts == nil {
		return Definition{}, false
	}
	d, found := all[parts[1]+"[n]"]
	return d, found
}

// params are what is wrong with the parameters of a call.
func (m Method) params(values map[string]string) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		d, known := lookup(m.Params, name)
		if !known {
			wrong = append(wrong, "parameter "+name+": unknown")
			continue
		}
		if problem := d.text(values[name]); problem != "" {
			wrong = append(wrong, "parameter "+name+": "+problem)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Params)) {
		if _, given := values[name]; !given && !m.Params[name].Optional && !strings.Contains(name, "[") {
			wrong = append(wrong, "parameter "+name+": missing")
		}
	}
	return wrong
}

// text is what is wrong with a parameter's value.
func (d Definition) text(value string) string {
	switch d.Type {
	case "boolean":
		if !slices.Contains([]string{"0", "1", "on", "off", "yes", "no", "true", "false"}, strings.ToLower(value)) {
			return fmt.Sprintf("%q is not a boolean", value)
		}
	case "integer", "number":
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || (d.Type == "integer" && n != float64(int64(n))) {
			return fmt.Sprintf("%q is not of type %s", value, d.Type)
		}
		return d.inRange(n)
	}
	return d.allowed(value)
}

func (d Definition) inRange(n float64) string {
	switch {
	case d.Minimum != nil && n < *d.Minimum:
		return fmt.Sprintf("%v is less than %v", n, *d.Minimum)
	case d.Maximum != nil && n > *d.Maximum:
		return fmt.Sprintf("%v is more than %v", n, *d.Maximum)
	}
	return ""
}

// allowed is what is wrong with a text: its length, words, or pattern.
func (d Definition) allowed(value string) string {
	if len(d.Enum) > 0 && !slices.Contains(d.Enum, value) {
		return fmt.Sprintf("%q is none of %v", value, d.Enum)
	}
	if d.MaxLength > 0 && len([]rune(value)) > d.MaxLength {
		return fmt.Sprintf("%d characters are more than %d", len([]rune(value)), d.MaxLength)
	}
	if d.Pattern == "" {
		return ""
	}
	// (?^:…) is Perl's for (?:…).
	pattern, err := regexp.Compile("^(?:" + strings.ReplaceAll(d.Pattern, "(?^:", "(?:") + ")$")
	if err == nil && !pattern.MatchString(value) {
		return fmt.Sprintf("%q does not match %s", value, d.Pattern)
	}
	return ""
}

// value is what is wrong with a part of an answer. What the description doesn't
// mention is let pass: it says nothing of additional properties, and the real API
// has them.
func (d Definition) value(where string, value any) []string {
	bad := func(format string, args ...any) []string {
		return []string{where + ": " + fmt.Sprintf(format, args...)}
	}
	switch d.Type {
	case "null":
		if value != nil {
			return bad("%v is not null", value)
		}
	case "boolean":
		// Perl has no booleans: 0 and 1, and in a few places real ones.
		n, isNumber := value.(json.Number)
		if _, isBool := value.(bool); !isBool && (!isNumber || (n != "0" && n != "1")) {
			return bad("%#v is neither 0 nor 1", value)
		}
	case "integer", "number":
		n, isNumber := value.(json.Number)
		if !isNumber {
			return bad("%#v is not of type %s", value, d.Type)
		}
		f, err := n.Float64()
		if err != nil || (d.Type == "integer" && f != float64(int64(f))) {
			return bad("%s is not of type %s", n, d.Type)
		}
		if problem := d.inRange(f); problem != "" {
			return bad("%s", problem)
		}
	case "string":
		text, isText := value.(string)
		if !isText {
			return bad("%#v is not a string", value)
		}
		if problem := d.allowed(text); problem != "" {
			return bad("%s", problem)
		}
	case "array":
		return d.array(where, value)
	case "object":
		return d.object(where, value)
	}
	return nil
}

func (d Definition) array(where string, value any) []string {
	items, isArray := value.([]any)
	if !isArray {
		return []string{fmt.Sprintf("%s: %#v is not an array", where, value)}
	}
	if d.Items == nil {
		return nil
	}
	var wrong []string
	for i, item := range items {
		wrong = append(wrong, d.Items.value(fmt.Sprintf("%s/%d", where, i), item)...)
	}
	return wrong
}

func (d Definition) object(where string, value any) []string {
	object, isObject := value.(map[string]any)
	if !isObject {
		return []string{fmt.Sprintf("%s: %#v is not an object", where, value)}
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if property, known := lookup(d.Properties, name); known {
			wrong = append(wrong, property.value(where+"/"+name, object[name])...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		if _, given := object[name]; !given && !d.Properties[name].Optional && !strings.Contains(name, "[") {
			wrong = append(wrong, where+"/"+name+": missing")
		}
	}
	return wrong
}
