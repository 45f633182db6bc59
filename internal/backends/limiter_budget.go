// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"math"
	"time"
)

// LimitRules are how a cloud limits the requests of a token.
type LimitRules struct {
	// Refills: the limit of an hour is a bucket that refills evenly (Hetzner Cloud:
	// 3,600 an hour are one a second). Else a request counts for an hour from when it
	// was made (DigitalOcean: 5,000 an hour).
	Refills bool
	// Burst is how many of an hour's requests a minute may have: a Burst-th of the limit
	// (DigitalOcean: a 20th, 250 of 5,000); 0: no such limit.
	Burst int
}

// shares are the parts of a limit that a class of calls leaves to those before it: a
// class that finds less is no longer free. What was started may use everything up.
var shares = [classes]float64{finishing: 0, reading: 0.02, starting: 0.1}

const (
	// atOnceUnknown bounds the requests in flight before the first answer has told the
	// limit: it may be used up already.
	atOnceUnknown = 4
	// slowShare: of the calls that a limit refills, those that hold back get one in so
	// many at least, however much those that go first need.
	slowShare = 4
	// firstPause is how long nothing is sent after a refusal that doesn't say how long.
	// It doubles with each refusal on end, up to twice the time in which one request
	// comes back; where nothing refills, up to longestPause.
	firstPause   = time.Second
	longestPause = 2 * time.Minute
	// longestClosed bounds what a refusal can make us wait.
	longestClosed = time.Hour
	// rounding covers what sums of small refills miss of a whole call.
	rounding = 1e-6
)

// never is when something else has to happen first: an answer.
var never = time.Unix(1<<40, 0)

// said is what an answer says of the limit.
type said struct {
	limit, remaining int // of the hour; a limit of 0: nothing
	reset            time.Time
	refused          bool          // for the limit: nothing was done
	retryAfter       time.Duration // 0: it doesn't say
}

// sentCall is a request on its way.
type sentCall struct {
	at     time.Time
	sent   int // how many had been sent, it included
	flying int // how many others were in flight
}

// budget is what is left of a token's limit, as far as answers, our own requests and
// the clock tell. It is never above what the cloud would say, unless others use the
// token. It is a plain calculation: no locks, no waits. Times of the cloud (its
// refills, its retry-after) are not scaled; pauses of our choice are.
type budget struct {
	rules LimitRules

	heard bool    // an answer came, or a request failed
	limit int     // requests an hour; 0: not known, or none
	level float64 // how many may be sent now
	at    time.Time
	reset time.Time // as last reported
	// probe is when a request is tried although none is left, where nothing refills.
	probe time.Time

	flying, sent int
	recent       []time.Time // when the answers of the last minute came
	counted      int         // what the cloud may have counted of the hour at the last answer

	closed  time.Time     // nothing is sent before
	trial   *sentCall     // while pause isn't 0: the one call that is tried
	pause   time.Duration // the last one, 0 after a success
	refused time.Time     // when it was begun
	crowded time.Time     // until then others use the burst limit too
	spaced  time.Time     // no request before, while it is crowded

	// slowNext is when one of the calls that hold back may go, slowSince when the last
	// one did.
	slowNext, slowSince time.Time
}

// interval is the time in which the limit allows one more request.
func (b *budget) interval() time.Duration { return time.Hour / time.Duration(max(b.limit, 1)) }

func (b *budget) burst() int {
	if b.rules.Burst == 0 || b.limit == 0 {
		return 0
	}
	return max(1, b.limit/b.rules.Burst)
}

// pass brings the budget to a time.
func (b *budget) pass(now time.Time) {
	if b.limit > 0 && b.rules.Refills && now.After(b.at) {
		b.level = min(float64(b.limit), b.level+now.Sub(b.at).Hours()*float64(b.limit))
	}
	if b.limit > 0 && !b.rules.Refills && b.level < 1 && !b.probe.IsZero() && !now.Before(b.probe) {
		b.level, b.probe = 1, time.Time{}
	}
	b.at = now
	gone := 0
	for gone < len(b.recent) && !now.Before(b.recent[gone].Add(time.Minute)) {
		gone++
	}
	b.recent = b.recent[gone:]
}

// when is the earliest time at which a call of a class may go whose turn would have
// come at due at the latest; now or earlier: at once. The budget is at now.
func (b *budget) when(c class, due, now time.Time) time.Time {
	switch {
	case now.Before(b.closed):
		return b.closed
	case b.pause > 0 && b.trial != nil:
		return never
	case !b.heard && b.flying >= atOnceUnknown:
		return never
	case b.limit == 0:
		return now
	case c == finishing:
		return later(b.left(1, now), b.whenBurst(0, now))
	}
	hour, minute := now, b.whenBurst(shares[c], now)
	if !b.plenty(c) {
		hour = later(b.left(1, now), earlier(b.slowNext, due))
	}
	if minute.After(due) {
		minute = earlier(minute, later(due, b.whenBurst(0, now)))
	}
	return later(hour, minute)
}

// plenty tells whether enough of the hour is left for a class to go freely.
func (b *budget) plenty(c class) bool { return b.level+rounding >= 1+shares[c]*float64(b.limit) }

