// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// backend is the service behind its front.
type backend struct{ s *Service }

func (b backend) Name() string { return "digitalocean" }

func (b backend) BasePath() string { return "/v2" }

func (b backend) Kinds() []emulator.Kind {
	return []emulator.Kind{
		emulator.KindRateLimitBurst, emulator.KindRateLimitHour, emulator.KindRateLimitSnapshot,
		emulator.KindFailAction, emulator.KindHideFromLists, emulator.KindEarly404,
		emulator.KindPendingEvent, emulator.KindCapacity,
	}
}

// burstWait is the retry-after of the fault that refuses a burst.
const burstWait = time.Second

// Refuse answers with an error of the API and no effect.
func (b backend) Refuse(w http.ResponseWriter, _ *http.Request, rule emulator.Rule) {
	now := time.Now()
	q := unlimited(now)
	if b.s.limits.perHour > 0 {
		q.limit, q.remaining = b.s.limits.perHour, b.s.limits.perHour-1
	}
	switch {
	case rule.Kind == emulator.KindRateLimitBurst:
		q.remaining, q.retry = 0, burstWait
		limited(w, q)
	case rule.Kind == emulator.KindRateLimitHour, rule.Kind == emulator.KindStatus && rule.Status == http.StatusTooManyRequests:
		q.remaining = 0
		limited(w, q)
	case rule.Kind == emulator.KindRateLimitSnapshot:
		rateHeaders(w, q)
		writeError(w, snapshotTooSoon())
	default:
		rateHeaders(w, q)
		writeError(w, statusError(rule.Status))
	}
}

// snapshotTooSoon is the refusal of a volume's snapshot soon after another. It
// is no rate limit of the API: it has no retry-after, and calls go on.
func snapshotTooSoon() error {
	return refused(http.StatusTooManyRequests, "too_many_requests",
		"failed to create snapshot: this operation is rate-limited - one request per 10m0s")
}

// Serve answers a call: the token is checked before the route is looked for. A
// wrong method is an unknown route (what the real one says isn't known).
func (b backend) Serve(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	project, authorized := b.s.options.Projects.Find(strings.TrimSpace(token))
	if !authorized {
		rateHeaders(w, unlimited(time.Now()))
		writeError(w, refused(http.StatusUnauthorized, "unauthorized", "Unable to authenticate you."))
		return
	}
	path, found := strings.CutPrefix(r.URL.Path, b.BasePath())
	q := b.s.limits.take(project, r.Method == http.MethodGet && path == "/account/keys")
	if !q.ok {
		limited(w, q)
		return
	}
	rateHeaders(w, q)
	m, ok := b.s.match(r.Method, path)
	if !found || !ok {
		writeError(w, notFound())
		return
	}
	b.call(w, r, project, m)
}

// call serves a call that has a route and a project.
func (b backend) call(w http.ResponseWriter, r *http.Request, projectName string, m match) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	c := &call{
		s:     b.s,
		p:     b.s.project(projectName),
		r:     r,
		now:   time.Now(),
		ids:   m.ids,
		query: r.URL.Query(),
	}
	b.s.advance(c.p, c.now)
	result, err := c.serve(m.route)
	switch {
	case err != nil:
		writeError(w, err)
	case result == nil:
		w.Header().Set("X-Request-Id", newUUID())
		w.WriteHeader(m.route.status)
	default:
		write(w, m.route.status, result)
	}
}

func (c *call) serve(route route) (any, error) {
	if _, ok := c.fault(emulator.KindPendingEvent); ok {
		return nil, pendingEvent()
	}
	if _, ok := c.fault(emulator.KindCapacity); ok {
		return nil, noCapacity(route.path)
	}
	return route.handle(c)
}

// noCapacity is the refusal for want of space: of the account's limit for
// volumes and shares, of a machine's size for Droplets.
func noCapacity(path string) error {
	if strings.HasPrefix(path, "/volumes") || strings.HasPrefix(path, "/nfs") {
		return forbidden("failed to create volume: volume/snapshot capacity limit exceeded")
	}
	return unprocessable("The size is currently unavailable in this region.")
}

func limited(w http.ResponseWriter, q quota) {
	rateHeaders(w, q)
	if q.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(q.retry.Seconds())))))
	}
	writeError(w, refused(http.StatusTooManyRequests, "too_many_requests", "API rate limit exceeded."))
}

func rateHeaders(w http.ResponseWriter, q quota) {
	w.Header().Set("RateLimit-Limit", strconv.Itoa(q.limit))
	w.Header().Set("RateLimit-Remaining", strconv.Itoa(q.remaining))
	w.Header().Set("RateLimit-Reset", strconv.FormatInt(q.reset.Unix(), 10))
}

func writeError(w http.ResponseWriter, err error) {
	var known *apiError
	if !errors.As(err, &known) {
		known = &apiError{status: http.StatusInternalServerError, id: "server_error", message: err.Error()}
	}
	request := newUUID()
	w.Header().Set("X-Request-Id", request)
	write(w, known.status, map[string]string{"id": known.id, "message": known.message, "request_id": request})
}

func write(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status = http.StatusInternalServerError
		body = fmt.Appendf(nil, `{"id":"server_error","message":%q}`, err)
	}
	if w.Header().Get("X-Request-Id") == "" {
		w.Header().Set("X-Request-Id", newUUID())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// The front keeps the answer in memory, where writing can't fail.
	_, _ = w.Write(append(body, '\n'))
}
