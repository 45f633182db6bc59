// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// DefaultSnapshotInterval is the least time between two snapshots of a volume
// ("one request per 10m0s", says the API's refusal).
const DefaultSnapshotInterval = 10 * time.Minute

// Options are what an emulated DigitalOcean can be told.
type Options struct {
	// Boot is how long a Droplet takes from its creation until it is active;
	// other actions take a part of it. 0: actions are done when they are asked for.
	Boot time.Duration
	// DeleteTime is how long a Droplet is still there after its deletion was
	// accepted. 0 is a quarter of Boot.
	DeleteTime time.Duration
	// StatusLag is how much later than an action's completion its effect on the
	// Droplet shows.
	StatusLag time.Duration
	// Latency is added to each call.
	Latency time.Duration
	// RateLimit is the calls per hour and project; 0: not limited (and
	// reported as 5000 with 4999 left).
	RateLimit int
	// Burst is the calls per minute and project, where RateLimit is set; 0 is a
	// twentieth of RateLimit, as the real 250 of 5000.
	Burst int
	// Projects separates tokens; empty: any token sees the one project.
	Projects emulator.Projects
	// DropletLimit and VolumeLimit are how many of them an account may have;
	// 0: any number.
	DropletLimit int
	VolumeLimit  int
	// IgnoreShutdown makes the guests ignore the shutdown request.
	IgnoreShutdown bool
	// SnapshotInterval is the least time between two snapshots of one volume.
	// 0 is [DefaultSnapshotInterval]; negative: none.
	SnapshotInterval time.Duration
}

// Service is an emulated DigitalOcean: an [emulator.Service], and so an
// http.Handler of the paths below /v2.
type Service struct {
	*emulator.Front
	options Options
	limits  *limits
	routes  []route

	// mu guards everything below. Every call holds it while it is served.
	mu      sync.Mutex
	catalog catalog
	store   store
}

var _ emulator.Service = (*Service)(nil)

// tokenVariable is the variable that the documentation of this project uses.
const tokenVariable = "DIGITALOCEAN_TOKEN"

// Cloud is the entry of this cloud in the command line's list of emulators.
func Cloud() emulator.Cloud {
	return emulator.Cloud{
		Name:    "digitalocean",
		Title:   "DigitalOcean",
		Address: "127.0.0.1:8802",
		New: func(settings emulator.Settings) emulator.Service {
			interval := settings.SnapshotInterval
			if interval == 0 {
				interval = -1
			}
			return New(Options{
				Boot:             settings.Boot,
				Latency:          settings.Latency,
				RateLimit:        settings.RateLimit,
				Projects:         settings.Projects,
				SnapshotInterval: interval,
			})
		},
		Account: func(_ emulator.Service, address string) string {
			return fmt.Sprintf("digitalocean = {\n  token    = \"env://%s\"\n  region   = \"fra1\"\n  endpoint = \"http://%s\"\n}", tokenVariable, address)
		},
		TokenVariable: tokenVariable,
	}
}

// New returns an emulated cloud without Droplets.
func New(options Options) *Service {
	if options.DeleteTime == 0 {
		options.DeleteTime = options.Boot / 4
	}
	if options.SnapshotInterval == 0 {
		options.SnapshotInterval = DefaultSnapshotInterval
	}
	s := &Service{
		options: options,
		limits:  newLimits(options.RateLimit, options.Burst),
		catalog: newCatalog(time.Now()),
		store:   newStore(),
	}
	s.routes = routes()
	s.Front = emulator.NewFront(backend{s}, options.Latency)
	return s
}
