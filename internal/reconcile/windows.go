// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The windows of DESIGN.md §7, before scaling.
const (
	// watchWindow is how long another's half-made object is watched before it is
	// taken over: it may be a live run's.
	watchWindow = 30 * time.Second
	// readBackDelay is between writing a claim over another's and reading it back.
	readBackDelay = 2 * time.Second
	// graceWindow is what a guest gets to shut down before it is powered off.
	graceWindow = 60 * time.Second
	// firstPoll and lastPoll bound the pause between two polls.
	firstPoll = 250 * time.Millisecond
	lastPoll  = 5 * time.Second
	// diagnoseEvery is how often the cloud is asked why a machine isn't there yet.
	diagnoseEvery = time.Minute
	// goingWindow is what a cloud gets to delete the volumes that it was told to delete
	// with their machine, once the machine is gone.
	goingWindow = 60 * time.Second
	// defaultListLag is how long a new object may be missing from lists.
	defaultListLag = 10 * time.Second
	// refreshAge is how old a list may be for a refresh: the objects of one plan share
	// it, also those of a long one. An Accounts lives as long as one configured provider,
	// which is one run of a CLI. It is never scaled, since it is no wait.
	refreshAge = time.Minute
	// lookUpAge is how old a list may be for a look-up before something is made.
	lookUpAge = 5 * time.Second
)

// poll is the pause before the nth poll of a wait, n from 0.
func poll(n int) time.Duration {
	d := firstPoll
	for range n {
		if d = d * 3 / 2; d >= lastPoll {
			return backends.Scale(lastPoll)
		}
	}
	return backends.Scale(d)
}
