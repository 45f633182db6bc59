// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"cmp"
	"slices"
	"time"
)

// waiter is a call that waits for its turn.
type waiter struct {
	number int64 // the order of arrival
	since  time.Time
	op     *operation
	ready  chan struct{} // closed when it may go
	call   *sentCall     // set before ready is closed
}

// line is a queue in which operations take turns: the calls of one (the pages of a
// list) have one place in it together, which goes to the end each time that one of
// them was served. So a list of sixty pages delays another operation's call by one
// page at most per turn. A call of no operation has a place of its own.
type line struct {
	groups []*group // by number
	length int
}

type group struct {
	number  int64
	op      *operation
	waiters []*waiter // by number
}

func (l *line) push(w *waiter) {
	l.length++
	i := -1
	if w.op != nil {
		i = slices.IndexFunc(l.groups, func(g *group) bool { return g.op == w.op })
	}
	if i < 0 {
		l.insert(&group{number: w.number, op: w.op, waiters: []*waiter{w}})
		return
	}
	g := l.groups[i]
	at, _ := slices.BinarySearchFunc(g.waiters, w.number, func(w *waiter, n int64) int { return cmp.Compare(w.number, n) })
	g.waiters = slices.Insert(g.waiters, at, w)
	if w.number < g.number { // one that comes back
		l.groups = slices.Delete(l.groups, i, i+1)
		g.number = w.number
		l.insert(g)
	}
}

func (l *line) insert(g *group) {
	at, _ := slices.BinarySearchFunc(l.groups, g.number, func(g *group, n int64) int { return cmp.Compare(g.number, n) })
	l.groups = slices.Insert(l.groups, at, g)
}

// pop takes the first of the line, which isn't empty; next numbers the place that its
// operation goes on with.
func (l *line) pop(next func() int64) *waiter {
	g := l.groups[0]
	w := g.waiters[0]
	l.length--
	l.groups = slices.Delete(l.groups, 0, 1)
	if g.waiters = g.waiters[1:]; len(g.waiters) > 0 {
		g.number = next()
		l.insert(g)
	}
	return w
}

// head is the number of the line's first; ok is false when nobody waits.
func (l *line) head() (number int64, ok bool) {
	if len(l.groups) == 0 {
		return 0, false
	}
	return l.groups[0].number, true
}

// remove takes a waiter out that has given up.
func (l *line) remove(w *waiter) {
	for i, g := range l.groups {
		at := slices.Index(g.waiters, w)
		if at < 0 {
			continue
		}
		l.length--
		if g.waiters = slices.Delete(g.waiters, at, at+1); len(g.waiters) == 0 {
			l.groups = slices.Delete(l.groups, i, i+1)
		}
		return
	}
}
