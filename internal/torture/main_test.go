// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// What the environment says besides CLI and TF_ACC.
const (
	// amountVariable is "points" for every death at every point, the conditions it meets
	// in turn; "all" for each death under each condition, which takes hours; else a
	// sample is run.
	amountVariable = "TORTURE"
	// seedVariable chooses the sample, a number; unset: 1.
	seedVariable = "TORTURE_SEED"
)

// cli and binary are the programs under test; "" where no CLI is to be driven.
var cli, binary string

// tally counts what the tests did, for their last line.
var tally struct{ schedules, points, reached, imported atomic.Int64 }

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		code = 1
	}
	os.Exit(code)
}

// run builds the provider, as make build does, and runs the tests.
func run(m *testing.M) (int, error) {
	if os.Getenv("TF_ACC") == "" {
		return m.Run(), nil
	}
	if cli = cmp.Or(os.Getenv("CLI"), os.Getenv("TF_ACC_TERRAFORM_PATH")); cli == "" {
		return 0, errors.New("CLI must name an OpenTofu or a Terraform")
	}
	folder, err := os.MkdirTemp("", "torture")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, pluginName)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "../..")
	if text, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, text)
	}
	code := m.Run()
	if n := tally.schedules.Load(); n > 0 {
		fmt.Printf("torture: %d schedules; %d of %d came to their point; %d objects were imported by what a CONFLICT printed\n",
			n, tally.reached.Load(), tally.points.Load(), tally.imported.Load())
	}
	// The last calls may be missing in a run that polls less; not half of them.
	if tally.reached.Load()*2 < tally.points.Load() {
		return 1, errors.New("most schedules didn't come to their point, and so have shown nothing")
	}
	return code, nil
}

// needsCLI skips a test where there is no CLI to drive.
func needsCLI(t *testing.T) {
	t.Helper()
	if cli == "" {
		t.Skip("TF_ACC is not set")
	}
}

// schedule counts a schedule, and says how to run it again when it fails.
func schedule(t *testing.T) {
	t.Helper()
	tally.schedules.Add(1)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again: make torture TORTURE=all RUN=%s", t.Name())
		}
	})
}

// amount is how much is wanted: "all", "points", or "" for a sample.
func amount() string { return os.Getenv(amountVariable) }

// sample are n of the elements, chosen by the seed, no two of one group; or all of
// them where more is wanted.
func sample[T any](t *testing.T, from []T, n int, group func(T) string) []T {
	t.Helper()
	if amount() != "" {
		return from
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %s", seedVariable, err)
	}
	var out []T
	taken := map[string]bool{}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(from)) {
		if g := group(from[i]); len(out) < n && !taken[g] {
			taken[g] = true
			out = append(out, from[i])
		}
	}
	return out
}
