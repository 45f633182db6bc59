// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package pveapitest holds what goes over a transport against the description of
// Proxmox VE's API: each request that a client sends, and each answer that an
// emulator gives.
//
// That description isn't OpenAPI but the API's own schema (what "pvesh usage"
// shows and the API viewer is made of), as one flat list of paths: the file
// proxmox.json in the folder that the variable of openapitest names. Without the
// variable the tests that need it are skipped, and say so.
package pveapitest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// Definition is the schema of a parameter or of a result.
type Definition struct {
	Type       string                `json:"type"`
	Optional   bool                  `json:"optional"`
	Enum       []string              `json:"enum"`
	Minimum    *float64              `json:"minimum"`
	Maximum    *float64              `json:"maximum"`
	MaxLength  int                   `json:"max_length"`
	Pattern    string                `json:"pattern"`
	Format     json.RawMessage       `json:"format"` // a name, or a schema of name=value parts
	Properties map[string]Definition `json:"properties"`
	Items      *Definition           `json:"items"`
}

// Method is what can be done with a path.
type Method struct {
	Params  map[string]Definition
	Returns *Definition
	// AllowToken tells whether it can be called with a token.
	AllowToken bool
}

// Document is the description. Several tests may use one at once.
type Document struct {
	// methods are by their paths, as the description writes them, and verbs.
	methods map[string]map[string]Method
}

var load = sync.OnceValues(func() (*Document, error) {
	path := filepath.Join(os.Getenv(openapitest.Variable), "proxmox.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(text)
})

// Load reads the description, once for all tests of a process. The test is skipped
// where it isn't at hand.
func Load(t testing.TB) *Document {
	t.Helper()
	if os.Getenv(openapitest.Variable) == "" {
		t.Skipf("%s is not set: it names the folder with proxmox.json, the description of the API", openapitest.Variable)
	}
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parse(text []byte) (*Document, error) {
	var file struct {
		Paths []struct {
			Path    string `json:"path"`
			Methods []struct {
				Verb       string      `json:"verb"`
				AllowToken bool        `json:"allow_token"`
				Returns    *Definition `json:"returns"`
				Parameters []struct {
					Name       string     `json:"name"`
					Definition Definition `json:"definition"`
				} `json:"parameters"`
			} `json:"methods"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("the API description: %w", err)
	}
	d := &Document{methods: map[string]map[string]Method{}}
	for _, p := range file.Paths {
		d.methods[p.Path] = map[string]Method{}
		for _, m := range p.Methods {
			params := map[string]Definition{}
			for _, q := range m.Parameters {
				params[q.Name] = q.Definition
			}
			d.methods[p.Path][m.Verb] = Method{params, m.Returns, m.AllowToken}
		}
	}
	return d, nil
}

// Method finds a method of a path as the description writes it.
func (d *Document) Method(verb, path string) (Method, bool) {
	m, found := d.methods[path][verb]
	return m, found
}

// find finds the path, as the description writes it, of one that is called. A
// literal part is better than a parameter.
func (d *Document) find(path string) (template string, values map[string]string, found bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	best := -1
	for candidate := range d.methods {
		got, literals := fit(strings.Split(strings.Trim(candidate, "/"), "/"), parts)
		if literals > best {
			template, values, best = candidate, got, literals
		}
	}
	return template, values, best >= 0
}

// fit counts the literal parts of a template that fits; -1 when it doesn't. A
// volume is all that is left of a path.
func fit(template, parts []string) (values map[string]string, literals int) {
	values = map[string]string{}
	for i, want := range template {
		if i >= len(parts) {
			return nil, -1
		}
		name, variable := strings.CutPrefix(want, "{")
		name = strings.TrimSuffix(name, "}")
		switch {
		case variable && name == "volume":
			values[name] = strings.Join(parts[i:], "/")
			return values, literals
		case variable && parts[i] != "":
			values[name] = parts[i]
		case want == parts[i]:
			literals++
		default:
			return nil, -1
		}
	}
	if len(template) != len(parts) {
		return nil, -1
	}
	return values, literals
}
