// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"iter"
	"maps"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// write is an object as one of our own calls left it, or showed it.
type write[T backends.Object] struct {
	at     time.Time
	object T
	gone   bool
	// unlisted: we made it, and no list has shown it yet; unseen: no get either.
	unlisted, unseen bool
	// made is when the call ended by which we made it, and asked when it began; zero if
	// we didn't.
	made, asked time.Time
}

// fold lays our writes over a list: those after it began replace what it showed,
// and an object that we made a short while before it may be missing from it. One
// that a list has shown before and this one doesn't is left out, so that it is asked
// for by its id. So is what the filter doesn't hold. r.mu is held.
func (r *reader[T]) fold(filter backends.Filter, l *listing[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for id := range l.objects {
			if o, ok := r.shown(filter, l, id); ok && !yield(o) {
				return
			}
		}
		for id := range r.writes {
			if _, listed := l.objects[id]; listed {
				continue
			}
			if o, ok := r.shown(filter, l, id); ok && !yield(o) {
				return
			}
		}
	}
}

// shown is one object of what fold makes of a list; r.mu is held.
func (r *reader[T]) shown(filter backends.Filter, l *listing[T], id string) (T, bool) {
	o, listed := l.objects[id]
	shown := listed && (!r.unfiltered || filter.Holds(o.About().Marks))
	w, wrote := r.writes[id]
	switch {
	case !wrote:
	case w.gone:
		// Lists may show it a while longer; later the id may be another's.
		return o, shown && !l.begun.Before(w.at.Add(r.lags.list))
	case !w.at.Before(l.begun), !listed && w.unlisted && w.at.After(l.begun.Add(-r.lags.list)):
		return w.object, holds(filter, w.object.About())
	}
	return o, shown
}

// holds tells whether a list by a filter shows an object.
func holds(filter backends.Filter, a backends.About) bool {
	switch filter.Phase {
	case backends.PhaseMaking:
		return filter.Holds(a.Marks) && !a.Marks.Complete
	case backends.PhaseGoing:
		return filter.Holds(a.Marks) && a.State == backends.StateDeleting
	default:
		return filter.Holds(a.Marks)
	}
}

// forgetOldWrites keeps the writes that a list may still lack; r.mu is held.
func (r *reader[T]) forgetOldWrites() {
	oldest := time.Now().Add(-2*r.lags.list - time.Minute)
	maps.DeleteFunc(r.writes, func(_ string, w write[T]) bool { return w.at.Before(oldest) })
}

// made folds in what the call that made an object, begun at asked, answered.
func (r *reader[T]) made(o T, asked time.Time) {
	r.remember(o.About().ID, func(w *write[T]) {
		*w = write[T]{object: o, unlisted: true, unseen: true, made: time.Now(), asked: asked}
	})
}

// wrote folds in what one of our calls answered, a get too.
func (r *reader[T]) wrote(o T) {
	r.remember(o.About().ID, func(w *write[T]) { w.object, w.gone = o, false })
}

// deleted folds in that an object is gone.
func (r *reader[T]) deleted(id string) {
	r.remember(id, func(w *write[T]) { *w = write[T]{gone: true} })
}

// got folds in what a get, begun at asked, has shown, unless we wrote since.
func (r *reader[T]) got(o T, asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := o.About().ID
	w := r.writes[id]
	w.unseen = false
	if !w.at.After(asked) {
		w.object, w.gone, w.at = o, false, asked
	}
	r.put(id, w)
}

func (r *reader[T]) remember(id string, change func(*write[T])) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.writes[id]
	change(&w)
	w.at = time.Now()
	r.put(id, w)
}

// put keeps a write; r.mu is held.
func (r *reader[T]) put(id string, w write[T]) {
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
	w := r.writeOf(id)
	return !w.made.IsZero() && time.Since(w.made) < r.lags.list
}

// untaken tells whether we made an object so shortly ago that nobody can have watched
// it for as long as a takeover needs.
func (r *reader[T]) untaken(id string) bool {
	w := r.writeOf(id)
	return !w.asked.IsZero() && time.Since(w.asked) < backends.Scale(watchWindow)
}

func (r *reader[T]) writeOf(id string) write[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes[id]
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
