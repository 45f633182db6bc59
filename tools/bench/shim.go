// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pluginName is the name under which the CLIs look for the provider.
const pluginName = "terraform-provider-bettercompute"

// The environment of the shim: the binary that it stands before, and the file to
// which it adds a line when that has ended.
const (
	shimBinary = "BETTERCOMPUTE_BENCH_BINARY"
	shimRecord = "BETTERCOMPUTE_BENCH_RECORD"
)

// usage is what a process of the provider needed.
type usage struct {
	CPU    time.Duration
	Memory int64 // the peak of its resident memory, in bytes
}

// isShim tells whether the program was started under the provider's name. The CLIs
// start the provider themselves, and a grandchild's usage can't be asked for; so
// they are given this program in its place, which starts the real one.
func isShim(name string) bool { return strings.HasPrefix(filepath.Base(name), pluginName) }

// shim runs the real provider, with the same streams, and records its usage.
func shim(args []string) int {
	// The CLI's Ctrl-C reaches the whole group of processes, and the provider has
	// to decide about it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	//nolint:noctx // it ends with its own child, which the CLI ends
	cmd := exec.Command(os.Getenv(shimBinary), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	if err := record(os.Getenv(shimRecord), usageOf(cmd.ProcessState)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// record adds a line to the file. Several providers of one command may end at once;
// a short write that appends is not torn.
func record(file string, u usage) error {
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// takeUsage reads what the providers of one command needed, the sum of their CPU
// times and the largest peak of memory, and removes the file.
func takeUsage(file string) (usage, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return usage{}, errors.New("the CLI ended the provider before its usage was recorded")
	} else if err != nil {
		return usage{}, err
	}
	var total usage
	for line := range strings.Lines(string(data)) {
		var u usage
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			return usage{}, err
		}
		total.CPU += u.CPU
		total.Memory = max(total.Memory, u.Memory)
	}
	return total, os.Remove(file)
}
