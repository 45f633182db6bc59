// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// reader is how everything reads objects of a kind: concurrent reads of a pool
// share one list, our own writes are folded in, and what a list lacks is got by id.
// A caller says how fresh it wants the answer by a time: the list behind it was
// begun no earlier. One caller giving up doesn't end the list for the others.
//
// What is long is read no further than it pays (DESIGN.md §7): see [listing].
type reader[T backends.Object] struct {
	noun  string
	get   func(ctx context.Context, id string) (T, error)
	lists func(ctx context.Context, filter backends.Filter) (backends.Listing[T], error) // nil: every read is a get
	find  func(ctx context.Context, key string) ([]T, error)                             // used where lists is nil
	// unfiltered: the cloud can't select, so that all pools share one list.
	unfiltered bool
	// phased: the cloud can select by phase, so that waits don't list whole pools.
	phased bool
	lags   lags

	mu       sync.Mutex
	listings map[backends.Filter]*listing[T]
	writes   map[string]write[T] // by id
}

// lags are how far a cloud's lists may be behind, scaled.
type lags struct {
	list time.Duration // a new or deleted object may be missing, or shown, that long
}

// list are those of the filter's objects that are wanted, the oldest first, by a list
// begun at since or later. want is called often and with the reader locked; nil wants
// all.
func (r *reader[T]) list(ctx context.Context, filter backends.Filter, since time.Time, want func(T) bool) ([]T, error) {
	if r.lists == nil {
		return nil, backends.Errorf(backends.Unsupported, "This cloud can't list %ss.", r.noun)
	}
	var found []T
	err := r.look(ctx, filter, "", since, func(l *listing[T]) { found = r.wanted(filter, l, want) })
	return found, err
}

// wanted are those of a list's objects, with our writes laid over, that are wanted, the
// oldest first; r.mu is held.
func (r *reader[T]) wanted(filter backends.Filter, l *listing[T], want func(T) bool) []T {
	var found []T
	for o := range r.fold(filter, l) {
		if want == nil || want(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, older)
	return found
}

// byKey are the objects that carry a key, the oldest first.
func (r *reader[T]) byKey(ctx context.Context, filter backends.Filter, key string, since time.Time) ([]T, error) {
	found, _, err := r.byKeyShowing(ctx, filter, key, since, "")
	return found, err
}

// byKeyShowing is byKey, and tells whether the cloud's list, without what we know from
// our own writes, showed an object. Where the cloud can look for a key, that is what
// answers as long as the pool's list has more pages than there are of those who would
// share it.
func (r *reader[T]) byKeyShowing(ctx context.Context, filter backends.Filter, key string, since time.Time, id string) (
	found []T, listed bool, err error) {
	if r.lists == nil {
		found, err = r.find(ctx, key)
		return found, false, err
	}
	take := func(l *listing[T]) {
		found = r.wanted(filter, l, func(o T) bool { return o.About().Marks.Carries(key) })
		_, listed = l.objects[id]
	}
	r.mu.Lock()
	l := r.listing(filter)
	single := r.find != nil && l.pages > 1 && l.watching < l.pages && !r.serves(filter, l, "", since)
	r.mu.Unlock()
	if !single {
		return found, listed, r.look(ctx, filter, "", since, take)
	}
	keyed := &listing[T]{begun: time.Now(), objects: map[string]T{}, whole: true}
	shown, err := r.find(ctx, key)
	if err != nil {
		return nil, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show(keyed, shown)
	take(keyed)
	return found, listed, nil
}

// read is one object, from the filter's list begun at since or later, or by its id
// when the list lacks it. NOT_FOUND when it is gone. The time is the list's (or
// get's) beginning. It is for those who read many: what is read is shared.
func (r *reader[T]) read(ctx context.Context, filter backends.Filter, id string, since time.Time) (T, time.Time, error) {
	if r.lists == nil {
		return r.single(ctx, id, time.Now())
	}
	var o T
	var shown bool
	var begun time.Time
	err := r.look(ctx, filter, id, since, func(l *listing[T]) {
		o, shown = r.shown(filter, l, id)
		begun = l.begun
	})
	if err != nil || shown {
		return o, begun, err
	}
	return r.single(ctx, id, begun)
}

// watch is read for those who ask again and again, or act on one object: as long as
// the list is known to have more pages than there are of them (see watching), each
// asks by id.
func (r *reader[T]) watch(ctx context.Context, filter backends.Filter, id string, since time.Time) (T, time.Time, error) {
	if r.lists == nil {
		return r.single(ctx, id, time.Now())
	}
	r.mu.Lock()
	l := r.listing(filter)
	o, shown := r.shown(filter, l, id)
	begun := l.begun
	fresh := !begun.IsZero() && !begun.Before(since)
	cheaper := l.pages > 1 && l.watching < l.pages
	r.mu.Unlock()
	switch {
	case shown && fresh:
		return o, begun, nil
	case cheaper:
		return r.single(ctx, id, time.Now())
	}
	return r.read(ctx, filter, id, since)
}

// watching counts one who calls watch, until it calls end.
func (r *reader[T]) watching(filter backends.Filter) (end func()) {
	add := func(n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.listing(filter).watching += n
	}
	add(1)
	return func() { add(-1) }
}

// single is one object by its id. begun is when the list began that lacked it, or
// now.
func (r *reader[T]) single(ctx context.Context, id string, begun time.Time) (T, time.Time, error) {
	var none T
	r.mu.Lock()
	w, wrote := r.writes[id]
	r.mu.Unlock()
	if wrote && w.gone && time.Since(w.at) < r.lags.list {
		return none, begun, r.gone(id)
	}
	asked := time.Now()
	o, err := r.get(ctx, id)
	switch {
	case err == nil:
		r.got(o, asked)
	case backends.HasCode(err, backends.NotFound) && wrote && w.unseen && time.Since(w.at) < r.lags.list:
		// A cloud whose lists lag may also not know a new object by its id for a while.
		return w.object, begun, nil
	}
	return o, begun, err
}

func (r *reader[T]) gone(id string) error {
	return backends.Errorf(backends.NotFound, "The %s %s is gone.", r.noun, id)
}
