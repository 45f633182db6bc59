// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// idleVariable is the environment variable that chooses what the idle provider does
// (internal/provider/idle).
const idleVariable = "BETTERCOMPUTE_IDLE"

// ratio compares a command with the same under providers that do nothing, which serve
// the same schema over the same state.
type ratio struct {
	Command string
	N       int
	// Ours is the provider's; Resources is that of the idle provider whose resources
	// do nothing but are served by the same framework; Answers that of the one which
	// answers the CLI without the framework.
	Ours, Resources, Answers cost
}

// of is how many times as long ours takes as an idle provider, less two round trips
// to the cloud, which something that refreshes must take.
func (r ratio) of(idle cost, latency time.Duration) float64 {
	return float64(r.Ours.Wall-2*latency) / float64(idle.Wall)
}

// compare runs a refresh and a plan of N objects with the provider and with the idle
// ones, in turn, and takes the median of the rounds.
func (b *bench) compare(ctx context.Context, w workload, n int) (ratios []ratio, err error) {
	s, err := b.open(ctx, w, n, emulator.Settings{})
	if err != nil {
		return nil, err
	}
	defer s.end(&err)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := s.run(ctx, b.provider, "apply", "-auto-approve", s.parallel()); err != nil {
		return nil, err
	}
	if err := s.slowDown(b.latency); err != nil {
		return nil, err
	}
	for _, arguments := range [][]string{{"plan", "-refresh-only"}, {"plan", "-detailed-exitcode"}} {
		var ours, resources, answers []cost
		for range b.rounds {
			for _, turn := range []struct {
				costs        *[]cost
				binary, mode string
			}{{&ours, b.provider, ""}, {&resources, b.idle, "resources"}, {&answers, b.idle, "answers"}} {
				s.environment = append(s.environment, idleVariable+"="+turn.mode)
				c, err := s.run(ctx, turn.binary, arguments[0], arguments[1:]...)
				if err != nil {
					return nil, err
				}
				*turn.costs = append(*turn.costs, c)
			}
		}
		r := ratio{arguments[0] + " " + arguments[1], n, median(ours), median(resources), median(answers)}
		if arguments[1] == "-detailed-exitcode" {
			r.Command = arguments[0]
		}
		ratios = append(ratios, r)
		fmt.Fprintf(b.progress, "bench:   %s: %s, resources that do nothing %s, answers %s\n",
			r.Command, r.Ours.Wall, r.Resources.Wall, r.Answers.Wall)
	}
	return ratios, nil
}

// median is the cost of the median wall time.
func median(costs []cost) cost {
	sorted := slices.SortedFunc(slices.Values(costs), func(a, b cost) int { return int(a.Wall - b.Wall) })
	return sorted[len(sorted)/2]
}
