// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Command terraform-provider-bettercompute is the provider plugin that OpenTofu
// and Terraform start, and some tools around it: emulated clouds to try it on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance/cli"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/emulate"
	"github.com/better-compute/terraform-provider-bettercompute/internal/provider"
)

// version is set by the linker.
var version = "dev"

// usageStatus is the exit status of a wrong command line.
const usageStatus = 2

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// command is a tool of the binary; run returns the exit status.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

var commands = []command{
	{"emulate", "serve emulated clouds on loopback ports; -h lists its flags", runEmulate},
	{"conformance", "hold a cloud account against the backend contract; -h lists its flags", runConformance},
}

func runEmulate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := emulate.Run(ctx, args, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, emulate.ErrUsage):
		fmt.Fprintln(stderr, "emulate:", err)
		return usageStatus
	default:
		fmt.Fprintln(stderr, "emulate:", err)
		return 1
	}
}

func runConformance(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	clouds, err := registry.New()
	if err != nil {
		fmt.Fprintln(stderr, "conformance:", err)
		return 1
	}
	return cli.Run(ctx, args, clouds, stdout, stderr)
}

// run is main without the process: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return serve(stderr, false)
	}
	unexpected := args[min(1, len(args)-1)]
	switch args[0] {
	case "-debug", "--debug":
		if len(args) == 1 {
			return serve(stderr, true)
		}
	case "-version", "--version", "version":
		if len(args) == 1 {
			fmt.Fprintln(stdout, "terraform-provider-bettercompute", version)
			return 0
		}
	case "-h", "-help", "--help", "help":
		usage(stdout)
		return 0
	default:
		if i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] }); i >= 0 {
			return runCommand(commands[i], args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "terraform-provider-bettercompute: unexpected argument %q\n\n", unexpected)
	usage(stderr)
	return usageStatus
}

// runCommand runs a tool until it ends or is interrupted.
func runCommand(c command, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.run(ctx, args, stdout, stderr)
}

// serve is the plugin.
func serve(stderr io.Writer, debugger bool) int {
	boundMemory()
	if err := provider.Serve(version, debugger); err != nil {
		fmt.Fprintln(stderr, "terraform-provider-bettercompute:", err)
		return 1
	}
	return 0
}

// The garbage collector's settings, unless the user has set them (GOGC, GOMEMLIMIT). A
// plugin makes much garbage in a short life: it collects seldom while it is small, and
// often before it is large.
const (
	collectAtGrowth = 400       // percent
	memoryLimit     = 128 << 20 // bytes
)

func boundMemory() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(collectAtGrowth)
		debug.SetMemoryLimit(memoryLimit)
	}
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Usage: terraform-provider-bettercompute [command]

Without a command it serves as the plugin that OpenTofu and Terraform start.

  -debug       serve for a debugger: prints TF_REATTACH_PROVIDERS
  -version     print the version
  -h           print this
`)
	for _, c := range commands {
		fmt.Fprintf(w, "  %-12s %s\n", c.name, c.about)
	}
}
