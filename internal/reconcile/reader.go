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

// reader is how everything reads objects of a kind: concurrent reads of a pool
// share one list, our own writes are folded in, and what a list lacks is got by id.
// A caller says how fresh it wants the answer by a time: the list behind it was
// begun no earlier. One caller giving up doesn't end the list for the others.
type reader[T backends.Object] struct {
	noun  string
	get   func(ctx context.Context, id string) (T, error)
	lists func(ctx context.Context, filter backends.Filter) ([]T, error) // nil: every read is a get
	find  func(ctx context.Context, key string) ([]T, error)             // used where lists is nil
	// unfiltered: the cloud can't select, so that all pools share one list.
	unfiltered bool
	lags       lags

	mu       sync.Mutex
	listings map[backends.Filter]*listing[T]
	writes   map[string]write[T] // by id
}

// lags are how far a cloud's lists may be behind, scaled.
type lags struct {
	list time.Duration // a new or deleted object may be missing, or shown, that long
}

type listing[T backends.Object] struct {
	begun   time.Time // of the list that filled it; zero before the first
	objects map[string]T
	flight  *flight
}

type flight struct {
	begun   time.Time
	done    chan struct{}
	err     error // set before done is closed
	waiting int
	cancel  context.CancelFunc
}

// write is an object as one of our own calls left it.
type write[T backends.Object] struct {
	at     time.Time
	object T
	gone   bool
	// unlisted: we made it, and no list has shown it yet; unseen: no get either.
	unlisted, unseen bool
	made             time.Time // by us; zero if it wasn't
}

// view is what a list showed, with the writes since folded in.
type view[T backends.Object] struct {
	begun   time.Time
	objects map[string]T
	listed  map[string]T // what the list itself showed; read-only
}

// sorted are the view's objects, the oldest first.
func (v view[T]) sorted() []T {
	return slices.SortedFunc(maps.Values(v.objects), older[T])
}

func older[T backends.Object](a, b T) int {
	x, y := a.About(), b.About()
	return cmp.Or(x.Created.Compare(y.Created), compareIDs(x.ID, y.ID))
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

// list is the filter's objects, by a list begun at since or later.
func (r *reader[T]) list(ctx context.Context, filter backends.Filter, since time.Time) (view[T], error) {
	if r.lists == nil {
		return view[T]{}, backends.Errorf(backends.Unsupported, "This cloud can't list %ss.", r.noun)
	}
	asked := filter
	if r.unfiltered {
		filter = backends.Filter{}
	}
	for {
		r.mu.Lock()
		l := r.listings[filter]
		if l == nil {
			l = &listing[T]{}
			if r.listings == nil {
				r.listings = map[backends.Filter]*listing[T]{}
			}
			r.listings[filter] = l
		}
		if !l.begun.IsZero() && !l.begun.Before(since) {
			v := r.fold(asked, l)
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
				return view[T]{}, f.err
			}
		case <-ctx.Done():
			r.leave(l, f)
			return view[T]{}, context.Cause(ctx)
		}
	}
}

// start begins a list; r.mu is held.
func (r *reader[T]) start(ctx context.Context, filter backends.Filter, l *listing[T]) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{begun: time.Now(), done: make(chan struct{}), cancel: cancel}
	l.flight = f
	go func() {
		defer cancel()
		objects, err := r.lists(ctx, filter)
		if backends.HasCode(err, backends.NotFound) {
			// Only a get can say that an object is gone; a list that isn't there is broken.
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
			l.objects = make(map[string]T, len(objects))
			for _, o := range objects {
				id := o.About().ID
				l.objects[id] = o
				if w, ok := r.writes[id]; ok && w.unlisted {
					w.unlisted, w.unseen = false, false
					r.writes[id] = w
				}
			}
			r.forgetOldWrites()
		}
		close(f.done)
	}()
	return f
}

