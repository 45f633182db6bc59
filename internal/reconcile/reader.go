// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// reader is how everything reads machines: concurrent reads of a pool share one
// list, our own writes are folded in, and what a list lacks is got by id. A
// caller says how fresh it wants the answer by a time: the list behind it was
// begun no earlier. One caller giving up doesn't end the list for the others.
type reader struct {
	backend backends.Backend
	lister  backends.Lister // nil: every read is a get
	listLag time.Duration   // scaled

	mu       sync.Mutex
	listings map[backends.Filter]*listing
	writes   map[string]write // by machine id
}

type listing struct {
	begun    time.Time // of the list that filled it; zero before the first
	machines map[string]backends.Machine
	flight   *flight
}

type flight struct {
	begun   time.Time
	done    chan struct{}
	err     error // set before done is closed
	waiting int
	cancel  context.CancelFunc
}

// write is a machine as one of our own calls left it.
type write struct {
	at      time.Time
	machine backends.Machine
	gone    bool
}

func newReader(b backends.Backend, listLag time.Duration) *reader {
	lister, _ := b.(backends.Lister)
	return &reader{
		backend: b, lister: lister, listLag: listLag,
		listings: map[backends.Filter]*listing{}, writes: map[string]write{},
	}
}

// view is what a list showed, with the writes since folded in.
type view struct {
	begun    time.Time
	machines map[string]backends.Machine
}

// sorted are the view's machines, the oldest first.
func (v view) sorted() []backends.Machine {
	return slices.SortedFunc(maps.Values(v.machines), older)
}

func older(a, b backends.Machine) int {
	return cmp.Or(a.Created.Compare(b.Created), compareIDs(a.ID, b.ID))
}

// compareIDs compares numbers as numbers: the lower was given out first.
func compareIDs(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// list is the filter's machines, by a list begun at since or later.
func (r *reader) list(ctx context.Context, filter backends.Filter, since time.Time) (view, error) {
	if r.lister == nil {
		return view{}, backends.Errorf(backends.Unsupported, "This cloud can't list machines.")
	}
	for {
		r.mu.Lock()
		l := r.listings[filter]
		if l == nil {
			l = &listing{}
			r.listings[filter] = l
		}
		if !l.begun.IsZero() && !l.begun.Before(since) {
			v := r.fold(filter, l)
			r.mu.Unlock()
			return v, nil
		}
		f := l.flight
		if f == nil {
			f = r.start(ctx, filter, l)
		}
		f.waiting++
		r.mu.Unlock()

		select {
		case <-f.done:
			// A list begun too early for us was waited out; its failure isn't ours.
			if f.err != nil && !f.begun.Before(since) {
				return view{}, f.err
			}
		case <-ctx.Done():
			r.leave(l, f)
			return view{}, context.Cause(ctx)
		}
	}
}

// start begins a list; r.mu is held.
func (r *reader) start(ctx context.Context, filter backends.Filter, l *listing) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{begun: time.Now(), done: make(chan struct{}), cancel: cancel}
	l.flight = f
	go func() {
		defer cancel()
		machines, err := r.lister.ListMachines(ctx, filter)
		if backends.HasCode(err, backends.NotFound) {
			// Only a get can say that a machine is gone; a list that isn't there is broken.
			e := *backends.AsError(err)
			e.Code, e.Ambiguous = backends.ProviderError, true
			err = &e
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		f.err = err
		if l.flight == f {
			l.flight = nil
		}
		if err == nil && f.begun.After(l.begun) {
			l.begun = f.begun
			l.machines = make(map[string]backends.Machine, len(machines))
			for _, m := range machines {
				l.machines[m.ID] = m
			}
			r.forgetOldWrites()
		}
		close(f.done)
	}()
	return f
}

// leave ends a list that nobody waits for any more.
func (r *reader) leave(l *listing, f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		if l.flight == f {
			l.flight = nil
		}
	}
}

// fold lays our writes over a list: those after it began replace what it showed,
// and a machine that we made a short while before it may be missing from it. r.mu
// is held.
func (r *reader) fold(filter backends.Filter, l *listing) view {
	v := view{begun: l.begun, machines: maps.Clone(l.machines)}
	for id, w := range r.writes {
		_, listed := v.machines[id]
		switch {
		case w.gone:
			// Lists may show it a while longer; later the id may be another's.
			if l.begun.Before(w.at.Add(r.listLag)) {
				delete(v.machines, id)
			}
		case !matches(filter, w.machine.Marks):
		case !w.at.Before(l.begun), !listed && w.at.After(l.begun.Add(-r.listLag)):
			v.machines[id] = w.machine
		}
	}
	return v
}

func matches(f backends.Filter, m backends.Marks) bool {
	return m.Managed && (f.Account == "" || f.Account == m.Account) && (f.Pool == "" || f.Pool == m.Pool)
}

// forgetOldWrites keeps the writes that a list may still lack; r.mu is held.
func (r *reader) forgetOldWrites() {
	oldest := time.Now().Add(-2*r.listLag - time.Minute)
	maps.DeleteFunc(r.writes, func(_ string, w write) bool { return w.at.Before(oldest) })
}

// get is one machine, from the filter's list begun at since or later, or by its
// id when the list lacks it. NOT_FOUND when it is gone. The time is the list's
// (or get's) beginning.
func (r *reader) get(ctx context.Context, filter backends.Filter, id string, since time.Time) (backends.Machine, time.Time, error) {
	if r.lister != nil {
		v, err := r.list(ctx, filter, since)
		if err != nil {
			return backends.Machine{}, time.Time{}, err
		}
		if m, ok := v.machines[id]; ok {
			return m, v.begun, nil
		}
		since = v.begun
	}
	r.mu.Lock()
	w, wrote := r.writes[id]
	r.mu.Unlock()
	if wrote && w.gone && time.Since(w.at) < r.listLag {
		return backends.Machine{}, since, gone(id)
	}
	begun := time.Now()
	if r.lister != nil {
		begun = since
	}
	m, err := r.backend.GetMachine(ctx, id)
	return m, begun, err
}

func gone(id string) error {
	return backends.Errorf(backends.NotFound, "The machine %s is gone.", id)
}

// byKey are the machines that carry a key, the oldest first.
func (r *reader) byKey(ctx context.Context, filter backends.Filter, key string, since time.Time) ([]backends.Machine, error) {
	if r.lister == nil {
		return r.backend.FindMachines(ctx, key)
	}
	v, err := r.list(ctx, filter, since)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(v.sorted(), func(m backends.Machine) bool { return m.Marks.Key != key }), nil
}

// wrote folds in what one of our calls answered.
func (r *reader) wrote(m backends.Machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[m.ID] = write{at: time.Now(), machine: m}
}

// deleted folds in that a machine is gone.
func (r *reader) deleted(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[id] = write{at: time.Now(), gone: true}
}
