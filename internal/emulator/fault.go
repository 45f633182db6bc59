// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says what a fault does to the calls it matches.
type Kind string

// The fault kinds. Those of [CommonKinds] every service has; the others only
// where the cloud has such a failure.
const (
	// KindLoseAnswer lets the effect happen and drops the connection. With a
	// status the answer is an error of that status instead (done, but reported
	// as failed); with a delay the loss comes that much later.
	KindLoseAnswer Kind = "lose-answer"
	// KindReset drops the connection before anything happens.
	KindReset Kind = "reset"
	// KindDelay lets the call wait for the delay before anything happens.
	KindDelay Kind = "delay"
	// KindStatus answers with a status (500 when not given) and an error body
	// in the vendor's form, without effect.
	KindStatus Kind = "status"
	// KindHTML answers with a status (502 when not given) and an HTML page, as
	// a proxy in front of an API does, without effect.
	KindHTML Kind = "html"
	// KindHold lets the call wait until the faults are deleted or the client
	// goes away.
	KindHold Kind = "hold"
	// KindRateLimitBurst refuses as if too many calls came at once.
	KindRateLimitBurst Kind = "rate-limit-burst"
	// KindRateLimitHour refuses as if the hour's calls were used up.
	KindRateLimitHour Kind = "rate-limit-hour"
	// KindRateLimitSnapshot refuses as if an object's snapshots came too fast.
	KindRateLimitSnapshot Kind = "rate-limit-snapshot"
	// KindFailAction lets the asynchronous work that the call starts fail.
	KindFailAction Kind = "fail-action"
	// KindHideFromLists keeps objects out of lists for the delay (10 s when
	// not given) after they were made: those made by a matched call, and in a
	// matched list those made within the delay before it.
	KindHideFromLists Kind = "hide-from-lists"
	// KindEarly404 answers "not found" for an object that was just made.
	KindEarly404 Kind = "early-404"
	// KindPendingEvent refuses because the object has an unfinished event.
	KindPendingEvent Kind = "pending-event"
	// KindLocked refuses because the object is locked.
	KindLocked Kind = "locked"
	// KindLockTimeout fails because a lock could not be had in time.
	KindLockTimeout Kind = "lock-timeout"
	// KindCapacity refuses because the cloud has no room.
	KindCapacity Kind = "capacity"
	// KindNodeDown answers as if a node of a cluster were gone.
	KindNodeDown Kind = "node-down"
	// KindTaskWarnings lets the asynchronous work that the call starts succeed with a
	// warning.
	KindTaskWarnings Kind = "task-warnings"
)

// CommonKinds are the fault kinds that every service has.
func CommonKinds() []Kind {
	return []Kind{KindLoseAnswer, KindReset, KindDelay, KindStatus, KindHTML, KindHold}
}

// allKinds are the common ones and those that a service may carry out.
func allKinds() []Kind {
	return append(CommonKinds(),
		KindRateLimitBurst, KindRateLimitHour, KindRateLimitSnapshot, KindFailAction,
		KindHideFromLists, KindEarly404, KindPendingEvent, KindLocked, KindLockTimeout,
		KindCapacity, KindNodeDown, KindTaskWarnings)
}

// DefaultHiding is how long hide-from-lists hides when it has no delay: the
// list lag that clients are expected to cope with.
const DefaultHiding = 10 * time.Second

// Forever as a rule's Times makes the rule apply until it is deleted.
const Forever = -1

// Rule is a fault: which calls of a service it matches, and what happens then.
type Rule struct {
	Service string `json:"service"`
	// Method is matched exactly; empty or "*" matches any.
	Method string `json:"method"`
	// Path is matched against the whole path without the query, and against
	// the path below the service's base path; "*" stands for any run of
	// characters, "/" too. Empty matches any.
	Path string `json:"path"`
	// Nth is the match, counted from 1 since the rule was set, at which the
	// rule begins to apply; 0 means 1.
	Nth int `json:"nth"`
	// Times is to how many matches in a row it applies; 0 means 1, [Forever]
	// all that follow.
	Times int  `json:"times"`
	Kind  Kind `json:"kind"`
	// Status is the answer's status code, for the kinds that use one.
	Status int `json:"status"`
	// Delay is a duration as Go writes it ("1.5s"), for the kinds that use one.
	Delay Duration `json:"delay"`
}

// Duration is a [time.Duration] that JSON writes as Go does, e.g. "1m30s".
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads a duration from a string that [time.ParseDuration]
// accepts; the empty string and null are 0.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf(`delay must be a string such as "1.5s", not %s`, data)
	}
	if text == nil || *text == "" {
		*d = 0
		return nil
	}
	parsed, err := time.ParseDuration(*text)
	if err != nil {
		return fmt.Errorf("delay %q is not a duration such as \"1.5s\"", *text)
	}
	*d = Duration(parsed)
	return nil
}

// check completes a rule's defaults and reports all that is wrong with it.
func (r *Rule) check(kinds []Kind) error {
	var problems []error
	switch {
	case r.Kind == "":
		problems = append(problems, fmt.Errorf("kind is missing; %s knows %s", r.Service, joinKinds(kinds)))
	case !slices.Contains(allKinds(), r.Kind):
		problems = append(problems, fmt.Errorf("unknown kind %q; %s knows %s", r.Kind, r.Service, joinKinds(kinds)))
	case !slices.Contains(kinds, r.Kind):
		problems = append(problems, fmt.Errorf("kind %q does not apply to %s, which knows %s", r.Kind, r.Service, joinKinds(kinds)))
	}
	if r.Nth < 0 {
		problems = append(problems, fmt.Errorf("nth must be at least 1, not %d", r.Nth))
	}
	if r.Times < Forever {
		problems = append(problems, fmt.Errorf("times must be at least 1, or -1 for all that follow, not %d", r.Times))
	}
	if r.Status != 0 && (r.Status < 400 || r.Status > 599) {
		problems = append(problems, fmt.Errorf("status must be an error's, 400 to 599, not %d", r.Status))
	}
	if r.Delay < 0 {
		problems = append(problems, fmt.Errorf("delay must not be negative"))
	}
	if r.Kind == KindDelay && r.Delay == 0 {
		problems = append(problems, fmt.Errorf(`kind "delay" needs a delay`))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}

	r.Method = strings.ToUpper(r.Method)
	if r.Nth == 0 {
		r.Nth = 1
	}
	if r.Times == 0 {
		r.Times = 1
	}
	switch {
	case r.Kind == KindStatus && r.Status == 0:
		r.Status = 500
	case r.Kind == KindHTML && r.Status == 0:
		r.Status = 502
	case r.Kind == KindHideFromLists && r.Delay == 0:
		r.Delay = Duration(DefaultHiding)
	}
	return nil
}

func joinKinds(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = string(kind)
	}
	return strings.Join(words, ", ")
}
