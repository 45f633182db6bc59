// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// The times of a real cluster.
const (
	// DefaultLag is how often pvestatd publishes what runs on a node.
	DefaultLag = 10 * time.Second
	// cloneLockWait and lockWait are how long a clone, and everything else,
	// waits for a VM's lock.
	cloneLockWait = time.Second
	lockWait      = 10 * time.Second
	// shutdownWait is how long a shutdown waits for the guest.
	shutdownWait = 60 * time.Second
)

// Options are what an emulated cluster can be told.
type Options struct {
	// Boot is how long a VM takes until it runs, cloning included: a full clone
	// takes half of it, other tasks a part. 0: tasks are done when they are
	// asked for. The times below that are 0 follow from it.
	Boot time.Duration
	// CloneTime is how long the copies of a full clone's drives take; a linked
	// clone takes a quarter of it.
	CloneTime time.Duration
	// TaskTime is how long other tasks take: start, stop, resize, destroy.
	TaskTime time.Duration
	// ForkTime is how long after the answer with its UPID a task begins its work,
	// and so for how long two clones into one VMID may both be accepted.
	ForkTime time.Duration
	// AgentDelay is how long after its start a guest's agent answers.
	AgentDelay time.Duration
	// Latency is added to each call.
	Latency time.Duration
	// Lag is how much /cluster/resources lags behind with names, status and
	// templates, and how long the HA manager takes to act. 0 is [DefaultLag];
	// negative: none.
	Lag time.Duration
	// Scale multiplies the fixed times of Proxmox VE: Lag, the waits for locks
	// and for a guest's shutdown. 0 is 1.
	Scale float64
	// AuthDelay is how long a refusal for want of a valid token is held back;
	// the real one takes 3 s.
	AuthDelay time.Duration
	// Projects separates tokens (user@realm!name=secret), each project being a
	// cluster of its own; empty: any token sees the one cluster.
	Projects emulator.Projects
	// Version is the major version, 8 or 9; 0 is 9. Errors of 8 have no message
	// in their bodies, and privileges other names.
	Version int
	// Nodes are the names of the nodes; none: pve1 and pve2.
	Nodes []string
	// Storages are those of the cluster; none: [DefaultStorages].
	Storages []Storage
	// Snippets is a folder of this machine with the snippets of one more storage,
	// [SnippetsStorage], which all nodes share; "": there is none.
	Snippets string
	// Templates and Containers are there from the start; nil: [DefaultTemplates]
	// and [DefaultContainers].
	Templates  []Template
	Containers []Container
	// Bridges are what network cards can be on, on every node; none: vmbr0.
	Bridges []string
	// Pools are the resource pools; nil: one called "tofu".
	Pools []string
	// RegisteredTags are those that only a token with Sys.Modify on / may put on a VM
	// or take off it, as a datacenter's settings can say.
	RegisteredTags []string
	// Denials and Grants are what tokens may not do, and may; without any of
	// either all tokens may do everything.
	Denials Denials
	Grants  []Grant
	// IgnoreShutdown makes the guests ignore the shutdown request.
	IgnoreShutdown bool
	// PlainHTTP lets the emulator's listener speak HTTP, not HTTPS.
	PlainHTTP bool
}

// Service is an emulated cluster (one for each project): an [emulator.Service],
// and so an http.Handler of the paths below /api2/json and /api2/extjs.
type Service struct {
	*emulator.Front
	options     Options
	routes      []route
	certificate tls.Certificate
	fingerprint string

	// mu guards everything below. Every call holds it while it is served, but
	// for the time that it waits for a lock.
	mu    sync.Mutex
	store store
	// warnings are how many warnings the tasks that begin will have.
	warnings int
}

var _ emulator.Service = (*Service)(nil)

// New returns an emulated cluster with its templates and without machines. The
// error says which options don't fit together, or why there is no certificate.
func New(options Options) (*Service, error) {
	options.complete()
	if err := options.check(); err != nil {
		return nil, err
	}
	s := &Service{options: options, store: newStore()}
	if !options.PlainHTTP {
		var err error
		if s.certificate, s.fingerprint, err = newCertificate(options.Nodes, time.Now()); err != nil {
			return nil, err
		}
	}
	s.routes = routes()
	for _, project := range options.projects() {
		s.cluster(project)
	}
	s.Front = emulator.NewFront(backend{s}, options.Latency)
	return s, nil
}

// check reports templates and containers in places that the cluster doesn't have.
func (o *Options) check() error {
	var problems []error
	if _, known := versions[o.Version]; !known {
		problems = append(problems, fmt.Errorf("there is no version %d, only 8 and 9", o.Version))
	}
	for _, t := range o.Templates {
		if !slices.ContainsFunc(o.Storages, func(st Storage) bool { return st.Name == t.Storage }) {
			problems = append(problems, fmt.Errorf("template %d is on storage %q, which the cluster doesn't have", t.VMID, t.Storage))
		}
		if !slices.Contains(o.Nodes, t.Node) {
			problems = append(problems, fmt.Errorf("template %d is on node %q, which the cluster doesn't have", t.VMID, t.Node))
		}
	}
	for _, c := range o.Containers {
		if !slices.Contains(o.Nodes, c.Node) {
			problems = append(problems, fmt.Errorf("container %d is on node %q, which the cluster doesn't have", c.VMID, c.Node))
		}
	}
	return errors.Join(problems...)
}

// projects are the names of all projects that a token can see.
func (o *Options) projects() []string {
	if len(o.Projects) == 0 {
		return []string{emulator.DefaultProject}
	}
	return slices.Collect(maps.Values(o.Projects))
}

func (o *Options) complete() {
	if o.Scale == 0 {
		o.Scale = 1
	}
	switch {
	case o.Lag == 0:
		o.Lag = DefaultLag
	case o.Lag < 0:
		o.Lag = 0
	}
	o.Lag = o.scaled(o.Lag)
	if o.CloneTime == 0 {
		o.CloneTime = o.Boot / 2
	}
	if o.TaskTime == 0 {
		o.TaskTime = o.Boot / 8
	}
	if o.ForkTime == 0 {
		o.ForkTime = o.Boot / 64
	}
	if o.AgentDelay == 0 {
		o.AgentDelay = o.Boot / 4
	}
	if o.Version == 0 {
		o.Version = 9
	}
	if len(o.Nodes) == 0 {
		o.Nodes = []string{"pve1", "pve2"}
	}
	if len(o.Storages) == 0 {
		o.Storages = DefaultStorages()
	}
	if o.Snippets != "" {
		o.Storages = append(slices.Clone(o.Storages), Storage{
			Name: SnippetsStorage, Type: "dir", Shared: true, Content: "snippets", Total: 100 * gib, Folder: o.Snippets,
		})
	}
	if len(o.Bridges) == 0 {
		o.Bridges = []string{"vmbr0"}
	}
	if o.Templates == nil {
		o.Templates = DefaultTemplates(o.Nodes)
	}
	if o.Containers == nil {
		o.Containers = DefaultContainers(o.Nodes)
	}
	if o.Pools == nil {
		o.Pools = []string{"tofu"}
	}
}

func (o *Options) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * o.Scale)
}
