// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxBody is the largest request body a service reads, in bytes. What a vendor
// allows (user data and such) is far below; the vendor's own limit is the
// backend's to check.
const maxBody = 8 << 20

// Front stands before a [Backend]: it logs every call, adds latency, and
// applies the faults that need no knowledge of the cloud.
type Front struct {
	backend Backend
	// latency is added to every call.
	latency time.Duration
	calls   callLog
	faults  faultSet
	// onChange runs after a call that may have changed something and before
	// its answer is sent.
	onChange func()
}

// NewFront returns the front of a backend, which adds latency to each call.
func NewFront(backend Backend, latency time.Duration) *Front {
	return &Front{backend: backend, latency: latency}
}

// Gate returns the front itself; a service that embeds it so has [Service]'s
// method of that name.
func (f *Front) Gate() *Front { return f }

// Name is the service's name.
func (f *Front) Name() string { return f.backend.Name() }

// BasePath is the path that all routes of the service begin with.
func (f *Front) BasePath() string { return f.backend.BasePath() }

// Calls returns the calls since the start or the last ClearCalls, in the order
// of their arrival.
func (f *Front) Calls() []Call { return f.calls.list() }

// ClearCalls empties the log of calls.
func (f *Front) ClearCalls() { f.calls.clear() }

// Kinds are the fault kinds that can be set for this service.
func (f *Front) Kinds() []Kind { return append(CommonKinds(), f.backend.Kinds()...) }

// AddFault sets a fault. The rule's Service may be empty. An error says what is
// wrong with the rule.
func (f *Front) AddFault(rule Rule) error {
	if rule.Service == "" {
		rule.Service = f.Name()
	}
	if rule.Service != f.Name() {
		return fmt.Errorf("a fault for %s was given to %s", rule.Service, f.Name())
	}
	if err := rule.check(f.Kinds()); err != nil {
		return err
	}
	f.faults.add(rule)
	return nil
}

// ClearFaults removes all faults and lets held calls go on.
func (f *Front) ClearFaults() { f.faults.clear() }

// Faults returns the rules that are set, used up or not.
func (f *Front) Faults() []Rule { return f.faults.list() }

// ServeHTTP logs the call, applies the faults that match it, and passes it on.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := f.calls.begin(r.Method, r.URL.Path, r.URL.RawQuery)
	rules := f.faults.match(r.Method, f.BasePath(), r.URL.Path)

	// The server notices that a client went away only once it has read the
	// whole body, and a call that waits must notice it.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		drop(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))

	if !sleep(r.Context(), f.latency) || !f.wait(r.Context(), call, rules) {
		drop(w)
		return
	}
	answer := f.answer(r, rules)
	if answer == nil {
		drop(w)
		return
	}
	f.calls.update(func() { call.Status = answer.status })
	answer.send(w)
}

// wait carries out the delay and hold faults; false means that the client went
// away meanwhile.
func (f *Front) wait(ctx context.Context, call *Call, rules []*activeRule) bool {
	for _, rule := range rules {
		switch rule.Kind {
		case KindDelay:
			if !sleep(ctx, time.Duration(rule.Delay)) {
				return false
			}
		case KindHold:
			f.calls.update(func() { call.Held = true })
			select {
			case <-rule.gone:
			case <-ctx.Done():
			}
			f.calls.update(func() { call.Held = false })
			if ctx.Err() != nil {
				return false
			}
		}
	}
	return true
}

// answer finds what to say to a call; nil means that the connection drops.
func (f *Front) answer(r *http.Request, rules []*activeRule) *answer {
	for _, rule := range rules {
		if rule.Kind == KindDelay || rule.Kind == KindHold {
			continue
		}
		wait := time.Duration(rule.Delay)
		switch rule.Kind {
		case KindReset:
			sleep(r.Context(), wait)
			return nil
		case KindHTML:
			if !sleep(r.Context(), wait) {
				return nil
			}
			return htmlPage(rule.Status)
		case KindStatus, KindRateLimitBurst, KindRateLimitHour, KindRateLimitSnapshot:
			if !sleep(r.Context(), wait) {
				return nil
			}
			refusal := newAnswer()
			f.backend.Refuse(refusal, r, rule.Rule)
			return refusal
		case KindLoseAnswer:
			f.serve(r, rules)
			if !sleep(r.Context(), wait) || rule.Status == 0 {
				return nil
			}
			refusal := newAnswer()
			f.backend.Refuse(refusal, r, Rule{Kind: KindStatus, Status: rule.Status})
			return refusal
		}
	}
	return f.serve(r, rules)
}

// serve lets the backend answer, with the faults that are its own to carry out.
func (f *Front) serve(r *http.Request, rules []*activeRule) *answer {
	var own []Rule
	for _, rule := range rules {
		if slices.Contains(f.backend.Kinds(), rule.Kind) {
			own = append(own, rule.Rule)
		}
	}
	answer := newAnswer()
	f.backend.Serve(answer, r.WithContext(withFaults(r.Context(), own)))
	if f.onChange != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		f.onChange()
	}
	return answer
}

// sleep waits unless the context ends first, which it reports as false.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
