// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Limiter keeps the requests of one token within the vendor's limit (DESIGN.md §7).
// It learns what is left from every answer, and lets requests go freely as long as
// there is enough. Where there isn't:
//
//   - What starts something new holds back first, with a tenth of the hour's requests
//     left: it goes on at the speed at which the limit refills. Reads do the same at a
//     fiftieth. What finishes something that was started may use the limit up, and goes
//     first; the others still get a quarter of what refills, so nothing waits for ever.
//   - Who waits, waits in line, operations taking turns: see [Operation].
//   - A refusal (429) stops all requests of the token together, for as long as it says
//     or, where it doesn't, for a second, longer with each refusal on end; then one
//     request is tried alone.
//   - One log line says that it holds back, once until a minute has passed without.
//
// All accounts of a process that use one token at one endpoint share a limiter (see
// [Limits]). Proxmox VE has no rate limit in its API, and needs none: what a run has in
// flight is bounded by the CLI's -parallelism and by the pages of a list.
type Limiter struct {
	host string

	mu     sync.Mutex
	budget budget
	lines  [classes]line
	// waiting is since when somebody of a class waits.
	waiting [classes]time.Time
	// ahead is how many had to wait and yet went before those that hold back.
	ahead   int
	numbers int64
	timer   *time.Timer
	held    time.Time // when somebody had to wait last
	warned  bool      // of a refusal, in this period
	used    time.Time
}

// quiet is how long nobody must have had to wait before holding back is said again.
const quiet = time.Minute

func newLimiter(host string, rules LimitRules) *Limiter {
	return &Limiter{host: host, budget: budget{rules: rules}}
}

