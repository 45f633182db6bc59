// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// The first ids given to things of projects; smaller ones are the catalog's.
const (
	firstDroplet = 400_000_001
	firstAction  = 2_000_000_001
	firstImage   = 180_000_001
	firstKey     = 50_000_001
)

// store is everything that a state file keeps.
type store struct {
	// The next number of each kind, over all projects.
	NextDroplet int64 `json:"next_droplet"`
	NextAction  int64 `json:"next_action"`
	NextImage   int64 `json:"next_image"`
	NextKey     int64 `json:"next_key"`
	// NextAddress numbers the public addresses, NextVPC the VPCs' ranges.
	NextAddress int                 `json:"next_address"`
	NextVPC     int                 `json:"next_vpc"`
	Projects    map[string]*project `json:"projects"`
}

func newStore() store {
	return store{
		NextDroplet: firstDroplet,
		NextAction:  firstAction,
		NextImage:   firstImage,
		NextKey:     firstKey,
		Projects:    map[string]*project{},
	}
}

// project is what the tokens of one project see: a team's account.
type project struct {
	Droplets map[int64]*droplet `json:"droplets"`
	// Images are the project's own: snapshots of Droplets.
	Images   map[int64]*image   `json:"images"`
	SSHKeys  map[int64]*sshKey  `json:"ssh_keys"`
	VPCs     map[string]*vpc    `json:"vpcs"`
	Actions  map[int64]*action  `json:"actions"`
	Tags     map[string]*tag    `json:"tags"`
	Destroys map[int64]*destroy `json:"destroys"`
	// Spellings are the first ones of all tags there ever were, by the tags in
	// lower case.
	Spellings map[string]string `json:"spellings"`
	// Open are the actions whose effect is still to come, and the halts to come.
	Open []*action `json:"open"`

	volumeStore
}

// object is what all things in a project have.
type object struct {
	Created time.Time `json:"created"`
	// Tags are in their canonical spelling, in the order they were given.
	Tags []string `json:"tags"`
	// HiddenUntil keeps the object out of lists, MissingUntil out of lists and
	// gets, by faults.
	HiddenUntil  time.Time `json:"hidden_until"`
	MissingUntil time.Time `json:"missing_until"`
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
	ensure(&p.Droplets)
	ensure(&p.Images)
	ensure(&p.SSHKeys)
	ensure(&p.VPCs)
	ensure(&p.Actions)
	ensure(&p.Tags)
	ensure(&p.Destroys)
	ensure(&p.Spellings)
	p.volumeStore.complete()
	// A snapshot holds open actions twice; they must be one again.
	for i, open := range p.Open {
		if known := p.Actions[open.ID]; known != nil {
			p.Open[i] = known
		}
	}
}

func ensure[K comparable, T any](m *map[K]T) {
	if *m == nil {
		*m = map[K]T{}
	}
}

// project finds or makes a project. Its caller holds mu.
func (s *Service) project(name string) *project {
	p := s.store.Projects[name]
	if p == nil {
		p = newProject()
		s.store.Projects[name] = p
	}
	return p
}

// next takes a number from a counter of the store. Its caller holds mu.
func next[N int | int64](counter *N) N {
	n := *counter
	*counter++
	return n
}

// newUUID makes an id such as those of volumes and VPCs.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// byID returns a map's values in the order of their ids.
func byID[K cmp.Ordered, T any](m map[K]T) []T {
	values := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[id])
	}
	return values
}

// byAge returns records in the order of their creation: for those whose ids
// say nothing.
func byAge[T based](m map[string]T) []T {
	values := byID(m)
	slices.SortStableFunc(values, func(a, b T) int { return a.base().Created.Compare(b.base().Created) })
	return values
}

// newObject is a new thing with tags, which are made if they don't exist, and
// with what the call's faults do to it. The tags must have been checked.
func (c *call) newObject(tags []string) object {
	o := object{Created: c.now}
	for _, name := range tags {
		c.p.addTag(&o, c.p.ensureTag(name))
	}
	if rule, ok := emulator.FaultFor(c.r.Context(), emulator.KindHideFromLists); ok {
		o.HiddenUntil = c.now.Add(time.Duration(rule.Delay))
	}
	if rule, ok := emulator.FaultFor(c.r.Context(), emulator.KindEarly404); ok {
		o.MissingUntil = c.now.Add(missingFor(rule))
	}
	return o
}

// missing tells whether a fault lets an object not be found yet.
func (c *call) missing(o *object) bool {
	if c.now.Before(o.MissingUntil) {
		return true
	}
	rule, ok := emulator.FaultFor(c.r.Context(), emulator.KindEarly404)
	return ok && o.Created.After(c.now.Add(-missingFor(rule)))
}

// hidden tells whether a fault keeps an object out of lists.
func (c *call) hidden(o *object) bool {
	if c.now.Before(o.HiddenUntil) || c.missing(o) {
		return true
	}
	rule, ok := emulator.FaultFor(c.r.Context(), emulator.KindHideFromLists)
	return ok && o.Created.After(c.now.Add(-time.Duration(rule.Delay)))
}

// missingFor is how long early-404 lasts: as long as hide-from-lists when the
// rule has no delay.
func missingFor(rule emulator.Rule) time.Duration {
	if rule.Delay == 0 {
		return emulator.DefaultHiding
	}
	return time.Duration(rule.Delay)
}

// Snapshot is the state to keep, as JSON. It holds no token.
func (s *Service) Snapshot() (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.store)
}

// Restore replaces all projects by those of a snapshot.
func (s *Service) Restore(snapshot json.RawMessage) error {
	restored := newStore()
	if err := json.Unmarshal(snapshot, &restored); err != nil {
		return fmt.Errorf("not a snapshot of this service: %w", err)
	}
	for name, p := range restored.Projects {
		if p == nil {
			return fmt.Errorf("project %q is empty", name)
		}
		p.complete()
	}
	ensure(&restored.Projects)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = restored
	return nil
}
