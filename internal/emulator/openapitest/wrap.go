// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Deviation allows something that the description doesn't.
type Deviation struct {
	// Method and Path (as the description writes it, e.g. "/servers/{id}")
	// say where; empty: everywhere.
	Method, Path string
	// Contains is a part of the complaint.
	Contains string
	// Why says who is right, and how that is known.
	Why string
}

// Option changes what Wrap validates.
type Option func(*wrapper)

// Allow allows deviations.
func Allow(deviations ...Deviation) Option {
	return func(w *wrapper) { w.allowed = append(w.allowed, deviations...) }
}

// AnswersOnly leaves requests alone, for tests that send bad ones on purpose.
func AnswersOnly() Option {
	return func(w *wrapper) { w.answersOnly = true }
}

// Wrap returns a handler that validates every request to the given one, and
// every answer of it, and fails the test with what is wrong. Not validated are
// calls without an answer (a dropped connection), HTML pages (they stand for a
// proxy's, which no API describes) and errors about paths that the description
// doesn't have. A body that a client sends where the description has none is
// let pass: clients send "{}".
func Wrap(t testing.TB, document *Document, handler http.Handler, options ...Option) http.Handler {
	w := &wrapper{t: t, document: document, handler: handler}
	for _, option := range options {
		option(w)
	}
	return w
}

type wrapper struct {
	t           testing.TB
	document    *Document
	handler     http.Handler
	allowed     []Deviation
	answersOnly bool
}

func (v *wrapper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		v.t.Errorf("%s %s: reading the request: %v", r.Method, r.URL.Path, err)
		return
	}
	if !v.answersOnly {
		template, problems, err := v.document.request(r, body)
		// A path that isn't described is the answer's business.
		if !errors.Is(err, errUndescribed) {
			v.complain("request", r, template, problems, err)
		}
	}

	r.Body = io.NopCloser(bytes.NewReader(body))
	tee := &teeWriter{ResponseWriter: w}
	v.handler.ServeHTTP(tee, r)
	if tee.status == 0 || strings.HasPrefix(tee.Header().Get("Content-Type"), "text/html") {
		return
	}
	template, problems, err := v.document.answer(r, tee.status, tee.Header(), tee.body.Bytes())
	if errors.Is(err, errUndescribed) && (tee.status >= 400 || v.knownGap(r)) {
		return
	}
	v.complain(fmt.Sprintf("answer %d %s", tee.status, tee.body.Bytes()), r, template, problems, err)
}

func (v *wrapper) complain(what string, r *http.Request, template string, problems []problem, err error) {
	if err != nil {
		v.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return
	}
	problems = slices.DeleteFunc(problems, func(p problem) bool {
		return p.allowed(func(text string) bool {
			return slices.ContainsFunc(v.allowed, func(d Deviation) bool {
				return (d.Method == "" || d.Method == r.Method) && (d.Path == "" || d.Path == template) && strings.Contains(text, d.Contains)
			})
		})
	})
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.texts()...)
	}
	if len(texts) > 0 {
		v.t.Errorf("%s %s does not fit the API description:\n  %s\nin the %.2000s", r.Method, r.URL, strings.Join(texts, "\n  "), what)
	}
}

// knownGap tells whether a deviation allows a path or method that the description
// doesn't have. Its Path is then as the description would write it.
func (v *wrapper) knownGap(r *http.Request) bool {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, v.document.basePath), "/")
	return slices.ContainsFunc(v.allowed, func(d Deviation) bool {
		return d.Method == r.Method && d.Contains != "" && strings.Contains(errUndescribed.Error(), d.Contains) &&
			fit(strings.Split(d.Path, "/"), parts) >= 0
	})
}

// teeWriter keeps a copy of the answer.
type teeWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// Unwrap lets the handler reach what is below, to drop the connection.
func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *teeWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *teeWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.body.Write(data)
	return w.ResponseWriter.Write(data)
}
