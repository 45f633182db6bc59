// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package pveapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Deviation allows something that the description doesn't.
type Deviation struct {
	// Method and Path (as the description writes it) say where; empty: everywhere.
	Method, Path string
	// Contains is a part of the complaint.
	Contains string
	// Why says who is right, and how that is known.
	Why string
}

// Wrap returns a transport that validates every request sent through the given
// one, and every answer, and fails the test with what is wrong. Requests that the
// server refused are not validated: they may be bad on purpose; nor are answers
// that aren't JSON.
func (d *Document) Wrap(t testing.TB, transport http.RoundTripper, allowed ...Deviation) http.RoundTripper {
	return &wrapper{t, d, transport, allowed}
}

type wrapper struct {
	t         testing.TB
	document  *Document
	transport http.RoundTripper
	allowed   []Deviation
}

// RoundTrip implements [http.RoundTripper].
func (w *wrapper) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := read(request.Body)
	if err != nil {
		return nil, err
	}
	sent := request.Clone(request.Context())
	if request.Body != nil && request.Body != http.NoBody {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	response, err := w.transport.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	answer, err := read(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	w.check(request, body, response, answer)
	return response, nil
}

func read(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(body)
	return data, errors.Join(err, body.Close())
}

func (w *wrapper) check(request *http.Request, body []byte, response *http.Response, answer []byte) {
	path := strings.TrimPrefix(request.URL.Path, "/api2/json")
	template, values, found := w.document.find(path)
	method, known := w.document.Method(request.Method, template)
	switch {
	case !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json"):
	case response.StatusCode >= http.StatusBadRequest:
		w.complain(request, template, refusal(answer))
	case !found || !known:
		w.complain(request, template, []string{"the description has no such method"})
	default:
		params, err := parameters(request, body)
		if err != nil {
			w.complain(request, template, []string{err.Error()})
			return
		}
		maps.Copy(params, values)
		wrong := method.params(params)
		if !method.AllowToken {
			wrong = append(wrong, "can't be called with a token")
		}
		w.complain(request, template, append(wrong, method.answer(answer)...))
	}
}

func (w *wrapper) complain(request *http.Request, template string, wrong []string) {
	wrong = slices.DeleteFunc(wrong, func(text string) bool {
		return slices.ContainsFunc(w.allowed, func(d Deviation) bool {
			return (d.Method == "" || d.Method == request.Method) && (d.Path == "" || d.Path == template) && strings.Contains(text, d.Contains)
		})
	})
	if len(wrong) > 0 {
		w.t.Errorf("%s %s does not fit the API description:\n  %s", request.Method, request.URL.Path, strings.Join(wrong, "\n  "))
	}
}

// refusal is what is wrong with an error's body: {"data":null,"message":text,
// "errors":{name:text}}, of which only the first is always there.
func refusal(answer []byte) []string {
	var body struct {
		Data    any               `json:"data"`
		Message string            `json:"message"`
		Errors  map[string]string `json:"errors"`
	}
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return []string{fmt.Sprintf("error %s: %v", answer, err)}
	}
	if body.Data != nil {
		return []string{"an error has data"}
	}
	return nil
}

// answer is what is wrong with the body of a success.
func (m Method) answer(answer []byte) []string {
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.UseNumber()
	var body map[string]any
	if err := decoder.Decode(&body); err != nil {
		return []string{fmt.Sprintf("answer %s: %v", answer, err)}
	}
	data, given := body["data"]
	switch {
	case !given:
		return []string{"the answer has no data"}
	case m.Returns == nil || (m.Returns.Optional && data == nil):
		return nil
	}
	return m.Returns.value("data", data)
}

// parameters are those of the query and the body.
func parameters(request *http.Request, body []byte) (map[string]string, error) {
	params := map[string]string{}
	values := request.URL.Query()
	kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	switch {
	case len(body) == 0:
	case err == nil && kind == "application/json":
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&object); err != nil {
			return nil, fmt.Errorf("the request's body: %w", err)
		}
		for name, value := range object {
			params[name] = fmt.Sprint(value)
		}
	default:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("the request's body: %w", err)
		}
		maps.Copy(values, form)
	}
	for name, all := range values {
		params[name] = strings.Join(all, ",")
	}
	return params, nil
}
