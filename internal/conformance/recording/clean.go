// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// removed stands for what a recording must not hold.
const removed = "REMOVED"

// shortestSecret is the length from which a secret's value is looked for in whole
// texts. A shorter one (a dummy for an emulator) occurs in them by chance; where
// credentials belong, it is removed all the same.
const shortestSecret = 8

// The headers that a recording keeps: what playing back, or a reader, needs. All
// others are dropped, Authorization and cookies among them.
var (
	requestHeaders  = []string{"Accept", "Content-Type", caseHeader}
	responseHeaders = []string{
		"Content-Type", "Link", "Retry-After", "X-Correlation-Id",
		"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
	}
)

// secretName matches the fields and parameters whose values are removed. A key of
// ours (the idempotency key) is no secret, so "key" alone doesn't count.
var secretName = regexp.MustCompile(`(?i)(?:password|passwd|token|secret|credentials?|authorization|cookie|ticket|` +
	`(?:private|access|api)[-_]?key|user[-_]?data)$`)

// cleaner removes credentials.
type cleaner struct {
	mu     sync.Mutex
	values []string // of secrets, the longest first
}

func (c *cleaner) learn(value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(value) < shortestSecret || slices.Contains(c.values, value) {
		return
	}
	c.values = append(c.values, value)
	slices.SortFunc(c.values, func(a, b string) int { return len(b) - len(a) })
}

// watching learns the values that pass.
type watching struct {
	backends.Secrets
	clean *cleaner
}

// Resolve implements [backends.Secrets].
func (w *watching) Resolve(ctx context.Context, reference string) (string, error) {
	value, err := w.Secrets.Resolve(ctx, reference)
	if err == nil {
		w.clean.learn(value)
	}
	return value, err
}

// interaction cleans one request and its answer. What is left of them is made
// anew, so that a field that the library adds some day isn't kept by accident.
func (c *cleaner) interaction(i *cassette.Interaction) error {
	q, a := i.Request, i.Response
	i.Request = cassette.Request{
		Proto: q.Proto, ProtoMajor: q.ProtoMajor, ProtoMinor: q.ProtoMinor,
		Method: q.Method, Host: c.text(q.Host), URL: c.text(cleanURL(q.URL)),
		Headers: c.headers(q.Headers, requestHeaders),
		Body:    c.text(cleanBody(q.Headers.Get("Content-Type"), q.Body)),
	}
	i.Request.ContentLength = int64(len(i.Request.Body))
	i.Response = cassette.Response{
		Proto: a.Proto, ProtoMajor: a.ProtoMajor, ProtoMinor: a.ProtoMinor,
		Status: a.Status, Code: a.Code, Duration: a.Duration,
		Headers: c.headers(a.Headers, responseHeaders),
		Body:    c.text(cleanBody(a.Headers.Get("Content-Type"), a.Body)),
	}
	i.Response.ContentLength = int64(len(i.Response.Body))
	return nil
}

// text is a text without the values of secrets.
func (c *cleaner) text(s string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, value := range c.values {
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value), jsonForm(value)} {
			s = strings.ReplaceAll(s, form, removed)
		}
	}
	return s
}

func jsonForm(value string) string {
	text, err := json.Marshal(value)
	if err != nil {
		return value
	}
	return string(text[1 : len(text)-1])
}

func (c *cleaner) headers(all http.Header, keep []string) http.Header {
	out := http.Header{}
	for _, name := range keep {
		for _, value := range all.Values(name) {
			out.Add(name, c.text(value))
		}
	}
	return out
}

// cleanURL is an url without the values of secret parameters and without userinfo,
// its parameters sorted.
func cleanURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return removed
	}
	u.User = nil
	u.RawQuery = cleanForm(u.Query()).Encode()
	return u.String()
}

func cleanForm(values url.Values) url.Values {
	for name := range values {
		if secretName.MatchString(name) {
			values[name] = []string{removed}
		}
	}
	return values
}

// cleanBody is a body without the values of secret fields: JSON and forms in one
// spelling, anything else as it is.
func cleanBody(contentType, body string) string {
	if strings.HasPrefix(contentType, "application/x-www-form-urlencoded") {
		if values, err := url.ParseQuery(body); err == nil {
			return cleanForm(values).Encode()
		}
		return removed
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var value any
	if body == "" || decoder.Decode(&value) != nil || decoder.More() {
		return body
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(cleanJSON(value)) != nil {
		return removed
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func cleanJSON(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, e := range v {
			if text, ok := e.(string); ok && text != "" && secretName.MatchString(name) {
				v[name] = removed
			} else {
				v[name] = cleanJSON(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = cleanJSON(v[i])
		}
	}
	return value
}
