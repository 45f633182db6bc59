// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// fault is something that goes wrong at a call.
type fault struct {
	name string
	kind emulator.Kind
	// status is the answer's, where the kind has one.
	status int
	// times is how many calls meet it from then on; 0: one.
	times int
	// delay is before scaling, but for that of requests, which isn't scaled.
	delay time.Duration
	// lags scales delay by how long the cloud's lists may lag.
	lags bool
	// changes: it can only happen to a call that changes something.
	changes bool
	// makes: it can only happen to a call that makes something.
	makes bool
	// interrupt is Ctrl-C while the call is made.
	interrupt bool
	// last is a rule for all calls after this one.
	last emulator.Kind
}

// pastRetries is more often than a call is sent again.
const pastRetries = 6

// matrixFaults are the kinds of the matrix, those that the fewest clouds survive by
// themselves first.
func matrixFaults() []fault {
	out := []fault{
		{name: "lose-answer", kind: emulator.KindLoseAnswer},
		{name: "lose-answers", kind: emulator.KindLoseAnswer, times: pastRetries},
		{name: "lose-answer-then-outage", kind: emulator.KindLoseAnswer, last: emulator.KindReset},
		{name: "done-but-500", kind: emulator.KindLoseAnswer, status: http.StatusInternalServerError},
		{name: "done-but-504s", kind: emulator.KindLoseAnswer, status: http.StatusGatewayTimeout, times: pastRetries},
		{name: "reset", kind: emulator.KindReset},
		{name: "outage", kind: emulator.KindReset, times: emulator.Forever},
		{name: "interrupt", interrupt: true},
		{name: "delay-beyond-the-timeout", kind: emulator.KindDelay, delay: backends.RequestTimeout + 10*time.Second},
		{name: "delays-beyond-the-timeout", kind: emulator.KindDelay, delay: backends.RequestTimeout + 10*time.Second, times: pastRetries},
		{name: "fail-action", kind: emulator.KindFailAction, changes: true},
		{name: "capacity", kind: emulator.KindCapacity, changes: true},
		{name: "hide-from-lists", kind: emulator.KindHideFromLists, lags: true},
		{name: "early-404", kind: emulator.KindEarly404, makes: true, lags: true},
		{name: "locked", kind: emulator.KindLocked, changes: true, times: 2},
		{name: "pending-event", kind: emulator.KindPendingEvent, changes: true, times: 2},
		{name: "lock-timeout", kind: emulator.KindLockTimeout, changes: true},
		{name: "node-down", kind: emulator.KindNodeDown},
		{name: "nodes-down", kind: emulator.KindNodeDown, times: pastRetries},
		{name: "task-warnings", kind: emulator.KindTaskWarnings, changes: true},
		{name: "rate-limit-burst", kind: emulator.KindRateLimitBurst, times: 2},
		{name: "rate-limit-hour", kind: emulator.KindRateLimitHour},
		{name: "rate-limit-snapshot", kind: emulator.KindRateLimitSnapshot, makes: true},
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		word := strconv.Itoa(status)
		out = append(out,
			fault{name: word, kind: emulator.KindStatus, status: status},
			fault{name: word + "-from-then-on", kind: emulator.KindStatus, status: status, times: emulator.Forever})
	}
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		word := strconv.Itoa(status)
		out = append(out,
			fault{name: word, kind: emulator.KindStatus, status: status},
			fault{name: word + "-html", kind: emulator.KindHTML, status: status},
			fault{name: word + "s", kind: emulator.KindStatus, status: status, times: pastRetries})
	}
	return append(out, fault{name: "502s-html", kind: emulator.KindHTML, status: http.StatusBadGateway, times: pastRetries})
}

// applies tells whether a fault can happen to a call of a cloud.
func (f fault) applies(known []emulator.Kind, call emulator.Call) bool {
	switch {
	case f.interrupt:
		return true
	case !slices.Contains(known, f.kind):
		return false
	case f.makes:
		return call.Method == http.MethodPost
	case f.changes:
		return call.Method != http.MethodGet
	case f.kind == emulator.KindHideFromLists:
		return call.Method == http.MethodGet || call.Method == http.MethodPost
	}
	return true
}

// rules are a fault at the nth call from now.
func (f fault) rules(n int, lag time.Duration) []emulator.Rule {
	if f.interrupt {
		return nil
	}
	rule := emulator.Rule{Kind: f.kind, Nth: n, Times: f.times, Status: f.status, Delay: emulator.Duration(f.delay)}
	if f.lags {
		rule.Delay = emulator.Duration(backends.Scale(lag * 4 / 5))
	}
	out := []emulator.Rule{rule}
	if f.last != "" {
		out = append(out, emulator.Rule{Kind: f.last, Nth: n + 1, Times: emulator.Forever})
	}
	return out
}
