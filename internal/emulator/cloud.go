// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"flag"
	"time"
)

// Settings are what the command line sets for every service.
type Settings struct {
	// Boot is how long a machine takes until it runs.
	Boot time.Duration
	// Latency is added to each call.
	Latency time.Duration
	// RateLimit is the calls per hour and project; 0: no limit.
	RateLimit int
	// SnapshotInterval is the least time between two snapshots of one volume, in
	// clouds that have such a limit; 0: none.
	SnapshotInterval time.Duration
	// Projects separates tokens; empty: all see one project.
	Projects Projects
}

// Cloud is an entry of the command line's list of services.
type Cloud struct {
	// Name is the service's name, also that of the flag for its address.
	Name string
	// Title is the vendor's name for people.
	Title string
	// Address is where it listens by default.
	Address string
	// New makes the service.
	New func(Settings) Service
	// Configure is in New's place where a cloud has options of its own: it adds
	// their flags, whose names begin with the cloud's, and returns what makes the
	// service once they are read.
	Configure func(*flag.FlagSet) func(Settings) (Service, error)
	// Account is the attribute of an account resource that leads to the
	// service at an address such as "127.0.0.1:8801", ready to paste: on several
	// lines, since the CLIs print the source line of a block that an error is about.
	Account func(service Service, address string) string
	// TokenVariable is the environment variable that Account refers to.
	TokenVariable string
	// Token is a token that works, as a shell takes it; empty: anything does.
	Token string
}

// Maker is what makes the cloud's service, once the flags that it adds are read.
func (c Cloud) Maker(flags *flag.FlagSet) func(Settings) (Service, error) {
	if c.Configure != nil {
		return c.Configure(flags)
	}
	return func(settings Settings) (Service, error) { return c.New(settings), nil }
}
