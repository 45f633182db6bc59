// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// report is all that was measured.
type report struct {
	Options options
	// CLI is how the CLI names itself, Machine what it ran on.
	CLI, Machine string
	Series       []series
	Ratios       []ratio
	// Start is the time until the schema is answered, Size the binary's in bytes.
	Start time.Duration
	Size  int64
}

// conditions says how the numbers came about.
func (r report) conditions() string {
	return fmt.Sprintf("%s on %s, each call to the emulated cloud at least %s, a machine boots in %s; "+
		"apply and destroy with `-parallelism=%d`, refresh (`plan -refresh-only`) and plan with the CLI's own 10.",
		r.CLI, r.Machine, r.Options.latency, r.Options.boot, r.Options.parallelism)
}

// markdown is the whole report.
func (r report) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "# What it costs\n\nMade by `make bench`. %s\n\n", r.conditions())
	w.WriteString("Changes are the calls that are no GET; reads are lists, gets and polls. Wall is the CLI's whole run. CPU is the CLI's and the provider's, " +
		"and the provider's alone; memory is the peak of the provider's resident memory.\n")
	if r.Options.refreshSize > 0 {
		fmt.Fprintf(&w, "\nFor N = %d only the refresh is measured: the objects are applied before, in the same cloud without latency.\n", r.Options.refreshSize)
	}
	for _, s := range r.Series {
		fmt.Fprintf(&w, "\n## %s\n\n", s.Title)
		t := table{{"N", "phase", "calls", "changes", "reads", "wall", "CPU", "provider CPU", "provider memory"}}
		for _, row := range s.Rows {
			t = append(t, []string{
				strconv.Itoa(row.N), row.Phase, strconv.Itoa(row.calls()), strconv.Itoa(row.Changes), strconv.Itoa(row.Reads),
				seconds(row.Wall), seconds(row.CPU), seconds(row.Provider.CPU), mebibytes(row.Provider.Memory),
			})
		}
		w.WriteString(t.markdown())
	}
	if len(r.Ratios) > 0 {
		w.WriteString("\n## Beside resources that do nothing\n\nThe same state and schema under a provider whose resources do nothing, and under one that answers without " +
			"the plugin framework; medians. The ratio is of wall time, less two round trips.\n\n")
		t := table{{"command", "N", "ours", "resources", "ratio", "answers", "ratio", "CPU of the three"}}
		for _, x := range r.Ratios {
			t = append(t, []string{
				x.Command, strconv.Itoa(x.N), seconds(x.Ours.Wall),
				seconds(x.Resources.Wall), fmt.Sprintf("%.2f", x.of(x.Resources, r.Options.latency)),
				seconds(x.Answers.Wall), fmt.Sprintf("%.2f", x.of(x.Answers, r.Options.latency)),
				seconds(x.Ours.CPU) + ", " + seconds(x.Resources.CPU) + ", " + seconds(x.Answers.CPU),
			})
		}
		w.WriteString(t.markdown())
	}
	fmt.Fprintf(&w, "\n## The binary\n\n%s.\n", r.binary())
	return w.String()
}

// binary is the line about the binary.
func (r report) binary() string {
	return fmt.Sprintf("The binary has %s, and from its start until it has answered `GetProviderSchema` it takes %d ms (median of %d)",
		mebibytes(r.Size), r.Start.Milliseconds(), starts)
}

// summary is what the README shows: the refresh, by cloud and N.
func (r report) summary() string {
	var w strings.Builder
	t := table{{"refresh of"}}
	sizes := r.Options.refreshed()
	for _, n := range sizes {
		t[0] = append(t[0], "N = "+strconv.Itoa(n))
	}
	for _, s := range r.Series {
		cells := []string{s.Title}
		for _, n := range sizes {
			cell := ""
			if row, ok := s.at(phaseRefresh, n); ok {
				cell = fmt.Sprintf("%s, %s, %s", plural(row.calls(), "call"), seconds(row.Wall), mebibytes(row.Provider.Memory))
			}
			cells = append(cells, cell)
		}
		t = append(t, cells)
	}
	w.WriteString(t.markdown())
	fmt.Fprintf(&w, "\nThe time is the whole run's, the memory the provider's peak. %s %s.", r.conditions(), r.binary())
	for _, x := range r.Ratios {
		fmt.Fprintf(&w, " `%s` of %d instances takes %.2f times as long as with resources of the same schema that do nothing.",
			x.Command, x.N, x.of(x.Resources, r.Options.latency))
	}
	if r.Options.refreshSize > 0 {
		fmt.Fprintf(&w, " The %d objects were applied without latency.", r.Options.refreshSize)
	}
	return w.String() + "\n"
}

// refreshed are the numbers of objects that are refreshed.
func (o options) refreshed() []int {
	if o.refreshSize == 0 {
		return o.sizes
	}
	return append(append([]int{}, o.sizes...), o.refreshSize)
}

// charts are the pictures: what a refresh costs in calls, and in time.
func (r report) charts() []chart {
	calls := chart{File: "refresh-calls.svg", Title: "Calls of a refresh", Y: "calls"}
	times := chart{File: "refresh-seconds.svg", Title: "Time of a refresh", Y: "seconds"}
	for _, s := range r.Series {
		a, b := line{Title: s.Title}, line{Title: s.Title}
		for _, n := range r.Options.refreshed() {
			if row, ok := s.at(phaseRefresh, n); ok {
				a.Points = append(a.Points, point{float64(n), float64(row.calls())})
				b.Points = append(b.Points, point{float64(n), row.Wall.Seconds()})
			}
		}
		calls.Lines, times.Lines = append(calls.Lines, a), append(times.Lines, b)
	}
	one := line{Title: "one call for each", Dashed: true}
	for _, n := range r.Options.refreshed() {
		one.Points = append(one.Points, point{float64(n), float64(n)})
	}
	calls.Lines = append(calls.Lines, one)
	return []chart{calls, times}
}

func (r row) calls() int { return r.Changes + r.Reads }

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }

// table is rows of cells, the first of which is the heading.
type table [][]string

// markdown renders the table.
func (t table) markdown() string {
	var w strings.Builder
	for i, cells := range t {
		w.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			w.WriteString(strings.Repeat("| --- ", len(cells)) + "|\n")
		}
	}
	return w.String()
}
