// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Command bench measures the built provider as a user meets it: under a CLI that
// applies, refreshes, plans and destroys N objects in each emulated cloud. It prints
// calls, wall time and the provider's CPU time and peak memory for each N, how the
// plan compares with one of resources that do nothing, the time that a start takes
// and the size of the binary. `make bench` builds what it needs and runs it; with
// -readme it rewrites the numbers in the README.
//
// It runs on Unix systems only, since it asks the system for a process's peak memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if isShim(os.Args[0]) {
		os.Exit(shim(os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options is the command line.
type options struct {
	cli, provider, idle string
	out, readme         string
	// only is a part of the titles of the workloads to run; empty: all.
	only  string
	sizes []int
	// refreshSize is one more N, of which only the refresh is measured.
	refreshSize int
	latency     time.Duration
	boot        time.Duration
	parallelism int
	rounds      int
}

func (o *options) parse(args []string, stderr io.Writer) error {
	o.sizes = []int{10, 100, 1000}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.cli, "cli", "", "the OpenTofu or Terraform `binary` that drives the provider")
	flags.StringVar(&o.provider, "provider", "", "the provider's `binary`")
	flags.StringVar(&o.idle, "idle", "", "the `binary` of the provider that does nothing (internal/provider/idle); without it there is no comparison")
	flags.StringVar(&o.out, "out", "", "`folder` for results.md and the charts; without it they are only printed")
	flags.StringVar(&o.readme, "readme", "", "`file` whose block of numbers is rewritten")
	flags.StringVar(&o.only, "only", "", "run only workloads with this `text` in their titles, such as \"Hetzner Cloud, volumes\"")
	flags.Func("n", "`numbers` of objects, with commas (default 10,100,1000)", func(text string) (err error) {
		o.sizes, err = parseSizes(text)
		return err
	})
	flags.IntVar(&o.refreshSize, "refresh-n", 0, "one more `number` of objects, which is only refreshed; 0 is none")
	flags.DurationVar(&o.latency, "latency", 50*time.Millisecond, "`duration` that each call to an emulator takes at least")
	flags.DurationVar(&o.boot, "boot", 2*time.Second, "`duration` a machine takes until it runs")
	flags.IntVar(&o.parallelism, "parallelism", 64, "the CLI's -parallelism for apply and destroy; refresh and plan have the CLI's own")
	flags.IntVar(&o.rounds, "rounds", 3, "how often the comparison with the idle provider is run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.cli == "" || o.provider == "" || flags.NArg() > 0 {
		return errors.New("say -cli and -provider, and nothing but flags")
	}
	if o.only != "" && o.readme != "" {
		return errors.New("-only leaves numbers out, so it can't be with -readme")
	}
	for _, path := range []*string{&o.cli, &o.provider, &o.idle} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}

// parseSizes reads numbers such as "10,100", which may come in any order.
func parseSizes(text string) ([]int, error) {
	var sizes []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of objects", part)
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	if err := o.parse(args, stderr); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	b := &bench{options: o, scratch: scratch, progress: stderr}
	result, err := b.measure(ctx)
	if err != nil {
		return err
	}
	text := result.markdown()
	fmt.Fprint(stdout, text)
	if o.out != "" {
		if err := writeOut(o.out, text, result); err != nil {
			return err
		}
	}
	if o.readme == "" {
		return nil
	}
	return rewriteReadme(o.readme, result.summary())
}

// writeOut writes the report and the charts.
func writeOut(folder, text string, result report) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	files := map[string]string{"results.md": text}
	for _, c := range result.charts() {
		svg, err := c.svg()
		if err != nil {
			return err
		}
		files[c.File] = svg
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
