// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// listing is a list that is shared. Who wants all of it gets it read in one go. Who
// wants single objects gets its first page, and the rest only when more of them miss
// something there than are cheaper got by their ids: a state that owns a few objects
// of a large pool doesn't pay for the pool.
type listing[T backends.Object] struct {
	begun   time.Time // of the list that filled it; zero before the first
	latest  time.Time // when the latest list began, also one that failed
	objects map[string]T
	pages   int                                // 0 where the cloud doesn't tell
	rest    func(context.Context) ([]T, error) // the pages not read yet; nil when all are
	whole   bool                               // read in one go: what it lacks wasn't there
	singly  int                                // objects that were got by id instead of the rest
	flight  *flight
	// watching is how many ask again and again, or act on single objects.
	watching int
}

// fewSingly is how many objects are got by their ids before the rest of a list is
// read, and gatherTime what those who ask at the same time get to come together. It
// isn't scaled: it is the time that calls of one plan need to arrive here.
const (
	fewSingly  = 3
	gatherTime = 100 * time.Millisecond
)

// cheaper is how many more objects are got by their ids, so that those gets and the
// rest of the list, should it be needed all the same, cost less than reading it
// twice.
func (l *listing[T]) cheaper() int {
	few := fewSingly
	if l.pages > 0 {
		few = min(few, l.pages-2)
	}
	return few - l.singly
}

// flight is one reading of a list, or of the rest of one, and those who wait for it.
type flight struct {
	begun   time.Time // of the list; known when done is closed
	done    chan struct{}
	err     error // set before done is closed
	waiting int
	cancel  context.CancelFunc
	whole   bool           // someone wants all pages
	wants   map[string]int // the ids that are waited for, and by how many
	// few is how many ids a flight for the rest leaves to gets; more ends its gathering.
	few  int
	more chan struct{}
	// singly: those who wait get what they want by its id. Set before done is closed.
	singly bool
}

// join adds one who waits for an object, or, without an id, for all pages; r.mu is
// held.
func (f *flight) join(id string) {
	f.waiting++
	if id == "" {
		f.whole = true
		return
	}
	f.wants[id]++
	if f.more != nil && len(f.wants) > f.few {
		close(f.more)
		f.more = nil
	}
}

