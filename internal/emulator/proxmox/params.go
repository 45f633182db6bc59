// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the type of a parameter; the zero kind is a string.
type kind int

const (
	text kind = iota
	integer
	number
	boolean
)

func (k kind) String() string { return [...]string{"string", "integer", "number", "boolean"}[k] }

// param is a parameter as the API's schema has it. "[n]" in a name stands for a
// number.
type param struct {
	name      string
	kind      kind
	optional  bool
	format    string
	min, max  *float64
	maxLength int
	pattern   string
	enum      []string
}

func words(text string) []string { return strings.Fields(text) }

// buses are the kinds of drives, with how many of each there can be.
var buses = []struct {
	name  string
	count int
}{{"ide", 4}, {"scsi", 31}, {"virtio", 16}, {"sata", 6}}

// drives are the names of all drives that can be resized, in the schema's order.
var drives = func() []string {
	var names []string
	for _, bus := range buses {
		for i := range bus.count {
			names = append(names, bus.name+strconv.Itoa(i))
		}
	}
	return append(names, "efidisk0", "tpmstate0")
}()

// numbered are how many of each numbered option there can be.
var numbered = map[string]int{
	"hostpci": 16, "ide": 4, "ipconfig": 32, "net": 32, "numa": 8, "parallel": 3, "sata": 6, "scsi": 31, "serial": 4,
	"unused": 256, "usb": 14, "virtio": 16, "virtiofs": 10,
}

// find finds the parameter with a name.
func find(params []param, name string) (param, bool) {
	for _, p := range params {
		if p.name == name {
			return p, true
		}
	}
	base := strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(base):])
	if err != nil || n >= numbered[base] || name != base+strconv.Itoa(n) {
		return param{}, false
	}
	i := slices.IndexFunc(params, func(p param) bool { return p.name == base+"[n]" })
	if i < 0 {
		return param{}, false
	}
	return params[i], true
}

// verify holds a call's parameters against their schema, makes booleans 0 and 1,
// and returns what is wrong with which.
func verify(params []param, values map[string]string) map[string]string {
	wrong := map[string]string{}
	for name, value := range values {
		p, known := find(params, name)
		if !known {
			wrong[name] = "property is not defined in schema and the schema does not allow additional properties"
			continue
		}
		checked, problem := p.check(value)
		if problem != "" {
			wrong[name] = problem
			continue
		}
		values[name] = checked
	}
	for _, p := range params {
		if _, given := values[p.name]; !given && !p.optional {
			wrong[p.name] = "property is missing and it is not optional"
		}
	}
	return wrong
}

func (p param) check(value string) (checked, problem string) {
	switch p.kind {
	case boolean:
		switch strings.ToLower(value) {
		case "1", "on", "yes", "true":
			return "1", ""
		case "0", "off", "no", "false":
			return "0", ""
		}
		return "", p.wrongType(value)
	case integer, number:
		n, err := strconv.ParseFloat(value, 64)
		if p.kind == integer {
			_, err = strconv.ParseInt(value, 10, 64)
		}
		switch {
		case err != nil:
			return "", p.wrongType(value)
		case p.min != nil && n < *p.min:
			return "", fmt.Sprintf("value must have a minimum value of %s", decimal(*p.min))
		case p.max != nil && n > *p.max:
			return "", fmt.Sprintf("value must have a maximum value of %s", decimal(*p.max))
		}
	}
	switch {
	case p.maxLength > 0 && utf8.RuneCountInString(value) > p.maxLength:
		return "", fmt.Sprintf("value may only be %d characters long", p.maxLength)
	case len(p.enum) > 0 && !slices.Contains(p.enum, value):
		return "", fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(p.enum, ", "))
	case p.pattern != "" && !p.matches(value):
		return "", "value does not match the regex pattern"
	}
	// An empty value of an option is let pass, as the real one does.
	if verifier := formats[p.format]; verifier != nil && value != "" {
		return value, verifier(value)
	}
	return value, ""
}

// matches holds a value against the pattern. (?^:…) is Perl's for (?:…).
func (p param) matches(value string) bool {
	pattern, err := regexp.Compile("^(?:" + strings.ReplaceAll(p.pattern, "(?^:", "(?:") + ")$")
	return err != nil || pattern.MatchString(value)
}

func (p param) wrongType(value string) string {
	return fmt.Sprintf("type check ('%s') failed - got '%s'", p.kind, value)
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
