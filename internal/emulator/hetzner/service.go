// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// Options are what an emulated Hetzner Cloud can be told.
type Options struct {
	// Boot is how long a server takes from its creation until it runs; other
	// actions take a part of it. 0: actions are done when they are asked for.
	Boot time.Duration
	// DeleteTime is how long a server shows as "deleting", its name taken.
	// 0 is a quarter of Boot.
	DeleteTime time.Duration
	// Latency is added to each call.
	Latency time.Duration
	// RateLimit is the calls per hour and project; 0: not limited (and
	// reported as 3600 of 3600 left).
	RateLimit int
	// Projects separates tokens; empty: any token sees the one project.
	Projects emulator.Projects
	// Currency is that of all prices; empty: EUR.
	Currency string
	// VATRate is the value added tax in percent, between net and gross prices;
	// empty: "19.000000".
	VATRate string
	// ServerLimit and VolumeLimit are how many of them a project may have; 0: any
	// number.
	ServerLimit int
	VolumeLimit int
	// IgnoreShutdown makes the guests ignore the ACPI shutdown request.
	IgnoreShutdown bool
	// Snapshots are images that every project has from the start.
	Snapshots []Snapshot
}

// Snapshot is an image of type snapshot for [Options].
type Snapshot struct {
	// ID is the image's id; it must not be one of the catalog's.
	ID int64
	// Description is all the name that a snapshot has.
	Description string
	// Architecture is x86 or arm.
	Architecture string
	// DiskSize is the least disk a server needs for it, in GB.
	DiskSize int
	Labels   map[string]string
}

// Service is an emulated Hetzner Cloud: an [emulator.Service], and so an
// http.Handler of the paths below /v1.
type Service struct {
	*emulator.Front
	options Options
	limiter *emulator.Limiter
	routes  []route

	// mu guards everything below. Every call holds it while it is served.
	mu      sync.Mutex
	catalog catalog
	store   store
}

var _ emulator.Service = (*Service)(nil)

// tokenVariable is the variable that Hetzner's own tools read.
const tokenVariable = "HCLOUD_TOKEN"

// Cloud is the entry of this cloud in the command line's list of emulators.
func Cloud() emulator.Cloud {
	return emulator.Cloud{
		Name:    "hetzner",
		Title:   "Hetzner Cloud",
		Address: "127.0.0.1:8801",
		New: func(settings emulator.Settings) emulator.Service {
			return New(Options{
				Boot:      settings.Boot,
				Latency:   settings.Latency,
				RateLimit: settings.RateLimit,
				Projects:  settings.Projects,
			})
		},
		Account: func(_ emulator.Service, address string) string {
			return fmt.Sprintf("hetzner_cloud = {\n  token    = \"env://%s\"\n  endpoint = \"http://%s/v1\"\n}", tokenVariable, address)
		},
		TokenVariable: tokenVariable,
	}
}

// New returns an emulated cloud without servers.
func New(options Options) *Service {
	if options.Currency == "" {
		options.Currency = "EUR"
	}
	if options.VATRate == "" {
		options.VATRate = "19.000000"
	}
	if options.DeleteTime == 0 {
		options.DeleteTime = options.Boot / 4
	}
	s := &Service{
		options: options,
		limiter: emulator.NewLimiter(options.RateLimit),
		catalog: newCatalog(time.Now(), options.VATRate),
		store:   store{NextID: firstID, Projects: map[string]*project{}},
	}
	s.routes = routes()
	s.Front = emulator.NewFront(backend{s}, options.Latency)
	return s
}