// leave ends a list that nobody waits for any more.
func (r *reader[T]) leave(l *listing[T], f *flight) {
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
// and an object that we made a short while before it may be missing from it. One
// that a list has shown before and this one doesn't is left out, so that it is asked
// for by its id. So is what the filter doesn't hold. r.mu is held.
func (r *reader[T]) fold(filter backends.Filter, l *listing[T]) view[T] {
	v := view[T]{begun: l.begun, objects: maps.Clone(l.objects), listed: l.objects}
	if r.unfiltered {
		maps.DeleteFunc(v.objects, func(_ string, o T) bool { return !filter.Holds(o.About().Marks) })
	}
	for id, w := range r.writes {
		_, listed := l.objects[id]
		switch {
		case w.gone:
			// Lists may show it a while longer; later the id may be another's.
			if l.begun.Before(w.at.Add(r.lags.list)) {
				delete(v.objects, id)
			}
		case !filter.Holds(w.object.About().Marks):
		case !w.at.Before(l.begun), !listed && w.unlisted && w.at.After(l.begun.Add(-r.lags.list)):
			v.objects[id] = w.object
		}
	}
	return v
}

// forgetOldWrites keeps the writes that a list may still lack; r.mu is held.
func (r *reader[T]) forgetOldWrites() {
	oldest := time.Now().Add(-2*r.lags.list - time.Minute)
	maps.DeleteFunc(r.writes, func(_ string, w write[T]) bool { return w.at.Before(oldest) })
}

// read is one object, from the filter's list begun at since or later, or by its id
// when the list lacks it. NOT_FOUND when it is gone. The time is the list's (or
// get's) beginning.
func (r *reader[T]) read(ctx context.Context, filter backends.Filter, id string, since time.Time) (T, time.Time, error) {
	var none T
	if r.lists != nil {
		v, err := r.list(ctx, filter, since)
		if err != nil {
			return none, time.Time{}, err
		}
		if o, ok := v.objects[id]; ok {
			return o, v.begun, nil
		}
		since = v.begun
	}
	r.mu.Lock()
	w, wrote := r.writes[id]
	r.mu.Unlock()
	if wrote && w.gone && time.Since(w.at) < r.lags.list {
		return none, since, r.gone(id)
	}
	begun := time.Now()
	if r.lists != nil {
		begun = since
	}
	o, err := r.get(ctx, id)
	switch {
	case err == nil:
		r.seen(id)
	case backends.HasCode(err, backends.NotFound) && wrote && w.unseen && time.Since(w.at) < r.lags.list:
		// A cloud whose lists lag may also not know a new object by its id for a while.
		return w.object, begun, nil
	}
	return o, begun, err
}

func (r *reader[T]) gone(id string) error {
	return backends.Errorf(backends.NotFound, "The %s %s is gone.", r.noun, id)
}

// byKey are the objects that carry a key, the oldest first.
func (r *reader[T]) byKey(ctx context.Context, filter backends.Filter, key string, since time.Time) ([]T, error) {
	if r.lists == nil {
		return r.find(ctx, key)
	}
	v, err := r.list(ctx, filter, since)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(v.sorted(), func(o T) bool { return o.About().Marks.Key != key }), nil
}

// made folds in what the call that made an object answered.
func (r *reader[T]) made(o T) {
	r.remember(o.About().ID, func(w *write[T]) { *w = write[T]{object: o, unlisted: true, unseen: true, made: time.Now()} })
}

// wrote folds in what one of our calls answered, a get too.
func (r *reader[T]) wrote(o T) {
	r.remember(o.About().ID, func(w *write[T]) { w.object, w.gone = o, false })
}

// deleted folds in that an object is gone.
func (r *reader[T]) deleted(id string) {
	r.remember(id, func(w *write[T]) { *w = write[T]{gone: true} })
}

func (r *reader[T]) remember(id string, change func(*write[T])) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.writes[id]
	change(&w)
	w.at = time.Now()
	if r.writes == nil {
		r.writes = map[string]write[T]{}
	}
	r.writes[id] = w
}

// seen remembers that the cloud has shown an object by its id.
func (r *reader[T]) seen(id string) { r.adjust(id, func(w *write[T]) { w.unseen = false }) }

// fresh tells whether we made an object so shortly ago that the cloud may not know it
// everywhere yet.
func (r *reader[T]) fresh(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.writes[id]
	return ok && !w.made.IsZero() && time.Since(w.made) < r.lags.list
}

// going remembers that the cloud was told to delete an object: that it isn't found
// from now on is no lag.
func (r *reader[T]) going(id string) {
	r.adjust(id, func(w *write[T]) { w.unlisted, w.unseen = false, false })
}

func (r *reader[T]) adjust(id string, change func(*write[T])) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.writes[id]; ok {
		change(&w)
		r.writes[id] = w
	}
}
