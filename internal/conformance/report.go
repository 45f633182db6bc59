// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Status is what became of a case.
type Status string

// The statuses.
const (
	Passed  Status = "pass"
	Failed  Status = "FAIL"
	Skipped Status = "skip"
)

// Result is what became of one case.
type Result struct {
	Case   Case
	Status Status
	Err    error  // why it failed; nil when only cleaning up did
	Reason string // why it was skipped
	// Left is what could not be cleaned up; a case that leaves something failed.
	Left     []Leftover
	Duration time.Duration // cleaning up included
	Calls    int           // requests, cleaning up included; -1 when not known
}

// Report is what became of a run.
type Report struct {
	Results  []Result
	Duration time.Duration
	// Err is what kept the run from starting or ended it early.
	Err error
}

// OK tells whether the run went to its end and nothing failed. Skipped cases don't
// fail it; that none ran at all does.
func (r Report) OK() bool {
	return r.Err == nil && r.count(Failed) == 0 && r.count(Passed) > 0
}

// Left is everything that could not be cleaned up.
func (r Report) Left() []Leftover {
	var left []Leftover
	for _, result := range r.Results {
		left = append(left, result.Left...)
	}
	return left
}

func (r Report) count(status Status) int {
	n := 0
	for _, result := range r.Results {
		if result.Status == status {
			n++
		}
	}
	return n
}

// nameWidth is that of the longest name of a case.
var nameWidth = func() int {
	width := 0
	for _, c := range Cases() {
		width = max(width, len(c.Name))
	}
	return width
}()

// String is the case's line or lines, each ended.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-*s", r.Status, nameWidth, r.Case.Name)
	if r.Status == Skipped {
		fmt.Fprintf(&b, "  %s\n", r.Reason)
	} else {
		fmt.Fprintf(&b, "  %8s", r.Duration.Round(time.Millisecond))
		if r.Calls >= 0 {
			fmt.Fprintf(&b, "  %3d calls", r.Calls)
		}
		b.WriteByte('\n')
	}
	if r.Status == Failed {
		fmt.Fprintf(&b, "      The contract: %s\n", r.Case.About)
	}
	if r.Err != nil {
		indent(&b, explain(r.Err))
	}
	for _, l := range r.Left {
		indent(&b, "Not cleaned up: "+l.String())
	}
	return b.String()
}

// Summary is the last line, and before it what ended the run.
func (r Report) Summary() string {
	var b strings.Builder
	if r.Err != nil {
		fmt.Fprintf(&b, "\n%s\n", explain(r.Err))
	}
	if left := len(r.Left()); left > 0 {
		fmt.Fprintf(&b, "\nNot everything was cleaned up (%d, see above): delete it by hand.\n", left)
	}
	fmt.Fprintf(&b, "\n%d cases: %d passed, %d failed, %d skipped, in %s.\n", len(r.Results),
		r.count(Passed), r.count(Failed), r.count(Skipped), r.Duration.Round(100*time.Millisecond))
	return b.String()
}

// explain is an error with what the contract's errors hold beside their text. An
// [backends.Error] is printed by its code and message, never with its details'
// unknown rest.
func explain(err error) string {
	var b strings.Builder
	b.WriteString(err.Error())
	e := backends.AsError(err)
	if e == nil {
		return b.String()
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, "\nreason: %s", e.Reason)
	}
	for _, name := range []string{"status", "code", "correlation_id"} {
		if v, ok := e.Details[name]; ok {
			fmt.Fprintf(&b, "\n%s: %v", name, v)
		}
	}
	if e.Remedy != "" {
		fmt.Fprintf(&b, "\n%s", e.Remedy)
	}
	return b.String()
}

func indent(b *strings.Builder, text string) {
	lines := slices.Collect(strings.Lines(text))
	for _, line := range lines {
		fmt.Fprintf(b, "      %s\n", strings.TrimRight(line, "\n"))
	}
}
