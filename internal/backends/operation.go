// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// operation is what all calls of one create, update or delete have in common.
type operation struct {
	// changed: the cloud has carried out, or may have carried out, one of its changes,
	// so that whatever follows finishes what was started.
	changed atomic.Bool
}

type operationKey struct{}

// Operation is a context whose calls belong to one operation: the create, update or
// delete of one object, or one list with all its pages. A [Limiter] lets operations
// take turns, and once one has changed something in the cloud, what it still has to
// call goes before what others would begin. A context that belongs to an operation
// already is returned as it is.
func Operation(ctx context.Context) context.Context {
	if operationOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, operationKey{}, &operation{})
}

func operationOf(ctx context.Context) *operation {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return op
}

// Detached is a context for work that many wait for, such as a list: it keeps the
// values of the caller who began it (its log), but ends neither with that caller nor
// with one whose call was given [Grace].
func Detached(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), callerKey{}, nil)
}

// class is what a call is for, in the order in which calls are held back: the last
// first.
type class int

const (
	finishing class = iota // after a change of the same operation: marks, polls, the rest
	reading                // GET: plans, refreshes, the catalog
	starting               // a change that nothing of the same operation went before
	classes
)

// classOf needs no word of the backends: the method, and what the operation has done
// so far, say it all.
func classOf(ctx context.Context, method string) class {
	op := operationOf(ctx)
	switch {
	case op != nil && op.changed.Load():
		return finishing
	case method == http.MethodGet || method == http.MethodHead:
		return reading
	default:
		return starting
	}
}

// note takes in that a request was answered with a status (0: not at all). Only a
// refusal says that nothing was changed.
func (op *operation) note(method string, status int) {
	refused := status >= http.StatusBadRequest && status < http.StatusInternalServerError
	if op != nil && method != http.MethodGet && method != http.MethodHead && !refused {
		op.changed.Store(true)
	}
}

// turn is the place of one call in a [Limiter]'s line, kept over its tries: [Retry]
// makes it, and what was refused for the rate limit doesn't go to the line's end.
type turn struct {
	mu      sync.Mutex
	line    *Limiter // whose number it is
	number  int64
	refused bool
}

type turnKey struct{}

func turnOf(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

// numberIn is the turn's number in a limiter's line, next where it has none yet.
func (t *turn) numberIn(l *Limiter, next func() int64) int64 {
	if t == nil {
		return next()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != l {
		t.line, t.number = l, next()
	}
	return t.number
}

func (t *turn) refuse() {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.refused = true
	}
}

// wasRefused tells, once, whether a try was refused for a limit that a limiter knows
// of by now, and so waits for before the next.
func (t *turn) wasRefused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.refused
	t.refused = false
	return was
}
