// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// store is everything that a state file keeps.
type store struct {
	// Clusters are by the names of their projects.
	Clusters map[string]*cluster `json:"clusters"`
}

func newStore() store { return store{Clusters: map[string]*cluster{}} }

// cluster is what the tokens of one project see.
type cluster struct {
	// VMs are by their VMIDs, which QEMU VMs and containers share.
	VMs     map[int]*guest  `json:"vms"`
	Volumes []*volume       `json:"volumes"`
	Tasks   []*task         `json:"tasks"`
	Down    map[string]bool `json:"down"`
	Pools   []string        `json:"pools"`
	// NextPID numbers the workers, NextMAC the network cards, NextLease the
	// addresses of the DHCP server.
	NextPID   uint32 `json:"next_pid"`
	NextMAC   uint32 `json:"next_mac"`
	NextLease int    `json:"next_lease"`
}

// guest is a VM, a template or a container.
type guest struct {
	ID   int    `json:"id"`
	LXC  bool   `json:"lxc"`
	Node string `json:"node"`
	// Config are the options in force, Pending those that wait for the next
	// start, Removed those that will be taken away then.
	Config  map[string]string `json:"config"`
	Pending map[string]string `json:"pending"`
	Removed map[string]bool   `json:"removed"`
	Pool    string            `json:"pool"`
	Running bool              `json:"running"`
	Started time.Time         `json:"started"`
	Created time.Time         `json:"created"`
	PID     uint32            `json:"pid"`
	// Agent tells that a guest agent is installed in the guest.
	Agent bool `json:"agent"`
	// HA is the state that the HA manager is asked to keep; empty: it has
	// nothing to do with the VM.
	HA string `json:"ha"`
	// HiddenUntil keeps the VM out of lists, by a fault.
	HiddenUntil time.Time `json:"hidden_until"`
	// Seen is what pvestatd has published, and will.
	Seen []published `json:"seen"`
	// Lease numbers the guest's address from DHCP.
	Lease int `json:"lease"`
	// Drive is what the drive for cloud-init was written from, Booted what was on it
	// when the guest last read it.
	Drive  map[string]string `json:"drive"`
	Booted map[string]string `json:"booted"`
	// UserData is what the last start gave to cloud-init, where the options name
	// a snippet for it.
	UserData string `json:"user_data"`
}

// published is what pvestatd says of a VM.
type published struct {
	At       time.Time `json:"at"`
	Name     string    `json:"name"`
	Running  bool      `json:"running"`
	Template bool      `json:"template"`
}

// option is an option in force; the empty string where there is none.
func (g *guest) option(name string) string { return g.Config[name] }

func (g *guest) isTemplate() bool { return g.Config["template"] == "1" }

// name is what lists call the guest.
func (g *guest) name() string {
	name := g.Config["name"]
	if g.LXC {
		name = g.Config["hostname"]
	}
	if name == "" && !g.LXC {
		return fmt.Sprintf("VM %d", g.ID)
	}
	return name
}

func (g *guest) kind() string {
	if g.LXC {
		return "lxc"
	}
	return "qemu"
}

func (g *guest) status() string {
	if g.Running {
		return "running"
	}
	return "stopped"
}

// publish notes what has changed of what pvestatd publishes.
func (p *cluster) publish(now time.Time, lag time.Duration) {
	for _, g := range p.VMs {
		current := published{At: now.Add(lag), Name: g.name(), Running: g.Running, Template: g.isTemplate()}
		if n := len(g.Seen); n > 0 {
			last := g.Seen[n-1]
			last.At = current.At
			if last == current {
				continue
			}
		}
		g.Seen = append(g.Seen, current)
		// What is no longer shown is not kept.
		for len(g.Seen) > 1 && !g.Seen[1].At.After(now) {
			g.Seen = g.Seen[1:]
		}
	}
}

// seen is the last that pvestatd has published of a VM.
func (g *guest) seen(now time.Time) (last published, any bool) {
	for _, p := range g.Seen {
		if !p.At.After(now) {
			last, any = p, true
		}
	}
	return last, any
}

// cluster finds or makes a project's cluster. Its caller holds mu.
func (s *Service) cluster(project string) *cluster {
	p := s.store.Clusters[project]
	if p == nil {
		p = s.newCluster()
		s.store.Clusters[project] = p
	}
	return p
}

func (s *Service) newCluster() *cluster {
	p := &cluster{Pools: slices.Clone(s.options.Pools)}
	p.complete()
	for _, template := range s.options.Templates {
		s.addTemplate(p, template)
	}
	for _, container := range s.options.Containers {
		s.addContainer(p, container)
	}
	// What is there from the start has been published long ago.
	p.publish(time.Now(), 0)
	return p
}

// complete makes the maps that a snapshot left out.
func (p *cluster) complete() {
	ensure(&p.VMs)
	ensure(&p.Down)
	for _, g := range p.VMs {
		g.complete()
	}
}

// complete makes the maps of a guest.
func (g *guest) complete() {
	ensure(&g.Config)
	ensure(&g.Pending)
	ensure(&g.Removed)
	if g.Drive == nil && g.Running {
		g.writeDrive()
		g.boot()
	}
}

func ensure[K comparable, T any](m *map[K]T) {
	if *m == nil {
		*m = map[K]T{}
	}
}

// byID returns a map's values in the order of their keys.
func byID[K cmp.Ordered, T any](m map[K]T) []T {
	values := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[id])
	}
	return values
}

func (s *Service) hasNode(name string) bool { return slices.Contains(s.options.Nodes, name) }

// newMAC makes the address of a network card.
func (p *cluster) newMAC() string {
	p.NextMAC++
	n := p.NextMAC
	return fmt.Sprintf("BC:24:11:%02X:%02X:%02X", byte(n>>16), byte(n>>8), byte(n))
}

// check reports what no snapshot of this service has.
func (p *cluster) check() error {
	for id, g := range p.VMs {
		if g == nil || g.ID != id {
			return fmt.Errorf("VM %d isn't there", id)
		}
	}
	if slices.Contains(p.Volumes, nil) {
		return errors.New("a volume isn't there")
	}
	for _, t := range p.Tasks {
		if t == nil || steps[t.Type] == nil {
			return errors.New("a task isn't there, or of no known type")
		}
	}
	return nil
}

// Snapshot is the state to keep, as JSON. It holds no token.
func (s *Service) Snapshot() (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.store)
}

// Restore replaces all clusters by those of a snapshot.
func (s *Service) Restore(snapshot json.RawMessage) error {
	restored := newStore()
	if err := json.Unmarshal(snapshot, &restored); err != nil {
		return fmt.Errorf("not a snapshot of this service: %w", err)
	}
	ensure(&restored.Clusters)
	for name, p := range restored.Clusters {
		if p == nil {
			return fmt.Errorf("project %q is empty", name)
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("project %q: %w", name, err)
		}
		p.complete()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = restored
	return nil
}
