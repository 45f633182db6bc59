// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runner runs a CLI in a folder of its own, with this program in the provider's
// place (see [shim]).
type runner struct {
	cli, folder, record string
	parallelism         int
	environment         []string
}

// newRunner prepares a folder: the configuration, and a CLI configuration that
// takes the provider from there, so that there is nothing to install.
func newRunner(folder string, o options, w workload) (*runner, error) {
	plugins := filepath.Join(folder, "plugins")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(self, filepath.Join(plugins, pluginName)); err != nil {
		return nil, err
	}
	settings := filepath.Join(folder, "cli.tfrc")
	text := fmt.Sprintf(`disable_checkpoint = true

provider_installation {
  dev_overrides {
    "registry.opentofu.org/better-compute/bettercompute"  = %[1]q
    "registry.terraform.io/better-compute/bettercompute" = %[1]q
  }
}
`, plugins)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return nil, err
	}
	r := &runner{cli: o.cli, folder: folder, record: filepath.Join(folder, "usage"), parallelism: o.parallelism}
	r.environment = append(cleanEnvironment(os.Environ()),
		"TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		shimRecord+"="+r.record, w.cloud.TokenVariable+"="+w.token())
	return r, nil
}

// cleanEnvironment leaves out what would change a run: settings for the CLIs and for
// the provider, such as its time scale.
func cleanEnvironment(environment []string) []string {
	var clean []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "TF_") && !strings.HasPrefix(entry, "BETTERCOMPUTE_") {
			clean = append(clean, entry)
		}
	}
	return clean
}

// cost is what a command of the CLI needed.
type cost struct {
	// Wall is the time from its start to its end.
	Wall time.Duration
	// CPU is the processor time of the CLI and the providers together.
	CPU time.Duration
	// Provider is the part of the providers.
	Provider usage
}

// run runs a command of the CLI with a provider's binary. An error shows the end of
// what the CLI printed.
func (r *runner) run(ctx context.Context, binary, command string, arguments ...string) (cost, error) {
	cmd := exec.CommandContext(ctx, r.cli, append([]string{command, "-no-color", "-input=false"}, arguments...)...)
	cmd.Dir = r.folder
	cmd.Env = append(slices.Clone(r.environment), shimBinary+"="+binary)
	// An interrupt lets the CLI end its providers; a kill would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		const shown = 4000
		text := output.Bytes()
		return cost{}, fmt.Errorf("%s %s: %w\n%s", filepath.Base(r.cli), command, err, text[max(0, len(text)-shown):])
	}
	used, err := takeUsage(r.record)
	return cost{Wall: wall, CPU: usageOf(cmd.ProcessState).CPU, Provider: used}, err
}

// wait is the longest that a command may take.
const wait = 40 * time.Minute
