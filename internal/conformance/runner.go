// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Run runs the cases against a subject, one after the other, and reports on each.
// Whatever a case made is deleted before the next one begins. The end of ctx ends
// the run; cleaning up goes on, for [Subject.CleanupTimeout] at most per case.
func Run(ctx context.Context, subject Subject) Report {
	begun := time.Now()
	r := &run{subject: &subject}
	report := Report{}
	report.Err = r.start(ctx)
	if report.Err == nil {
		report.Results = r.all(ctx)
		r.tidyAccount(ctx)
		if ctx.Err() != nil {
			report.Err = fmt.Errorf("the run was ended: %w", context.Cause(ctx))
		}
	}
	report.Duration = time.Since(begun)
	if r.calls.Load() == 0 {
		// The backend has a transport of its own: nothing is known of its calls.
		for i := range report.Results {
			report.Results[i].Calls = -1
		}
	}
	return report
}

type run struct {
	subject *Subject
	backend backends.Backend
	calls   atomic.Int64
	vital   string // the vital case that failed
}

// start builds the backend and makes sure that no earlier run left anything under
// the same prefix, which the cases would take for their own.
func (r *run) start(ctx context.Context) error {
	s := r.subject
	if err := s.check(); err != nil {
		return err
	}
	s.Environment = quiet(s.Environment)
	// A backend's own transport knows the account's certificate, so it is wrapped, not
	// replaced.
	wrap := s.Environment.Wrapped
	s.Environment.Wrap = func(base http.RoundTripper) http.RoundTripper { return counting{wrap(base), &r.calls} }
	s.CaseTimeout = cmp.Or(s.CaseTimeout, DefaultCaseTimeout)
	s.CleanupTimeout = cmp.Or(s.CleanupTimeout, DefaultCleanupTimeout)

	var err error
	r.backend, err = s.Account.Definition().Create(s.Account.FullConfig(), s.Environment)
	if err != nil {
		return fmt.Errorf("the backend can't be built: %w", err)
	}
	left, err := r.leftBefore(ctx)
	if err != nil {
		return nil //nolint:nilerr // The cases say better what is wrong with the account.
	}
	if len(left) > 0 {
		return backends.Errorf(backends.InvalidState, "The prefix %s is in use: the account has %s.", s.Prefix, strings.Join(left, ", ")).
			WithRemedy("Choose another prefix, or delete them if the run that made them is over.")
	}
	return nil
}

// leftBefore names what is in the pools of the run's cases before it begins.
func (r *run) leftBefore(ctx context.Context) ([]string, error) {
	var left []string
	if _, ok := r.backend.(backends.Lister); ok {
		found, err := inPools(ctx, r.subject, machineShelf(r.subject, r.backend))
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	stores := map[string]backends.VolumeStore{}
	if b, ok := r.backend.(backends.Volumer); ok {
		stores["volume"] = b.Volumes()
	}
	if b, ok := r.backend.(backends.SharedVolumer); ok && r.subject.Network != "" {
		stores["shared volume"] = b.SharedVolumes()
	}
	for _, noun := range slices.Sorted(maps.Keys(stores)) {
		found, err := inPools(ctx, r.subject, volumeShelf(r.subject, stores[noun], noun))
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	if b, ok := r.backend.(backends.Snapshotter); ok {
		found, err := inPools(ctx, r.subject, snapshotShelf(r.subject, b.Snapshots(), "snapshot"))
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// inPools names the objects of a kind that are in the pools of the subject's cases.
func inPools[T backends.Object](ctx context.Context, s *Subject, shelf *shelf[T]) ([]string, error) {
	objects, err := shelf.list(ctx, backends.Filter{Account: s.Account.AccountID()})
	if err != nil {
		return nil, err
	}
	var pools []backends.Filter
	for _, c := range Cases() {
		for n := range poolsPerCase {
			pools = append(pools, backends.Filter{Pool: pool(s, c.Name, n).PoolID()})
		}
	}
	var out []string
	for _, o := range objects {
		a := o.About()
		if slices.ContainsFunc(pools, func(f backends.Filter) bool { return f.Holds(a.Marks) }) {
			out = append(out, fmt.Sprintf("the %s %q (%s)", shelf.noun, a.Name, a.ID))
		}
	}
	return out, nil
}

func (r *run) all(ctx context.Context) []Result {
	var results []Result
	for _, c := range Cases() {
		if r.subject.Only != nil && !r.subject.Only.MatchString(c.Name) {
			continue
		}
		result := r.one(ctx, c)
		results = append(results, result)
		if c.Vital && result.Status == Failed {
			r.vital = c.Name
		}
		if r.subject.Progress != nil {
			r.subject.Progress(result)
		}
	}
	return results
}

func (r *run) one(ctx context.Context, c Case) Result {
	result := Result{Case: c}
	if ctx.Err() != nil {
		result.Status, result.Reason = Skipped, "the run was ended before it"
		return result
	}
	if r.vital != "" {
		result.Status, result.Reason = Skipped, r.vital+" failed"
		return result
	}
	for _, need := range c.Needs {
		if reason := r.subject.missing(need, r.backend); reason != "" {
			result.Status, result.Reason = Skipped, reason
			return result
		}
	}
	begun, before := time.Now(), r.calls.Load()
	t := &Trial{Subject: r.subject, Case: c.Name, Backend: r.backend}
	ctx = context.WithValue(ctx, caseKey{}, c.Name)
	err := attempt(ctx, t, c)
	result.Left = r.cleanUp(ctx, t, err != nil)
	result.Duration, result.Calls = time.Since(begun), int(r.calls.Load()-before)

	var skip skipped
	switch {
	case errors.As(err, &skip):
		result.Status, result.Reason = Skipped, skip.Error()
	case err != nil:
		result.Status, result.Err = Failed, err
	default:
		result.Status = Passed
	}
	if len(result.Left) > 0 {
		result.Status = Failed
	}
	return result
}

// attempt runs a case within its time. A panic is a failure of the backend, not
// the end of the run: machines are still to be cleaned up.
func attempt(ctx context.Context, t *Trial, c Case) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.CaseTimeout,
		fmt.Errorf("the case took longer than %s: %w", t.CaseTimeout, context.DeadlineExceeded))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Run(ctx, t)
}

// counting counts requests.
type counting struct {
	base  http.RoundTripper
	calls *atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.base.RoundTrip(r)
}