// leave takes one away who gave up; r.mu is held.
func (f *flight) leave(id string) {
	f.waiting--
	if f.wants[id]--; f.wants[id] <= 0 {
		delete(f.wants, id)
	}
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

// listing is the shared list that holds what a filter does; r.mu is held.
func (r *reader[T]) listing(filter backends.Filter) *listing[T] {
	if r.unfiltered {
		filter = backends.Filter{}
	}
	l := r.listings[filter]
	if l == nil {
		l = &listing[T]{}
		if r.listings == nil {
			r.listings = map[backends.Filter]*listing[T]{}
		}
		r.listings[filter] = l
	}
	return l
}

// look calls take with the filter's list, begun at since or later: with all of it,
// or, for one who wants an object, with enough of it to tell whether it is cheaper to
// ask for the object itself. take is called with r.mu held.
func (r *reader[T]) look(ctx context.Context, filter backends.Filter, id string, since time.Time, take func(*listing[T])) error {
	for {
		r.mu.Lock()
		l := r.listing(filter)
		if r.serves(filter, l, id, since) {
			take(l)
			r.mu.Unlock()
			return nil
		}
		f := l.flight
		if f == nil {
			f = r.start(ctx, filter, l, id != "" && !l.begun.IsZero() && !l.begun.Before(since))
		}
		f.join(id)
		r.mu.Unlock()

		select {
		case <-f.done:
		case <-ctx.Done():
			r.leave(l, f, id)
			return context.Cause(ctx)
		}
		// A list begun too early for us was waited out; its failure isn't ours.
		if f.begun.Before(since) {
			continue
		}
		r.mu.Lock()
		served := r.serves(filter, l, id, since) || id != "" && f.singly && l.begun.Equal(f.begun)
		if served {
			take(l)
		}
		r.mu.Unlock()
		switch {
		case served:
			return nil
		case f.err != nil:
			return f.err
		}
	}
}

// serves tells whether what was read already is fresh and far enough for one who
// wants an object or, without an id, all; r.mu is held.
func (r *reader[T]) serves(filter backends.Filter, l *listing[T], id string, since time.Time) bool {
	if l.begun.IsZero() || l.begun.Before(since) {
		return false
	}
	if id == "" {
		return l.whole
	}
	_, shown := r.shown(filter, l, id)
	return shown || l.rest == nil
}

// start begins a list, or the reading of the rest of the one that is there; r.mu is
// held.
func (r *reader[T]) start(ctx context.Context, filter backends.Filter, l *listing[T], rest bool) *flight {
	ctx, cancel := context.WithCancel(backends.Detached(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel, wants: map[string]int{}}
	read := func() error { return r.readList(ctx, filter, l, f) }
	if rest {
		f.begun, f.few = l.begun, l.cheaper()
		more, from := make(chan struct{}), l.rest
		f.more = more
		read = func() error { return r.readRest(ctx, l, f, more, from) }
	}
	l.flight = f
	go func() {
		defer cancel()
		err := read()
		r.mu.Lock()
		defer r.mu.Unlock()
		f.err = err
		if l.flight == f {
			l.flight = nil
		}
		close(f.done)
	}()
	return f
}

// readList reads the first page, and the others if by then someone wants all.
func (r *reader[T]) readList(ctx context.Context, filter backends.Filter, l *listing[T], f *flight) error {
	if r.unfiltered {
		filter = backends.Filter{}
	}
	// Lists of a pool don't follow each other faster than the quickest polls, so that
	// those who want one at about the same time share it.
	r.mu.Lock()
	wait := backends.Scale(firstPoll) - time.Since(l.latest)
	r.mu.Unlock()
	if wait > 0 {
		if err := backends.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	r.mu.Lock()
	f.begun = time.Now()
	l.latest = f.begun
	r.mu.Unlock()
	first, err := r.lists(ctx, filter)
	if backends.HasCode(err, backends.NotFound) {
		// Only a get can say that an object is gone; a list that isn't there is broken.
		e := *backends.AsError(err)
		e.Code, e.Ambiguous = backends.ProviderError, true
		err = &e
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	whole := f.whole
	if f.begun.After(l.begun) {
		l.begun, l.pages, l.rest, l.singly = f.begun, first.Pages, first.Rest, 0
		l.whole = first.Rest == nil
		l.objects = make(map[string]T, len(first.First))
		r.show(l, first.First)
	}
	r.mu.Unlock()
	if first.Rest == nil || !whole {
		return nil
	}
	return r.readOn(ctx, l, f, first.Rest, true)
}

// readRest gives those who miss something on the first page the time to come together,
// and reads the rest if they are many.
func (r *reader[T]) readRest(ctx context.Context, l *listing[T], f *flight, more <-chan struct{},
	rest func(context.Context) ([]T, error)) error {
	if f.few > 0 {
		gather := time.NewTimer(gatherTime)
		defer gather.Stop()
		select {
		case <-more:
		case <-gather.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.mu.Lock()
	if f.singly = len(f.wants) <= f.few; f.singly {
		l.singly += len(f.wants)
	}
	singly := f.singly
	r.mu.Unlock()
	if singly {
		return nil
	}
	return r.readOn(ctx, l, f, rest, false)
}

// readOn reads what follows the first page. A page that fails fails only those who
// want what isn't on the others.
func (r *reader[T]) readOn(ctx context.Context, l *listing[T], f *flight, rest func(context.Context) ([]T, error), whole bool) error {
	objects, err := rest(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.begun.Equal(f.begun) {
		r.show(l, objects)
		if err == nil {
			l.rest, l.whole = nil, whole
		}
	}
	return err
}

// show takes in what a list shows; r.mu is held.
func (r *reader[T]) show(l *listing[T], objects []T) {
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

// leave ends a list that nobody waits for any more.
func (r *reader[T]) leave(l *listing[T], f *flight, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.leave(id); f.waiting == 0 {
		f.cancel()
		if l.flight == f {
			l.flight = nil
		}
	}
}
