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

const description = `{
  "openapi": "3.1.0",
  "servers": [{"url": "https://api.test/v1"}],
  "paths": {
    "/things": {
      "get": {
        "parameters": [
          {"name": "size", "in": "query", "schema": {"type": "integer", "minimum": 1}},
          {"name": "sort", "in": "query", "schema": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}}
        ],
        "responses": {
          "200": {"content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/thing"}}}}},
          "4xx": {"content": {"application/json": {"schema": {"type": "object", "required": ["error"]}}}}
        }
      },
      "post": {
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/thing"}}}},
        "responses": {"204": {}}
      }
    },
    "/things/{id}": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}}}},
    "/things/actions": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}}}}
  },
  "components": {"schemas": {"thing": {
    "type": "object", "required": ["name"],
    "properties": {"name": {"type": ["string", "null"]}, "at": {"type": "string", "format": "date-time"}}
  }}}
}`

// recorder is a test that notes errors instead of failing.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestWrap(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "small.json"), []byte(description), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, folder)
	document := Load(t, "small.json")

	for _, test := range []struct {
		name                 string
		method, target, body string
		status               int
		answer               string
		// want is a part of the complaint; empty: there is none.
		want string
	}{
		{"all is well", "GET", "/v1/things?size=2&sort=a&sort=b", "", 200, `[{"name":null,"at":"2026-01-02T03:04:05Z"}]`, ""},
		{"described error", "GET", "/v1/things", "", 404, `{"error":1}`, ""},
		{"literal path", "GET", "/v1/things/actions", "", 200, `[]`, ""},
		{"parameter path", "GET", "/v1/things/7", "", 200, `{}`, ""},
		{"unknown path, refused", "GET", "/v1/other", "", 404, `x`, ""},
		{"request body", "POST", "/v1/things", `{"name":"x"}`, 204, "", ""},

		{"missing field", "GET", "/v1/things", "", 200, `[{}]`, "body /0: missing property 'name'"},
		{"wrong type", "GET", "/v1/things", "", 200, `[{"name":1}]`, "body /0/name: got number"},
		{"wrong format", "GET", "/v1/things", "", 200, `[{"name":"a","at":"now"}]`, "date-time"},
		{"no JSON", "GET", "/v1/things", "", 200, `[`, "is not JSON"},
		{"bad error", "GET", "/v1/things", "", 422, `{}`, "missing property 'error'"},
		{"status", "GET", "/v1/things", "", 201, `[]`, "status: 201"},
		{"unknown path, answered", "GET", "/v1/other", "", 200, `{}`, "no such method or path"},
		{"body after 204", "POST", "/v1/things", `{"name":"x"}`, 204, "x", "there should be none"},
		{"bad parameter", "GET", "/v1/things?size=0", "", 200, `[]`, "query size"},
		{"parameter of wrong type", "GET", "/v1/things?size=big", "", 200, `[]`, "query size"},
		{"bad list", "GET", "/v1/things?sort=a&sort=c", "", 200, `[]`, "query sort"},
		{"unknown parameter", "GET", "/v1/things?color=red", "", 200, `[]`, "query color: is not in the description"},
		{"bad request body", "POST", "/v1/things", `{"name":1}`, 204, "", "body /name"},
		{"no request body", "POST", "/v1/things", "", 204, "", "body: is required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				if test.answer != "" {
					fmt.Fprint(w, test.answer)
				}
			})
			serve := func(options ...Option) []string {
				noted := &recorder{TB: t}
				Wrap(noted, document, handler, options...).ServeHTTP(httptest.NewRecorder(),
					httptest.NewRequest(test.method, test.target, strings.NewReader(test.body)))
				return noted.errors
			}
			got := strings.Join(serve(), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("complained %q, want %q", got, test.want)
			}
			if test.want != "" && !strings.Contains(test.name, "answered") {
				if got := serve(Allow(Deviation{Contains: test.want, Why: "the test says so"})); len(got) > 0 {
					t.Errorf("an allowed deviation is complained of: %q", got)
				}
			}
		})
	}
}

// TestKnownGap allows one path that the description doesn't have, and no other.
func TestKnownGap(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "small.json"), []byte(description), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, folder)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	gap := Allow(Deviation{Method: http.MethodGet, Path: "/others/{id}", Contains: "no such method or path", Why: "the test says so"})
	for target, allowed := range map[string]bool{"/v1/others/7": true, "/v1/others": false, "/v1/more/7": false} {
		noted := &recorder{TB: t}
		Wrap(noted, Load(t, "small.json"), handler, gap).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
		if (len(noted.errors) == 0) != allowed {
			t.Errorf("%s: complained %q", target, noted.errors)
		}
	}
}