// whenBurst is when the limit of a minute lets a call go that leaves a share of it.
// Only calls that the cloud shows as counted count: an emulator without a limit
// reports one.
func (b *budget) whenBurst(share float64, now time.Time) time.Time {
	burst := b.burst()
	if burst == 0 {
		return now
	}
	at := now
	if now.Before(b.crowded) {
		at = b.spaced
	}
	free := burst - int(share*float64(burst))
	uncounted := max(0, len(b.recent)-b.counted)
	over := b.flying + len(b.recent) - uncounted + 1 - free // so many must leave the window
	switch {
	case over <= 0:
		return at
	case over > len(b.recent):
		return never
	default:
		return later(at, b.recent[over-1].Add(time.Minute))
	}
}

// left is when n calls are left.
func (b *budget) left(n float64, now time.Time) time.Time {
	missing := n - b.level
	switch {
	case missing <= rounding:
		return now
	case b.rules.Refills:
		return now.Add(time.Duration(math.Ceil(missing * float64(b.interval()))))
	case b.probe.IsZero():
		return never // until an answer says when
	default:
		return b.probe
	}
}

// due is when the turn of calls that hold back has come at the latest, however many go
// before them; waiting is since when they wait.
func (b *budget) due(waiting time.Time) time.Time {
	return later(b.slowSince, waiting).Add(slowShare * b.interval())
}

// grant takes a call of a class out of the budget.
func (b *budget) grant(c class, now time.Time) *sentCall {
	if b.limit > 0 {
		if c != finishing && (!b.plenty(c) || b.whenBurst(shares[c], now).After(now)) {
			b.slowSince = now
		}
		if !b.plenty(starting) {
			// What goes first is taken from what those that hold back would get.
			b.slowNext = later(b.slowNext, now).Add(b.interval())
		}
		b.level = max(0, b.level-1)
		if burst := b.burst(); burst > 0 {
			b.spaced = now.Add(time.Minute / time.Duration(burst))
		}
		b.probe = time.Time{}
	}
	b.sent++
	call := &sentCall{at: now, sent: b.sent, flying: b.flying}
	b.flying++
	if b.pause > 0 {
		b.trial = call
	}
	return call
}

// out says when to try again where nothing is left and nothing refills: when the
// oldest request counts no more, if that is soon, else after a pause.
func (b *budget) out(now time.Time) {
	if b.rules.Refills || b.level >= 1 {
		b.probe = time.Time{}
		return
	}
	b.probe = now.Add(Scale(b.longestPause()))
	// The reset time has whole seconds, cut off.
	if free := b.reset.Add(time.Second); !b.reset.IsZero() && free.Before(b.probe) {
		b.probe = later(free, now.Add(b.interval()))
	}
}

func (b *budget) longestPause() time.Duration {
	if b.rules.Refills {
		return 2 * b.firstPause()
	}
	return longestPause
}

func (b *budget) firstPause() time.Duration {
	if b.limit == 0 {
		return firstPause
	}
	return max(firstPause, b.interval())
}

// answered takes in what the answer to a call says.
func (b *budget) answered(call *sentCall, s said, now time.Time) {
	b.pass(now)
	b.gone(call, now)
	b.heard = true
	if s.limit > 0 {
		known := b.limit > 0
		b.limit, b.reset = s.limit, s.reset
		// Calls that flew at the same time may not be in what is said to remain.
		low := max(0, float64(s.remaining-call.flying-(b.sent-call.sent)))
		b.counted = s.limit - int(low)
		if !known {
			b.level = low
		}
		b.level = max(low, min(b.level, float64(s.remaining)))
	}
	b.out(now)
	if !s.refused {
		if !call.at.Before(b.refused) {
			b.pause = 0
		}
		return
	}
	b.close(call, s, now)
}

// close stops all calls after a refusal, for as long as it says, or longer with each
// one. Refusals of calls that were on their way already when the first came are the
// same one.
func (b *budget) close(call *sentCall, s said, now time.Time) {
	b.level = 0 // until the trial says more
	wait := min(s.retryAfter, longestClosed)
	if b.refused.IsZero() || !call.at.Before(b.refused) {
		b.refused = now
		b.pause = min(max(b.firstPause(), 2*b.pause), b.longestPause())
		if wait == 0 {
			wait = Scale(b.pause)
		} else if b.pause > b.firstPause() {
			wait = max(wait, Scale(b.pause))
		}
	}
	b.closed = later(b.closed, now.Add(wait))
	if b.rules.Burst > 0 && s.retryAfter > 0 {
		b.crowded = b.closed.Add(time.Minute)
	}
	if b.limit > 0 && !b.rules.Refills && b.level < 1 {
		b.probe = b.closed
	}
}

// lost takes in that a call got no answer: the cloud may have counted it. broken: it
// failed, and wasn't given up, so that others needn't wait for what it would tell.
func (b *budget) lost(call *sentCall, broken bool, now time.Time) {
	b.pass(now)
	b.gone(call, now)
	b.heard = b.heard || broken
	b.out(now)
}

func (b *budget) gone(call *sentCall, now time.Time) {
	if b.trial == call {
		b.trial = nil
	}
	b.flying--
	if b.rules.Burst > 0 {
		b.recent = append(b.recent, now)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
