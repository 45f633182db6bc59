// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package pveapitest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const description = `{"paths": [
  {"path": "/things", "methods": [
    {"verb": "GET", "allow_token": true, "parameters": [
      {"name": "size", "definition": {"type": "integer", "minimum": 1, "optional": true}},
      {"name": "kind", "definition": {"type": "string", "enum": ["a", "b"], "optional": true}}],
     "returns": {"type": "array", "items": {"type": "object", "properties": {
       "name": {"type": "string"}, "on": {"type": "boolean", "optional": true}, "n": {"type": "integer", "optional": true},
       "net[n]": {"type": "string", "pattern": "x+", "optional": true}}}}},
    {"verb": "POST", "allow_token": false, "parameters": [
      {"name": "name", "definition": {"type": "string", "max_length": 3}},
      {"name": "net[n]", "definition": {"type": "string", "optional": true}},
      {"name": "on", "definition": {"type": "boolean", "optional": true}}],
     "returns": {"type": "null"}}]},
  {"path": "/things/{id}/{volume}", "methods": [
    {"verb": "DELETE", "allow_token": true, "parameters": [
      {"name": "id", "definition": {"type": "integer"}}, {"name": "volume", "definition": {"type": "string"}}],
     "returns": {"type": "string", "optional": true}}]}
]}`

// recorder is a test that notes errors instead of failing.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestWrap: what is complained of, and what isn't.
func TestWrap(t *testing.T) {
	document, err := parse([]byte(description))
	if err != nil {
		t.Fatal(err)
	}
	const list = "[]"
	for name, test := range map[string]struct {
		method, path, body string
		status             int
		answer             string
		// wrong is a part of the complaint; empty: there is none.
		wrong string
	}{
		"good":                     {"GET", "/things?size=1&kind=a", "", 200, `{"data":[{"name":"x","on":1,"n":7,"net0":"xx","more":true}],"total":1}`, ""},
		"good error":               {"GET", "/things", "", 500, `{"data":null,"message":"no\n","errors":{"a":"b"}}`, ""},
		"bad request, refused":     {"GET", "/things?size=0", "", 400, `{"data":null}`, ""},
		"volume with a slash":      {"DELETE", "/things/7/local:a/b", "", 200, `{"data":null}`, ""},
		"too small":                {"GET", "/things?size=0", "", 200, `{"data":` + list + `}`, "parameter size: 0 is less than 1"},
		"not a number":             {"GET", "/things?size=x", "", 200, `{"data":` + list + `}`, `parameter size: "x" is not of type integer`},
		"no word of the list":      {"GET", "/things?kind=c", "", 200, `{"data":` + list + `}`, `parameter kind: "c" is none of`},
		"unknown parameter":        {"GET", "/things?colour=red", "", 200, `{"data":` + list + `}`, "parameter colour: unknown"},
		"missing parameter":        {"POST", "/things", "on=1", 200, `{"data":null}`, "parameter name: missing"},
		"too long":                 {"POST", "/things", `{"name":"abcd"}`, 200, `{"data":null}`, "parameter name: 4 characters are more than 3"},
		"not a boolean":            {"POST", "/things", "name=a&on=2", 200, `{"data":null}`, `parameter on: "2" is not a boolean`},
		"not with a token":         {"POST", "/things", "name=a&net0=b", 200, `{"data":null}`, "can't be called with a token"},
		"number in the path":       {"DELETE", "/things/x/a", "", 200, `{"data":null}`, `parameter id: "x" is not of type integer`},
		"unknown path":             {"GET", "/nothing", "", 200, `{"data":null}`, "no such method"},
		"unknown method":           {"PUT", "/things", "", 200, `{"data":null}`, "no such method"},
		"no data":                  {"GET", "/things", "", 200, `{}`, "the answer has no data"},
		"not a list":               {"GET", "/things", "", 200, `{"data":{}}`, "data: map[string]interface {}{} is not an array"},
		"missing property":         {"GET", "/things", "", 200, `{"data":[{}]}`, "data/0/name: missing"},
		"text for a number":        {"GET", "/things", "", 200, `{"data":[{"name":"x","n":"7"}]}`, `data/0/n: "7" is not of type integer`},
		"fraction":                 {"GET", "/things", "", 200, `{"data":[{"name":"x","n":7.5}]}`, "data/0/n: 7.5 is not of type integer"},
		"text for a boolean":       {"GET", "/things", "", 200, `{"data":[{"name":"x","on":"1"}]}`, "is neither 0 nor 1"},
		"number for a text":        {"GET", "/things", "", 200, `{"data":[{"name":1}]}`, "is not a string"},
		"no match":                 {"GET", "/things", "", 200, `{"data":[{"name":"x","net1":"y"}]}`, `data/0/net1: "y" does not match x+`},
		"null isn't":               {"POST", "/things", "name=a", 200, `{"data":1}`, "data: 1 is not null"},
		"error with data":          {"GET", "/things", "", 500, `{"data":1}`, "an error has data"},
		"error with another field": {"GET", "/things", "", 500, `{"data":null,"error":"x"}`, "unknown field"},
		"allowed":                  {"GET", "/things?size=99", "", 200, `{"data":[{"name":"x","n":"allowed"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			wrapped := document.Wrap(r, transport(func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: test.status, Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}},
					Body: io.NopCloser(strings.NewReader(test.answer)),
				}, nil
			}), Deviation{"GET", "/things", `data/0/n: "allowed"`, "a test"})
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://pve.test/api2/json"+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(test.body, "{") {
				request.Header.Set("Content-Type", "application/json")
			}
			response, err := wrapped.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(response.Body); err != nil || string(text) != test.answer {
				t.Errorf("the answer became %s, %v", text, err)
			}
			all := strings.Join(r.errors, "\n")
			if (test.wrong == "") != (all == "") || !strings.Contains(all, test.wrong) {
				t.Errorf("complaints: %q, want %q", all, test.wrong)
			}
		})
	}
}
