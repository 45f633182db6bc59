// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// cloud is the smallest cloud that the contract allows, with the misfortunes that
// the rules are for. Names aren't unique in it unless unique is set.
type cloud struct {
	mu       sync.Mutex
	machines map[string]*cloudMachine
	next     int
	calls    map[string]int

	unique       bool
	boot         time.Duration // from made to running
	deleting     time.Duration // from deleted to gone
	listLag      time.Duration // new machines are missing from lists that long
	deafToACPI   bool          // graceful-off changes nothing
	loseMakes    int           // answers of makes that get lost
	beforeMark   func(m backends.Machine, marks backends.Marks)
	listErr      error
	listed       chan struct{} // when set, a list waits for it
	pageSize     int           // 0: one page holds everything
	pageErr      map[int]error // of a page by its number
	actionFailed error
	stuck        string // the machine whose action failed; "" for every one
	markErr      error  // of every mark, without effect
	deleteErr    error  // of every delete, without effect
	hidden       bool   // gets and lists show nothing, names are taken all the same
	reinstalled  int
	afterMake    func() // under c.mu
	soldOut      []string
	as           backends.Backend // what the definition makes; nil: the cloud itself
}

type cloudMachine struct {
	backends.Machine
	made    time.Time
	on      bool
	deleted time.Time
}

func newCloud() *cloud {
	return &cloud{machines: map[string]*cloudMachine{}, calls: map[string]int{}, boot: 10 * time.Second, deleting: time.Second}
}

// count logs a call; c.mu is held.
func (c *cloud) count(call string) { c.calls[call]++ }

func (c *cloud) called(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

// show is the machine as it is now, nil when it is gone; c.mu is held.
func (c *cloud) show(id string) *backends.Machine {
	m, ok := c.machines[id]
	if !ok {
		return nil
	}
	if !m.deleted.IsZero() && time.Since(m.deleted) >= c.deleting {
		delete(c.machines, id)
		return nil
	}
	out := m.Machine
	out.Labels = maps.Clone(m.Labels)
	switch {
	case !m.deleted.IsZero():
		out.State = backends.StateDeleting
	case time.Since(m.made) < c.boot:
		out.State = backends.StatePending
	case m.on:
		out.State = backends.StateRunning
	default:
		out.State = backends.StateStopped
	}
	return &out
}

func (c *cloud) all() []backends.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []backends.Machine
	for _, id := range slices.Sorted(maps.Keys(c.machines)) {
		if m := c.show(id); m != nil {
			out = append(out, *m)
		}
	}
	return out
}

// put places a machine that was there before.
func (c *cloud) put(m backends.Machine) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	m.ID = strconv.Itoa(c.next)
	m.Created = time.Now()
	c.machines[m.ID] = &cloudMachine{Machine: m, made: time.Now().Add(-time.Hour), on: true}
	return m.ID
}

func (c *cloud) change(id string, do func(*cloudMachine)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.machines[id])
}

var lost = &backends.Error{Code: backends.ProviderError, Reason: backends.ReasonUnreachable, Message: "The answer was lost.", Ambiguous: true}

func (c *cloud) Prove(context.Context) error { return nil }

func (c *cloud) Offers(context.Context, backends.OfferQuery) ([]backends.Offer, error) {
	return []backends.Offer{{ID: "small", Region: "here", PricePerHour: big.NewRat(1, 2), Currency: "EUR"}}, nil
}

func (c *cloud) CheckForm(backends.MachineSpec) []*backends.Error { return nil }

func (c *cloud) CheckMachine(context.Context, backends.MachineSpec) (backends.Resolved, []*backends.Error, error) {
	return backends.Resolved{}, nil, nil
}

func (c *cloud) FindMachines(_ context.Context, key string) ([]backends.Machine, error) {
	return slices.DeleteFunc(c.all(), func(m backends.Machine) bool { return m.Marks.Key != key }), nil
}

func (c *cloud) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count("make")
	if ctx.Err() != nil {
		return backends.Machine{}, ctx.Err()
	}
	if slices.Contains(c.soldOut, spec.Offer) {
		return backends.Machine{}, noRoom(spec.Offer)
	}
	if c.unique {
		for id := range c.machines {
			if m := c.show(id); m != nil && m.Name == spec.Name {
				return backends.Machine{}, &backends.NameTaken{Holder: m.About()}
			}
		}
	}
	c.next++
	id := strconv.Itoa(c.next)
	c.machines[id] = &cloudMachine{
		Machine: backends.Machine{ID: id, Name: spec.Name, Offer: spec.Offer, Region: spec.Region, Marks: spec.Marks, Created: time.Now()},
		made:    time.Now(), on: spec.Start,
	}
	if c.afterMake != nil {
		defer c.afterMake()
	}
	if c.loseMakes > 0 {
		c.loseMakes--
		return backends.Machine{}, lost
	}
	return *c.show(id), nil
}

func (c *cloud) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count("get")
	if c.hidden {
		return backends.Machine{}, backends.Errorf(backends.NotFound, "hidden")
	}
	if ctx.Err() != nil {
		return backends.Machine{}, ctx.Err()
	}
	if m := c.show(id); m != nil {
		return *m, nil
	}
	return backends.Machine{}, backends.Errorf(backends.NotFound, "The machine %s is gone.", id)
}

