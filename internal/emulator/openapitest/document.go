// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package openapitest holds what goes through a handler against a vendor's
// published OpenAPI description: each request that a client sends and each
// answer that an emulator gives.
//
// The descriptions are not part of this project. The variable OPENAPI_DIR names
// the folder where they are; without it the tests that need them are skipped,
// and say so.
//
// A schema of OpenAPI 3.1 is a JSON Schema (one of 3.0 is made so), so a JSON
// Schema library validates the bodies, and compiles only the schemas that a test
// meets. A validator of whole descriptions (libopenapi-validator) compiles all of
// them first, which for a description of 3.4 MB without references takes minutes.
package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/jsonschema/v6"
)

// Variable names the folder with the descriptions.
const Variable = "OPENAPI_DIR"

// Document is a vendor's description. Several tests may use one at once.
type Document struct {
	basePath string
	paths    map[string]map[string]json.RawMessage

	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	operations map[string]*operation
}

// operation is a method of a path.
type operation struct {
	// location is its JSON pointer in the document.
	location    string
	Parameters  []parameter `json:"parameters"`
	RequestBody *struct {
		Required bool                       `json:"required"`
		Content  map[string]json.RawMessage `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]json.RawMessage `json:"content"`
	} `json:"responses"`
}

type parameter struct {
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required"`
	Schema   struct {
		Type  any `json:"type"`
		Items struct {
			Type any `json:"type"`
		} `json:"items"`
	} `json:"schema"`
}

// loaded are the descriptions by their files' paths.
var loaded = struct {
	sync.Mutex
	documents map[string]func() (*Document, error)
}{documents: map[string]func() (*Document, error){}}

// Load reads a description of OPENAPI_DIR, e.g. "hetzner.json", once for all
// tests of a process. The test is skipped when the variable is not set.
func Load(t testing.TB, name string) *Document {
	t.Helper()
	folder := os.Getenv(Variable)
	if folder == "" {
		t.Skipf("%s is not set: it names the folder with %s, the vendor's API description", Variable, name)
	}
	path := filepath.Join(folder, name)
	loaded.Lock()
	once, known := loaded.documents[path]
	if !known {
		once = sync.OnceValues(func() (*Document, error) { return read(path) })
		loaded.documents[path] = once
	}
	loaded.Unlock()
	document, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// resource is the name under which the compiler knows the description.
const resource = "mem://description.json"

func read(path string) (*Document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := inline(value); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	modernize(value)
	if text, err = json.Marshal(value); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var outline struct {
		Servers []struct {
			URL string `json:"url"`
		} `json:"servers"`
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &outline); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := &Document{paths: outline.Paths, compiler: jsonschema.NewCompiler(), operations: map[string]*operation{}}
	if len(outline.Servers) > 0 {
		server, err := url.Parse(outline.Servers[0].URL)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		d.basePath = strings.TrimSuffix(server.Path, "/")
	}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(resource, value)
}

// find looks for a request's path, as the description writes it. A literal
// part is better than a parameter.
func (d *Document) find(path string) (template string, found bool) {
	below, ok := strings.CutPrefix(path, d.basePath)
	if !ok {
		return "", false
	}
	parts := strings.Split(below, "/")
	best := -1
	for candidate := range d.paths {
		if literals := fit(strings.Split(candidate, "/"), parts); literals > best {
			template, best = candidate, literals
		}
	}
	return template, best >= 0
}

// fit counts the literal parts of a template that fits; -1 when it doesn't.
func fit(template, parts []string) int {
	if len(template) != len(parts) {
		return -1
	}
	literals := 0
	for i, want := range template {
		switch {
		case want == parts[i]:
			literals++
		case !strings.HasPrefix(want, "{") || parts[i] == "":
			return -1
		}
	}
	return literals
}

// operation finds a method of a path; nil when the description has none. Its
// caller holds mu.
func (d *Document) operation(method, template string) (*operation, error) {
	key := method + " " + template
	if known, ok := d.operations[key]; ok {
		return known, nil
	}
	raw, ok := d.paths[template][strings.ToLower(method)]
	if !ok {
		return nil, nil
	}
	o := &operation{location: pointer("paths", template, strings.ToLower(method))}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if shared, ok := d.paths[template]["parameters"]; ok {
		var more []parameter
		if err := json.Unmarshal(shared, &more); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		o.Parameters = append(o.Parameters, more...)
	}
	d.operations[key] = o
	return o, nil
}

// schema compiles the schema at a JSON pointer. Its caller holds mu.
func (d *Document) schema(location string) (*jsonschema.Schema, error) {
	address := url.URL{Fragment: location}
	return d.compiler.Compile(resource + address.String())
}

// pointer makes a JSON pointer.
func pointer(parts ...string) string {
	var text strings.Builder
	for _, part := range parts {
		text.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return text.String()
}
