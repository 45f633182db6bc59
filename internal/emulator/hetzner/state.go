// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// firstID is the first id given to an object; smaller ones are the catalog's,
// except images', which have ids of their own up to nine digits.
const firstID = 1_000_000

// store is everything that a state file keeps.
type store struct {
	// NextID numbers all objects and actions of all projects.
	NextID int64 `json:"next_id"`
	// NextAddress numbers the public addresses.
	NextAddress int                 `json:"next_address"`
	Projects    map[string]*project `json:"projects"`
}

// project is what the tokens of one project see.
type project struct {
	Servers         map[int64]*server         `json:"servers"`
	Volumes         map[int64]*volume         `json:"volumes"`
	Actions         map[int64]*action         `json:"actions"`
	SSHKeys         map[int64]*sshKey         `json:"ssh_keys"`
	Networks        map[int64]*network        `json:"networks"`
	Firewalls       map[int64]*firewall       `json:"firewalls"`
	PlacementGroups map[int64]*placementGroup `json:"placement_groups"`
	PrimaryIPs      map[int64]*primaryIP      `json:"primary_ips"`
	// Images are the project's own: snapshots and backups.
	Images map[int64]*image `json:"images"`
	// Open are the actions that have not ended yet, and the halts to come.
	Open []*action `json:"open"`
}

// object is what all things in a project have.
type object struct {
	ID      int64             `json:"id"`
	Name    string            `json:"name"`
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"labels"`
	// HiddenUntil keeps the object out of lists, by a fault.
	HiddenUntil time.Time `json:"hidden_until"`
}

func (o *object) base() *object { return o }

// based is any record with an object in it.
type based interface{ base() *object }

func newProject() *project {
	p := &project{}
	p.complete()
	return p
}

// complete makes the maps that a snapshot left out.
func (p *project) complete() {
	ensure(&p.Servers)
	ensure(&p.Volumes)
	ensure(&p.Actions)
	ensure(&p.SSHKeys)
	ensure(&p.Networks)
	ensure(&p.Firewalls)
	ensure(&p.PlacementGroups)
	ensure(&p.PrimaryIPs)
	ensure(&p.Images)
	// A snapshot holds open actions twice; they must be one again.
	for i, open := range p.Open {
		if known := p.Actions[open.ID]; known != nil {
			p.Open[i] = known
		}
	}
}

func ensure[T any](m *map[int64]T) {
	if *m == nil {
		*m = map[int64]T{}
	}
}

// project finds or makes a project. Its caller holds mu.
func (s *Service) project(name string) *project {
	p := s.store.Projects[name]
	if p == nil {
		p = newProject()
		for _, snapshot := range s.options.Snapshots {
			p.Images[snapshot.ID] = snapshotImage(snapshot)
		}
		s.store.Projects[name] = p
	}
	return p
}

// newID numbers a thing. Its caller holds mu.
func (s *Service) newID() int64 {
	id := s.store.NextID
	s.store.NextID++
	return id
}

// byID returns a map's values in the order of their ids.
func byID[T any](m map[int64]T) []T {
	values := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[id])
	}
	return values
}

// Snapshot is the state to keep, as JSON. It holds no token.
func (s *Service) Snapshot() (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.store)
}

// Restore replaces all projects by those of a snapshot.
func (s *Service) Restore(snapshot json.RawMessage) error {
	restored := store{}
	if err := json.Unmarshal(snapshot, &restored); err != nil {
		return fmt.Errorf("not a snapshot of this service: %w", err)
	}
	for name, p := range restored.Projects {
		if p == nil {
			return fmt.Errorf("project %q is empty", name)
		}
		p.complete()
	}
	if restored.Projects == nil {
		restored.Projects = map[string]*project{}
	}
	restored.NextID = max(restored.NextID, firstID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = restored
	return nil
}