func (c *cloud) MarkMachine(_ context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	if c.beforeMark != nil {
		c.beforeMark(m, marks)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count("mark")
	if c.markErr != nil {
		return backends.Machine{}, c.markErr
	}
	have, ok := c.machines[m.ID]
	if !ok {
		return m, backends.Errorf(backends.NotFound, "gone")
	}
	have.Marks = marks
	return *c.show(m.ID), nil
}

func (c *cloud) DeleteMachine(_ context.Context, m backends.Machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count("delete")
	if c.deleteErr != nil {
		return c.deleteErr
	}
	if c.show(m.ID) == nil {
		return backends.Errorf(backends.NotFound, "gone")
	}
	c.machines[m.ID].deleted = time.Now()
	return nil
}

// ListMachines lists by pages of pageSize, where that is set. A further page shows
// what is there when it is read.
func (c *cloud) ListMachines(ctx context.Context, f backends.Filter) (backends.Listing[backends.Machine], error) {
	c.mu.Lock()
	c.count("list")
	err, wait, hidden, size := c.listErr, c.listed, c.hidden, c.pageSize
	c.mu.Unlock()
	if hidden {
		return backends.Whole[backends.Machine](nil), nil
	}
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return backends.Listing[backends.Machine]{}, ctx.Err()
		}
	}
	if err != nil {
		return backends.Listing[backends.Machine]{}, err
	}
	found := c.listable(f)
	if size == 0 || len(found) <= size {
		return backends.Whole(found), nil
	}
	last := (len(found) + size - 1) / size
	return backends.Paged(found[:size], last, func(_ context.Context, number int) ([]backends.Machine, error) {
		c.mu.Lock()
		c.count("page")
		err := c.pageErr[number]
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		now := c.listable(f)
		return now[min(len(now), (number-1)*size):min(len(now), number*size)], nil
	}), nil
}

func (c *cloud) listable(f backends.Filter) []backends.Machine {
	found := slices.DeleteFunc(c.all(), func(m backends.Machine) bool {
		return !holds(f, m.About()) || time.Since(m.Created) < c.listLag
	})
	slices.SortFunc(found, older[backends.Machine])
	return found
}

func (c *cloud) Power(_ context.Context, m backends.Machine, action backends.PowerAction) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(string(action))
	switch have := c.machines[m.ID]; action {
	case backends.PowerOn:
		have.on = true
	case backends.PowerOff:
		have.on = false
	case backends.PowerGracefulOff:
		have.on = have.on && c.deafToACPI
	default:
		return backends.Errorf(backends.Unsupported, "no %s", action)
	}
	return nil
}

func (c *cloud) Protect(_ context.Context, m backends.Machine, on bool) error {
	c.change(m.ID, func(have *cloudMachine) { have.Protected = on })
	return nil
}

func (c *cloud) Reinstall(_ context.Context, m backends.Machine, _ backends.MachineSpec) error {
	c.change(m.ID, func(have *cloudMachine) { have.made = time.Now() })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reinstalled++
	return nil
}

func (c *cloud) Diagnose(_ context.Context, m backends.Machine) error {
	if c.stuck != "" && m.ID != c.stuck {
		return nil
	}
	return c.actionFailed
}

func noRoom(offer string) *backends.Error {
	e := backends.Errorf(backends.ProviderError, "No room for %s.", offer)
	e.Reason = backends.ReasonCapacity
	return e
}

// definition registers the cloud.
func (c *cloud) definition() *backends.Definition {
	return &backends.Definition{
		ID: "test-cloud", Title: "Test Cloud", Version: "1.0.0", Provides: []backends.Kind{backends.KindVPS},
		Region: func(backends.Values) string { return "here" },
		Create: func(backends.Values, backends.Environment) (backends.Backend, error) {
			if c.as != nil {
				return c.as, nil
			}
			return c, nil
		},
	}
}

// account opens the cloud as one state's process sees it: with a reader of its own.
func (c *cloud) account(t *testing.T) (*Account, reference.Reference) {
	t.Helper()
	registry, err := backends.NewRegistry(c.definition())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := reference.Parse(registry, "test-cloud://root/main/web")
	if err != nil {
		t.Fatal(err)
	}
	account, err := NewAccounts(registry, backends.Environment{}).Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	return account, pool
}

// wish is a machine that a state wants, with a claim of its own.
func wish(pool reference.Reference, name string) Wish {
	key := reference.InstanceID(pool.PoolRef().ID(), name)
	spec := backends.MachineSpec{Name: name, Offer: "small", Image: "debian", Region: "here", Start: true}
	spec.Marks = backends.Marks{
		Managed: true, Key: key, Account: pool.AccountRef().ID(), Pool: pool.PoolRef().ID(), Claim: NewClaim(),
		Digest: backends.Digest(key, map[backends.DigestField]string{backends.DigestOffer: spec.Offer, backends.DigestImage: spec.Image}),
	}
	return Wish{Pool: pool, Spec: spec}
}
