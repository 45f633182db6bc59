// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package openapitest

import (
	"fmt"
	"slices"
	"strings"
)

// inline replaces references to whole operations, parameters, request bodies and
// responses by what they mean: descriptions that were bundled from many files
// have them. References to schemas stay; the JSON Schema library follows those.
func inline(document any) error {
	root, _ := document.(map[string]any)
	paths, _ := root["paths"].(map[string]any)
	r := resolver{root: root}
	for _, item := range paths {
		item, _ := item.(map[string]any)
		r.list(item["parameters"])
		r.values(item)
		for _, operation := range item {
			operation, ok := operation.(map[string]any)
			if !ok {
				continue
			}
			r.list(operation["parameters"])
			r.field(operation, "requestBody")
			if responses, ok := operation["responses"].(map[string]any); ok {
				r.values(responses)
			}
		}
	}
	return r.err
}

// resolver replaces references, and keeps the first one that leads nowhere.
type resolver struct {
	root map[string]any
	err  error
}

func (r *resolver) list(list any) {
	items, _ := list.([]any)
	for i := range items {
		items[i] = r.follow(items[i])
	}
}

func (r *resolver) values(m map[string]any) {
	for key := range m {
		r.field(m, key)
	}
}

func (r *resolver) field(m map[string]any, key string) {
	if value, ok := m[key]; ok {
		m[key] = r.follow(value)
	}
}

// follow returns what a value means, if it is a reference; else the value.
func (r *resolver) follow(value any) any {
	// A chain of references in a description is short; a loop is not.
	for range 20 {
		object, _ := value.(map[string]any)
		reference, ok := object["$ref"].(string)
		if !ok {
			return value
		}
		var target any = r.root
		for part := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
			below, _ := target.(map[string]any)
			target = below[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		if target == nil {
			r.fail(reference)
			return value
		}
		value = target
	}
	r.fail("a loop of references")
	return value
}

func (r *resolver) fail(reference string) {
	if r.err == nil {
		r.err = fmt.Errorf("the description has no %s", reference)
	}
}

// modernize turns the schemas of OpenAPI 3.0 into those of 3.1, which are JSON
// Schemas: "nullable" is the one thing of it that vendors use and JSON Schema
// doesn't know.
func modernize(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			modernize(item)
		}
	case map[string]any:
		for _, item := range value {
			modernize(item)
		}
		if value["nullable"] != true {
			return
		}
		delete(value, "nullable")
		if kind, ok := value["type"].(string); ok {
			value["type"] = []any{kind, "null"}
		}
		if enum, ok := value["enum"].([]any); ok && !slices.Contains(enum, nil) {
			value["enum"] = append(enum, nil)
		}
	}
}
