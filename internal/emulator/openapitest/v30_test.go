// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package openapitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bundled is a description of OpenAPI 3.0 that was made of many files.
const bundled = `{
  "openapi": "3.0.0",
  "servers": [{"url": "https://api.test"}],
  "paths": {"/v2/things": {"post": {"$ref": "#/components/x/make~1thing"}}},
  "components": {"x": {
    "make/thing": {
      "parameters": [{"$ref": "#/components/x/page"}],
      "requestBody": {"$ref": "#/components/x/body"},
      "responses": {"201": {"$ref": "#/components/x/made"}, "default": {"$ref": "#/components/x/failed"}}
    },
    "page": {"name": "page", "in": "query", "schema": {"type": "integer"}},
    "body": {"content": {"application/json": {"schema": {"oneOf": [
      {"type": "object", "required": ["name"], "properties": {"name": {"$ref": "#/components/x/word"}, "tags": {"type": "array"}}},
      {"type": "object", "required": ["names"], "properties": {"tags": {"type": "array"}}}
    ]}}}},
    "made": {"content": {"application/json": {"schema": {"type": "object", "properties": {
      "name": {"$ref": "#/components/x/word"},
      "color": {"type": "string", "nullable": true, "enum": ["red", "blue"]},
      "at": {"type": "string", "nullable": false}
    }}}}},
    "failed": {"content": {"application/json": {"schema": {"type": "object", "required": ["id"]}}}},
    "word": {"type": "string", "nullable": true}
  }}
}`

func TestBundledDescription(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "bundled.json"), []byte(bundled), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, folder)
	document := Load(t, "bundled.json")

	tags := Allow(Deviation{Contains: "/tags: got null, want array", Why: "the test says so"})
	for _, test := range []struct {
		name, query, body string
		status            int
		answer            string
		options           []Option
		// want is a part of the complaint; empty: there is none.
		want string
	}{
		{"all is well", "?page=1", `{"name":"a"}`, 201, `{"name":"a","color":"red","at":"x"}`, nil, ""},
		{"nullable", "", `{"name":null}`, 201, `{"name":null,"color":null}`, nil, ""},
		{"an error", "", `{"names":[]}`, 422, `{"id":"x"}`, nil, ""},
		{"not nullable", "", `{"name":"a"}`, 201, `{"at":null}`, nil, "/at: got null"},
		{"another color", "", `{"name":"a"}`, 201, `{"color":"green"}`, nil, "/color: value must be one of"},
		{"a bad error", "", `{"name":"a"}`, 422, `{}`, nil, "missing property 'id'"},
		{"a bad parameter", "?page=x", `{"name":"a"}`, 201, `{}`, nil, "query page"},
		{"an unknown parameter", "?x=1", `{"name":"a"}`, 201, `{}`, nil, "query x"},
		{"none of several", "", `{"tags":[]}`, 201, `{}`, nil, "or (2): body : missing property 'names'"},
		{"several", "", `{"name":"a","names":[]}`, 201, `{}`, nil, "'oneOf' failed"},
		{"refused in both", "", `{"name":"a","tags":null}`, 201, `{}`, nil, "/tags: got null, want array"},
		{"allowed in one", "", `{"name":"a","tags":null}`, 201, `{}`, []Option{tags}, ""},
		{"allowed, but not alone", "", `{"tags":null}`, 201, `{}`, []Option{tags}, "missing property 'name'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			noted := &recorder{TB: t}
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.answer)
			})
			Wrap(noted, document, handler, test.options...).ServeHTTP(httptest.NewRecorder(),
				httptest.NewRequest(http.MethodPost, "/v2/things"+test.query, strings.NewReader(test.body)))
			got := strings.Join(noted.errors, "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("complained %q, want %q", got, test.want)
			}
		})
	}
}

// TestLostReferences: a description that refers to nothing is refused as a whole.
func TestLostReferences(t *testing.T) {
	for _, reference := range []string{"#/components/x/none", "#/paths/~1v2~1things/post"} {
		path := filepath.Join(t.TempDir(), "lost.json")
		text := `{"openapi":"3.0.0","paths":{"/v2/things":{"post":{"$ref":"` + reference + `"}}}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), "the description has no") {
			t.Errorf("%s: %v", reference, err)
		}
	}
}
