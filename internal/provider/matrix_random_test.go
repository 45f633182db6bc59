// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRandomFaults puts several faults into one run, at calls beyond those of a run
// without faults too: retries and what mends meet them. It holds what [TestFaultMatrix]
// holds. rapid prints the seed of a failure; with TORTURE set it plays as many as rapid
// wants:
//
//	go test ./internal/provider -run 'TestRandomFaults/proxmox' -rapid.seed=4711 -rapid.checks=200
func TestRandomFaults(t *testing.T) {
	t.Setenv("PROXMOX_TOKEN", "root@pam!tofu=secret")
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for _, m := range matrixClouds(t) {
		t.Run(m.name, func(t *testing.T) {
			pieces := map[string]*piece{}
			operations := m.all(t)
			names := make([]string, len(operations))
			for i, op := range operations {
				names[i] = op.name
			}
			played := 0
			rapid.Check(t, func(r *rapid.T) {
				if os.Getenv(tortureVariable) == "" && played == randomSample {
					return
				}
				played++
				name := rapid.SampledFrom(names).Draw(r, "operation")
				p := pieces[name]
				if p == nil {
					p = m.rehearse(t, operations[slices.Index(names, name)])
					if p == nil {
						r.Fatalf("%s fails without a fault", name)
					}
					pieces[name] = p
				}
				if _, problems := p.problems(t, p.random(r)); problems != "" {
					delete(pieces, name) // shrinking plays the same outcomes again
					r.Fatal(problems)
				}
			})
			t.Logf("%d schedules", played)
		})
	}
}

// random is a schedule of two to four faults.
func (p *piece) random(r *rapid.T) (out schedule) {
	faults := matrixFaults()
	for range rapid.IntRange(2, 4).Draw(r, "faults") {
		n := rapid.IntRange(1, len(p.calls)+5).Draw(r, "call")
		what := p.calls[min(n, len(p.calls))-1]
		possible := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
			return f.interrupt || !slices.Contains(p.known, f.kind)
		})
		f := rapid.SampledFrom(possible).Draw(r, "fault")
		out = append(out, scheduled{n, f, what})
	}
	return out
}