// wait waits for the turn of a call of a class. Whoever gets a call must report what
// became of it to answered or lost. The wait ends with ctx, and with the operation that
// a call with [Grace] belongs to; then nothing was sent.
func (l *Limiter) wait(ctx context.Context, c class, log *slog.Logger) (*sentCall, error) {
	l.mu.Lock()
	now := time.Now()
	w := &waiter{number: turnOf(ctx).numberIn(l, l.next), since: now, op: operationOf(ctx), ready: make(chan struct{})}
	if l.lines[c].length == 0 {
		l.waiting[c] = now
	}
	l.lines[c].push(w)
	l.dispatch(now)
	if w.call != nil {
		defer l.mu.Unlock()
		return w.call, nil
	}
	say := l.holdsBack(c, now)
	l.mu.Unlock()
	if say != nil && log != nil {
		say(ctx, log)
	}

	caller := callerOf(ctx)
	var cause error
	select {
	case <-w.ready:
		return w.call, nil
	case <-caller.Done():
		cause = context.Cause(caller)
	case <-ctx.Done():
		cause = context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.call != nil {
		return w.call, nil // its turn came at the same moment: the request itself sees ctx
	}
	l.lines[c].remove(w)
	l.dispatch(time.Now())
	return nil, l.notSent(cause)
}

// notSent is the error of a call whose time was up in line.
func (l *Limiter) notSent(cause error) error {
	ended := "until its time was up"
	if errors.Is(cause, context.Canceled) {
		ended = "until it was interrupted"
	}
	e := Errorf(RateLimited, "A request to %s waited for the rate limit %s, and was not sent.", l.host, ended).
		WithRemedy("Run again later, or give it more time in the resource's timeouts. The log (TF_LOG=INFO) says how much of the limit is left.")
	e.Err = cause
	return e
}

// answered takes in what the answer to a call says.
func (l *Limiter) answered(call *sentCall, s said) {
	l.over(func(now time.Time) { l.budget.answered(call, s, now) })
}

// lost takes in that a call got no answer, since it was given up, or broken.
func (l *Limiter) lost(call *sentCall, broken bool) {
	l.over(func(now time.Time) { l.budget.lost(call, broken, now) })
}

func (l *Limiter) over(take func(now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	take(now)
	l.dispatch(now)
}

func (l *Limiter) next() int64 {
	l.numbers++
	return l.numbers
}

// dispatch lets all go who may, and sets the timer for the next; l.mu is held.
func (l *Limiter) dispatch(now time.Time) {
	l.used = now
	l.budget.pass(now)
	for {
		c, at, ok := l.first(now)
		if !ok || at.After(now) {
			if l.timer != nil {
				l.timer.Stop()
				l.timer = nil
			}
			if ok && at != never {
				l.timer = time.AfterFunc(at.Sub(now), func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					l.dispatch(time.Now())
				})
			}
			return
		}
		w := l.lines[c].pop(l.next)
		l.waiting[c] = now
		if c != finishing {
			l.ahead = 0
		} else if now.After(w.since) {
			l.ahead++
		}
		w.call = l.budget.grant(c, now)
		close(w.ready)
	}
}

// first is the class whose turn is next, and when it comes; ok is false when nobody
// waits.
func (l *Limiter) first(now time.Time) (out class, at time.Time, ok bool) {
	better := func(c class, when time.Time) bool {
		switch {
		case !ok:
			return true
		case when.After(now) || at.After(now):
			return when.Before(at)
		}
		// Both may go. Those that were held back too long go first, the longest waiting of
		// them; else the classes have their order.
		due, dueOut := l.isDue(c, now), l.isDue(out, now)
		if due != dueOut {
			return due
		}
		number, _ := l.lines[c].head()
		other, _ := l.lines[out].head()
		return due && number < other
	}
	for c := range classes {
		if _, waits := l.lines[c].head(); !waits {
			continue
		}
		if when := l.budget.when(c, l.due(c), now); better(c, when) {
			out, at, ok = c, when, true
		}
	}
	return out, at, ok
}

func (l *Limiter) isDue(c class, now time.Time) bool {
	return c != finishing && l.budget.limit > 0 && !now.Before(l.due(c))
}

// due is when the turn of a class that holds back has come at the latest: after three
// that went before it in a shortage, or as many refills.
func (l *Limiter) due(c class) time.Time {
	if l.ahead >= slowShare-1 {
		return l.waiting[c]
	}
	return l.budget.due(l.waiting[c])
}

// holdsBack is what to log now that a call of a class has to wait, nil for nothing;
// l.mu is held. Of what an answer said, only numbers come into the log.
func (l *Limiter) holdsBack(c class, now time.Time) func(context.Context, *slog.Logger) {
	b := &l.budget
	closed := now.Before(b.closed)
	if b.limit == 0 && !closed {
		return nil // the first answer isn't there yet
	}
	again := l.held.IsZero() || now.Sub(l.held) > quiet
	l.held = now
	if again {
		l.warned = false
	}
	if !again && (!closed || l.warned) {
		return nil
	}
	l.warned = closed
	level, message := slog.LevelInfo, "holding back requests: little is left of the cloud's rate limit"
	if closed {
		level, message = slog.LevelWarn, "the cloud refuses requests for its rate limit: all with this token wait"
	}
	fields := []any{"host", Printable(l.host), "limit_per_hour", b.limit, "remaining", int(b.level), "waiting", l.length()}
	if b.limit > 0 {
		fields = append(fields, "goes_on", fmt.Sprintf("one request every %s", b.interval().Round(time.Millisecond)))
	}
	if when := b.when(c, l.due(c), now); when != never {
		fields = append(fields, "next_in", when.Sub(now).Round(time.Millisecond).String())
	}
	if b.reset.After(now) {
		fields = append(fields, "reset", b.reset.UTC().Format(time.RFC3339))
	}
	return func(ctx context.Context, log *slog.Logger) { log.Log(ctx, level, message, fields...) }
}

func (l *Limiter) length() (n int) {
	for c := range classes {
		n += l.lines[c].length
	}
	return n
}
