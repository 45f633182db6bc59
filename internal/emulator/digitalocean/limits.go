// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"sync"
	"time"
)

const (
	// usualLimit is the real limit per hour, reported when there is none here.
	usualLimit = 5000
	// burstShare is the part of an hour's calls that a minute may have: 250 of 5000.
	burstShare = 20
	// keyCalls of GET /v2/account/keys are allowed in keyWindow.
	keyCalls  = 10
	keyWindow = time.Minute
)

// limits counts the calls of every project in sliding windows: an hour, and a
// minute for the bursts.
type limits struct {
	perHour, perMinute int
	mu                 sync.Mutex
	calls              map[string][]time.Time
	keys               map[string][]time.Time
}

func newLimits(perHour, perMinute int) *limits {
	if perMinute == 0 {
		perMinute = (perHour + burstShare - 1) / burstShare
	}
	return &limits{perHour: perHour, perMinute: perMinute, calls: map[string][]time.Time{}, keys: map[string][]time.Time{}}
}

// quota is what a call learns of the limits.
type quota struct {
	ok        bool
	limit     int
	remaining int
	// reset is when the oldest counted call expires.
	reset time.Time
	// retry is how long to wait after a burst; 0 where only the hour helps.
	retry time.Duration
}

// unlimited is the quota where nothing is limited.
func unlimited(now time.Time) quota {
	return quota{ok: true, limit: usualLimit, remaining: usualLimit - 1, reset: now.Add(time.Hour)}
}

// take counts a call of a project, if the limits let it pass; refused calls
// don't count. keys: the call lists SSH keys, which has a limit of its own.
func (l *limits) take(project string, keys bool) quota {
	now := time.Now()
	if l.perHour <= 0 {
		return unlimited(now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := since(l.calls[project], now.Add(-time.Hour))
	minute := since(calls, now.Add(-time.Minute))
	listed := since(l.keys[project], now.Add(-keyWindow))
	q := quota{limit: l.perHour, remaining: max(0, l.perHour-len(calls)), reset: now}
	switch {
	case q.remaining == 0:
	case len(minute) >= l.perMinute:
		q.retry = minute[0].Add(time.Minute).Sub(now)
	case keys && len(listed) >= keyCalls:
		q.retry = listed[0].Add(keyWindow).Sub(now)
	default:
		q.ok = true
		q.remaining--
		calls = append(calls, now)
		if keys {
			listed = append(listed, now)
		}
	}
	if q.retry > 0 {
		q.remaining = 0
	}
	l.calls[project], l.keys[project] = calls, listed
	if len(calls) > 0 {
		q.reset = calls[0].Add(time.Hour)
	}
	return q
}

// since is the part of ascending times that is after one.
func since(times []time.Time, start time.Time) []time.Time {
	for i, t := range times {
		if t.After(start) {
			return times[i:]
		}
	}
	return nil
}
