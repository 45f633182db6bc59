// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// bench is a run of the command.
type bench struct {
	options
	scratch  string
	progress io.Writer
}

// The phases, in the order in which they run and are shown.
const (
	phaseApply   = "apply"
	phaseRefresh = "refresh"
	phasePlan    = "plan"
	phaseDestroy = "destroy"
)

// row is one phase of one workload at one N.
type row struct {
	Phase string
	N     int
	// Changes are the calls that are no GET, Reads the others: lists, gets, polls.
	Changes, Reads int
	cost
}

// series is what was measured of one workload, by N and phase.
type series struct {
	Title string
	Cloud string
	Kind  string
	Rows  []row
}

// at finds a row.
func (s series) at(phase string, n int) (row, bool) {
	for _, r := range s.Rows {
		if r.Phase == phase && r.N == n {
			return r, true
		}
	}
	return row{}, false
}

// measure runs everything.
func (b *bench) measure(ctx context.Context) (report, error) {
	result := report{Options: b.options, Machine: fmt.Sprintf("%d processors, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)}
	var err error
	if result.CLI, err = b.cliVersion(ctx); err != nil {
		return report{}, err
	}
	info, err := os.Stat(b.provider)
	if err != nil {
		return report{}, err
	}
	result.Size = info.Size()
	if result.Start, err = startTime(ctx, b.provider); err != nil {
		return report{}, err
	}
	chosen := slices.DeleteFunc(workloads(), func(w workload) bool { return !strings.Contains(w.title(), b.only) })
	if len(chosen) == 0 {
		return report{}, fmt.Errorf("no workload has %q in its title", b.only)
	}
	for _, w := range chosen {
		s := series{Title: w.title(), Cloud: w.cloud.Title, Kind: w.kind}
		for _, n := range b.sizes {
			rows, err := b.life(ctx, w, n)
			if err != nil {
				return report{}, fmt.Errorf("%s, N = %d: %w", w.title(), n, err)
			}
			s.Rows = append(s.Rows, rows...)
		}
		if b.refreshSize > 0 {
			rows, err := b.refreshOnly(ctx, w, b.refreshSize)
			if err != nil {
				return report{}, fmt.Errorf("%s, N = %d: %w", w.title(), b.refreshSize, err)
			}
			s.Rows = append(s.Rows, rows...)
		}
		result.Series = append(result.Series, s)
	}
	if b.idle != "" {
		if result.Ratios, err = b.compare(ctx, chosen[0], b.sizes[len(b.sizes)-1]); err != nil {
			return report{}, fmt.Errorf("the comparison: %w", err)
		}
	}
	return result, nil
}

// cliVersion is how the CLI names itself.
func (b *bench) cliVersion(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, b.cli, "version")
	cmd.Dir, cmd.Env = b.scratch, cleanEnvironment(os.Environ())
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w", b.cli, err)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return name, nil
}

// stage is a cloud with a folder whose configuration leads to it.
type stage struct {
	*runner
	*serving
	bench *bench
	n     int
}

func (b *bench) settings() emulator.Settings {
	return emulator.Settings{Boot: b.boot, Latency: b.latency}
}

// open serves a workload's cloud, empty, and writes the configuration.
func (b *bench) open(ctx context.Context, w workload, n int, settings emulator.Settings) (*stage, error) {
	folder, err := os.MkdirTemp(b.scratch, "run")
	if err != nil {
		return nil, err
	}
	r, err := newRunner(folder, b.options, w)
	if err != nil {
		return nil, err
	}
	cloud, err := serve(ctx, w.cloud, settings)
	if err != nil {
		return nil, err
	}
	text := w.configuration(n, w.cloud.Account(cloud.Service, cloud.address))
	if err := os.WriteFile(filepath.Join(folder, "main.tf"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "bench: %s, N = %d\n", w.title(), n)
	return &stage{runner: r, serving: cloud, bench: b, n: n}, nil
}

// phase runs a command and counts its calls.
func (s *stage) phase(ctx context.Context, phase string, arguments ...string) (row, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.Gate().ClearCalls()
	used, err := s.run(ctx, s.bench.provider, arguments[0], arguments[1:]...)
	if err != nil {
		return row{}, err
	}
	r := row{Phase: phase, N: s.n, cost: used}
	for _, call := range s.Gate().Calls() {
		if call.Method == http.MethodGet {
			r.Reads++
		} else {
			r.Changes++
		}
	}
	fmt.Fprintf(s.bench.progress, "bench:   %-8s %6d calls %9s, CPU %9s, provider %9s and %s\n", phase, r.Changes+r.Reads,
		seconds(used.Wall), seconds(used.CPU), seconds(used.Provider.CPU), mebibytes(used.Provider.Memory))
	return r, nil
}

func (s *stage) parallel() string { return "-parallelism=" + strconv.Itoa(s.parallelism) }

// life is the whole life of N objects.
func (b *bench) life(ctx context.Context, w workload, n int) (rows []row, err error) {
	s, err := b.open(ctx, w, n, b.settings())
	if err != nil {
		return nil, err
	}
	defer s.end(&err)
	for _, p := range []struct {
		phase     string
		arguments []string
	}{
		{phaseApply, []string{"apply", "-auto-approve", s.parallel()}},
		{phaseRefresh, []string{"plan", "-refresh-only"}},
		{phasePlan, []string{"plan", "-detailed-exitcode"}}, // a difference is an error
		{phaseDestroy, []string{"destroy", "-auto-approve", s.parallel()}},
	} {
		r, err := s.phase(ctx, p.phase, p.arguments...)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, s.empty()
}

// end stops the cloud.
func (s *stage) end(err *error) { *err = errors.Join(*err, s.stop()) }

// empty says what the destroy has left.
func (s *stage) empty() error {
	if o := s.Objects(); len(o.Machines)+len(o.Volumes) > 0 {
		return fmt.Errorf("the destroy left %d machines and %d volumes", len(o.Machines), len(o.Volumes))
	}
	return nil
}

// refreshOnly makes N objects by an apply in a cloud without latency, and refreshes
// and plans them in the same cloud with it. Neither the apply nor a destroy counts:
// both take minutes and show nothing that a smaller N doesn't.
func (b *bench) refreshOnly(ctx context.Context, w workload, n int) (rows []row, err error) {
	s, err := b.open(ctx, w, n, emulator.Settings{})
	if err != nil {
		return nil, err
	}
	defer s.end(&err)
	applying, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := s.run(applying, b.provider, "apply", "-auto-approve", s.parallel()); err != nil {
		return nil, err
	}
	if err := s.slowDown(b.latency); err != nil {
		return nil, err
	}
	r, err := s.phase(ctx, phaseRefresh, "plan", "-refresh-only")
	return []row{r}, err
}
