// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/pb33f/jsonschema/v6"
)

// errUndescribed is the problem of a call that the description doesn't have.
var errUndescribed = errors.New("the description has no such method or path")

// request reports what is wrong with a request: query parameters and body.
func (d *Document) request(r *http.Request, body []byte) (template string, problems []problem, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	template, o, err := d.lookUp(r)
	if err != nil {
		return template, nil, err
	}
	query, declared := r.URL.Query(), map[string]bool{}
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		declared[p.Name] = true
		if p.Required && !query.Has(p.Name) {
			problems = append(problems, problem{text: fmt.Sprintf("query %s: is required", p.Name)})
		}
	}
	for name, values := range query {
		if !declared[name] {
			problems = append(problems, problem{text: fmt.Sprintf("query %s: is not in the description", name)})
			continue
		}
		found, err := d.parameter(o, name, values)
		if err != nil {
			return template, nil, err
		}
		problems = append(problems, found...)
	}
	switch {
	case o.RequestBody == nil:
	case len(body) == 0 && o.RequestBody.Required:
		problems = append(problems, problem{text: "body: is required"})
	case len(body) > 0:
		found, err := d.body(o.location+pointer("requestBody", "content", "application/json", "schema"), body)
		if err != nil {
			return template, nil, err
		}
		problems = append(problems, found...)
	}
	return template, problems, nil
}

// parameter validates the values of a query parameter. What is text in a query
// is read as what the schema wants.
func (d *Document) parameter(o *operation, name string, values []string) ([]problem, error) {
	for i, p := range o.Parameters {
		if p.In != "query" || p.Name != name {
			continue
		}
		location := o.location + pointer("parameters", strconv.Itoa(i), "schema")
		value := scalar(p.Schema.Type, values[0])
		if p.Schema.Type == "array" {
			items := []any{}
			for _, text := range values {
				items = append(items, scalar(p.Schema.Items.Type, text))
			}
			value = items
		} else if len(values) > 1 {
			return []problem{{text: fmt.Sprintf("query %s: is given more than once", name)}}, nil
		}
		return d.validate("query "+name, location, value)
	}
	return nil, nil
}

func scalar(kind any, text string) any {
	switch kind {
	case "integer", "number":
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			return number
		}
	case "boolean":
		if truth, err := strconv.ParseBool(text); err == nil {
			return truth
		}
	}
	return text
}

// answer reports what is wrong with an answer: its status, type and body.
func (d *Document) answer(r *http.Request, status int, header http.Header, body []byte) (template string, problems []problem, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	template, o, err := d.lookUp(r)
	if err != nil {
		return template, nil, err
	}
	code := strconv.Itoa(status)
	// Ranges are written "4XX"; Hetzner's description has them as "4xx".
	for _, key := range []string{code, code[:1] + "XX", code[:1] + "xx", "default"} {
		response, ok := o.Responses[key]
		if !ok {
			continue
		}
		if len(response.Content) == 0 {
			if len(body) > 0 {
				problems = append(problems, problem{text: "body: there should be none"})
			}
			return template, problems, nil
		}
		if _, ok := response.Content["application/json"]; !ok || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
			return template, []problem{{text: fmt.Sprintf("content type: %q", header.Get("Content-Type"))}}, nil
		}
		problems, err = d.body(o.location+pointer("responses", key, "content", "application/json", "schema"), body)
		return template, problems, err
	}
	return template, []problem{{text: "status: " + code + " is not in the description"}}, nil
}

func (d *Document) lookUp(r *http.Request) (string, *operation, error) {
	template, found := d.find(r.URL.Path)
	if !found {
		return "", nil, errUndescribed
	}
	o, err := d.operation(r.Method, template)
	if err == nil && o == nil {
		err = errUndescribed
	}
	return template, o, err
}

func (d *Document) body(location string, body []byte) ([]problem, error) {
	if !json.Valid(body) {
		return []problem{{text: "body: is not JSON"}}, nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return d.validate("body", location, value)
}

func (d *Document) validate(what, location string, value any) ([]problem, error) {
	schema, err := d.schema(location)
	if err != nil {
		return nil, err
	}
	err = schema.Validate(value)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return problemsOf(what, invalid), nil
	}
	return nil, err
}
