// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// unlimited is the limit that is reported when there is none: Hetzner's usual.
const unlimited = 3600

// backend is the service behind its front.
type backend struct{ s *Service }

func (b backend) Name() string { return "hetzner" }

func (b backend) BasePath() string { return "/v1" }

func (b backend) Kinds() []emulator.Kind {
	return []emulator.Kind{
		emulator.KindRateLimitBurst, emulator.KindRateLimitHour, emulator.KindFailAction,
		emulator.KindHideFromLists, emulator.KindLocked, emulator.KindCapacity,
	}
}

// Refuse answers with an error of the API and no effect.
func (b backend) Refuse(w http.ResponseWriter, _ *http.Request, rule emulator.Rule) {
	now := time.Now()
	limit := b.limit()
	switch rule.Kind {
	case emulator.KindRateLimitBurst:
		// Calls came faster than the bucket refills: it was empty for a moment.
		limited(w, limit, now.Add(time.Minute))
	case emulator.KindRateLimitHour:
		limited(w, limit, now.Add(time.Hour))
	default:
		if rule.Status == http.StatusTooManyRequests {
			limited(w, limit, now.Add(time.Hour))
			return
		}
		rateHeaders(w, limit, limit, now)
		writeError(w, statusError(rule.Status))
	}
}

func (b backend) limit() int {
	if limit := b.s.limiter.Limit(); limit > 0 {
		return limit
	}
	return unlimited
}

// Serve answers a call: first the route is looked for, then the token is
// checked, then the method (seen on the real API, 2026-09).
func (b backend) Serve(w http.ResponseWriter, r *http.Request) {
	path, found := strings.CutPrefix(r.URL.Path, b.BasePath())
	var matched []match
	if found {
		matched = b.s.match(path)
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token = strings.TrimSpace(token)
	project, authorized := b.s.options.Projects.Find(token)

	remaining, full, ok := b.s.limiter.Take(project)
	if b.s.limiter.Limit() == 0 {
		remaining = unlimited
	}
	if !ok {
		limited(w, b.limit(), full)
		return
	}
	rateHeaders(w, b.limit(), remaining, full)

	switch {
	case len(matched) == 0:
		writeError(w, refused(http.StatusNotFound, "not_found", "api route not found"))
		return
	case token == "":
		writeError(w, refused(http.StatusUnauthorized, "unauthorized", "token is required"))
		return
	case !authorized:
		writeError(w, refused(http.StatusUnauthorized, "unauthorized", "the token you have provided is invalid"))
		return
	}
	for _, m := range matched {
		if m.route.method == r.Method {
			b.call(w, r, project, m)
			return
		}
	}
	writeError(w, refused(http.StatusMethodNotAllowed, "method_not_allowed", "method not allowed"))
}

// call serves a call that has a route and a project.
func (b backend) call(w http.ResponseWriter, r *http.Request, projectName string, m match) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	c := &call{
		s:      b.s,
		p:      b.s.project(projectName),
		r:      r,
		now:    time.Now(),
		ids:    m.ids,
		query:  r.URL.Query(),
		header: w.Header(),
	}
	c.p.advance(c.now)
	result, err := c.serve(m.route)
	if err != nil {
		writeError(w, err)
		return
	}
	if m.route.status == http.StatusNoContent {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	write(w, m.route.status, result)
}

func (c *call) serve(route route) (any, error) {
	kind := "server"
	if strings.HasPrefix(route.path, "/volumes") {
		kind = "volume"
	}
	if _, ok := emulator.FaultFor(c.r.Context(), emulator.KindLocked); ok {
		return nil, locked(kind)
	}
	if _, ok := emulator.FaultFor(c.r.Context(), emulator.KindCapacity); ok {
		if kind == "volume" {
			return nil, noSpace()
		}
		return nil, unavailable()
	}
	return route.handle(c)
}

func limited(w http.ResponseWriter, limit int, full time.Time) {
	rateHeaders(w, limit, 0, full)
	writeError(w, refused(http.StatusTooManyRequests, "rate_limit_exceeded", "limit of %d requests per hour reached", limit))
}

// rateHeaders sets the rate limit headers; full is when the whole limit is
// there again, which is not when a next call is possible.
func rateHeaders(w http.ResponseWriter, limit, remaining int, full time.Time) {
	w.Header().Set("RateLimit-Limit", strconv.Itoa(limit))
	w.Header().Set("RateLimit-Remaining", strconv.Itoa(remaining))
	w.Header().Set("RateLimit-Reset", strconv.FormatInt(full.Unix(), 10))
}

func writeError(w http.ResponseWriter, err error) {
	var known *apiError
	if !errors.As(err, &known) {
		known = &apiError{status: http.StatusInternalServerError, code: "server_error", message: err.Error()}
	}
	write(w, known.status, map[string]any{"error": map[string]any{
		"code": known.code, "message": known.message, "details": known.details,
	}})
}

func write(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status = http.StatusInternalServerError
		body = fmt.Appendf(nil, `{"error":{"code":"server_error","message":%q,"details":null}}`, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Correlation-Id", strings.ToLower(rand.Text()[:16]))
	w.WriteHeader(status)
	// The front keeps the answer in memory, where writing can't fail.
	_, _ = w.Write(append(body, '\n'))
}
