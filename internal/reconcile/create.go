// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Wish is a machine to create.
type Wish struct {
	Pool reference.Reference // with the pool's keys: adopt and limits
	// Spec is the machine; its marks are set but for Complete. Its claim is fresh: the
	// same key and claim again is a retry and yields the same machine.
	Spec backends.MachineSpec
	// Offer is the spec's offer in the catalog, for limits on prices; may be nil.
	Offer *backends.Offer
	// Protect is the wish for deletion protection at an adoption; nil leaves it alone.
	Protect *bool
	// Refusal is why the machine can't be made now, such as an offer that is out of
	// stock; nil when it can. It doesn't keep what exists from being taken up or over.
	Refusal error
}

// Created is what became of a wish. With an error it holds what is there all the
// same: a machine with an id exists and must be recorded, unless the error is a
// CONFLICT.
type Created struct {
	Machine backends.Machine
	// Adopted: a complete machine was taken over, so what failed after that must
	// never have it replaced.
	Adopted bool
	// AsWanted: the machine is as it was wanted; only its completion mark could not be
	// written, which an update makes up for.
	AsWanted bool
}

// makeTries bounds how often a machine is made whose making had no clear outcome
// and which then wasn't found.
const makeTries = 3

// Create makes a machine, or takes up, or takes over the one that carries the
// wish's key, by the rules of DESIGN.md §6, and waits until it runs (or, when the
// spec doesn't start it, is there and stopped).
func (a *Account) Create(ctx context.Context, w Wish) (Created, error) {
	unlock, err := a.shared.keys.lock(ctx, w.Spec.Marks.Key)
	if err != nil {
		return Created{}, err
	}
	defer unlock()
	a.shared.claims.Store(w.Spec.Marks.Claim, true)
	c := &creation{Account: a, wish: w, pool: w.Pool.PoolRef().ID(), claim: w.Spec.Marks.Claim}
	return c.run(ctx)
}

type creation struct {
	*Account
	wish  Wish
	pool  string
	claim string
	makes int
	// taken is when the cloud first said that a machine which it doesn't show has the
	// name.
	taken time.Time
}

// run looks at what carries the key and acts on it, until there is a machine of
// ours that is complete.
func (c *creation) run(ctx context.Context) (Created, error) {
	since := time.Now().Add(-refreshAge)
	for round := 0; ; round++ {
		if round > 0 {
			if err := backends.Sleep(ctx, poll(round-1)); err != nil {
				return Created{}, err
			}
		}
		m, err := c.lookUp(ctx, since)
		if err != nil {
			return Created{}, err
		}
		since = time.Now()
		switch {
		case m == nil:
			made, err := c.make(ctx)
			if err != nil {
				return Created{}, err
			}
			if made == nil {
				continue // its name is taken by a machine with our key, or its outcome is unclear
			}
			return c.finished(ctx, *made)
		case m.Marks.Claim == c.claim && m.Marks.Complete:
			return Created{Machine: *m}, nil
		case m.Marks.Claim == c.claim:
			return c.finished(ctx, *m)
		}
		taken, out, err := c.others(ctx, *m)
		if taken || err != nil {
			return out, err
		}
	}
}

func (c *creation) finished(ctx context.Context, m backends.Machine) (Created, error) {
	unlock, err := c.lockMachine(ctx, m.ID)
	if err != nil {
		return Created{Machine: m}, err
	}
	defer unlock()
	m, asWanted, err := c.finish(ctx, c.pool, m, c.wish.Spec)
	return Created{Machine: m, AsWanted: asWanted}, err
}

// lookUp is the machine that carries the key: ours if there is one, else the
// oldest; nil when there is none.
func (c *creation) lookUp(ctx context.Context, since time.Time) (*backends.Machine, error) {
	found, err := c.reader.byKey(ctx, backends.Filter{Pool: c.pool}, c.wish.Spec.Marks.Key, since)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if i := slices.IndexFunc(found, func(m backends.Machine) bool { return m.Marks.Claim == c.claim }); i > 0 {
		return &found[i], nil
	}
	return &found[0], nil
}

// make makes the machine. A nil machine without an error asks for another look.
func (c *creation) make(ctx context.Context) (*backends.Machine, error) {
	if c.wish.Refusal != nil {
		return nil, c.wish.Refusal
	}
	release, err := c.Reserve(ctx, c.wish.Pool, c.wish.Spec.Marks.Key, c.wish.Offer)
	if err != nil {
		return nil, err
	}
	c.makes++
	call, cancel := backends.Grace(ctx)
	m, err := c.Backend.MakeMachine(call, c.wish.Spec)
	cancel()
	if err == nil {
		c.reader.wrote(m)
		return &m, nil
	}
	taken, nameIsTaken := errors.AsType[*backends.NameTaken](err)
	switch e := backends.AsError(err); {
	case nameIsTaken:
		release()
		if taken.Machine.Marks.Key != c.wish.Spec.Marks.Key || taken.Machine.Marks.Pool != c.pool {
			return nil, taken
		}
		if c.taken.IsZero() {
			c.taken = time.Now()
		} else if time.Since(c.taken) > c.reader.listLag {
			return nil, taken
		}
		c.reader.wrote(taken.Machine) // the lists lag behind it
		return nil, nil
	case e == nil || !e.Ambiguous:
		release()
		return nil, err
	}
	// The booking stays: the machine may be there.
	found, lookErr := c.lookAgain(ctx)
	switch {
	case found != nil:
		return found, nil
	case lookErr != nil:
		return nil, errors.Join(err, lookErr)
	case c.makes >= makeTries:
		return nil, err
	default:
		return nil, nil
	}
}

// lookAgain watches the lists for a machine that a call without a clear outcome
// may have made, as long as lists may lag; nil when it doesn't show.
func (c *creation) lookAgain(ctx context.Context) (*backends.Machine, error) {
	end := time.Now().Add(c.reader.listLag)
	for n := 0; ; n++ {
		m, err := c.lookUp(ctx, time.Now())
		switch {
		case err != nil && !patient(err):
			return nil, err
		case err == nil && m != nil && m.Marks.Claim == c.claim:
			return m, nil
		case !time.Now().Before(end):
			return nil, nil
		}
		if err := backends.Sleep(ctx, poll(n)); err != nil {
			return nil, err
		}
	}
}

// others deals with a machine that carries our key and not our claim. It reports
// whether the creation is over; if not, run looks again.
func (c *creation) others(ctx context.Context, m backends.Machine) (over bool, out Created, err error) {
	// A list may be old: before any consequence the object itself is asked.
	m, err = c.Backend.GetMachine(ctx, m.ID)
	switch {
	case backends.HasCode(err, backends.NotFound):
		c.reader.deleted(m.ID)
		return false, out, nil
	case err != nil:
		return true, out, err
	}
	c.reader.wrote(m)
	switch {
	case m.State == backends.StateDeleting || m.State == backends.StateDeleted:
		return false, out, c.awaitGone(ctx, c.pool, m)
	case m.Marks.Claim == c.claim:
		return false, out, nil
	case !m.Marks.Complete:
		return c.takeOverHalfMade(ctx, m)
	}
	// What this process made or changed has an owner in this very configuration, so it
	// is never adopted from under it.
	_, owned := c.shared.claims.Load(m.Marks.Claim)
	e := &ExistsError{Machine: m, Adopt: c.wish.Pool.Adopt}
	if e.Adopt && !owned {
		e.Differs = c.differences(m)
	}
	if !e.Adopt || owned || len(e.Differs) > 0 {
		return true, out, e
	}
	out, err = c.adopt(ctx, m)
	return true, out, err
}

// takeOverHalfMade watches a machine that another run began; when that run
// doesn't finish it, it is taken over, and made anew if it was made from
// something else.
func (c *creation) takeOverHalfMade(ctx context.Context, m backends.Machine) (over bool, out Created, err error) {
	watch, cancel := context.WithTimeoutCause(ctx, backends.Scale(watchWindow), errWatchOver)
	defer cancel()
	claim := m.Marks.Claim
	_, err = c.await(watch, c.pool, m, func(m backends.Machine, missing bool) (bool, error) {
		return missing || m.Marks.Complete || m.Marks.Claim != claim || m.State == backends.StateDeleting, nil
	})
	switch {
	case err == nil:
		return false, out, nil // it moved: look again
	case !errors.Is(err, errWatchOver) || ctx.Err() != nil:
		return true, out, err
	}
	m, err = c.Backend.GetMachine(ctx, m.ID)
	switch {
	case backends.HasCode(err, backends.NotFound):
		c.reader.deleted(m.ID)
		return false, out, nil
	case err != nil:
		return true, out, err
	case m.Marks.Complete || m.Marks.Claim != claim:
		c.reader.wrote(m)
		return false, out, nil
	}
	marks := m.Marks
	marks.Claim = c.claim
	if m, err = c.writeClaim(ctx, m, marks); err != nil {
		return true, out, err
	}
	if m.Marks.Digest == c.wish.Spec.Marks.Digest {
		out, err = c.finished(ctx, m)
		return true, out, err
	}
	if m.Protected {
		if m, err = c.protect(ctx, m, false); err != nil {
			return true, out, err
		}
	}
	if err := c.remove(ctx, c.pool, m); err != nil {
		return true, out, err
	}
	return false, out, nil
}

// differences are the inputs that a machine wasn't made from, or no longer has.
func (c *creation) differences(m backends.Machine) []backends.DigestField {
	differs := backends.DigestDifference(m.Marks.Digest, c.wish.Spec.Marks.Digest)
	resized := m.Offer != "" && c.wish.Spec.Offer != "" && m.Offer != c.wish.Spec.Offer
	if resized && !slices.Contains(differs, backends.DigestOffer) {
		differs = append(differs, backends.DigestOffer)
	}
	return differs
}

var errWatchOver = errors.New("the other run didn't finish it")

// adopt takes over a complete machine. Whatever fails from the written claim on,
// the machine is ours and is reported so.
func (c *creation) adopt(ctx context.Context, m backends.Machine) (Created, error) {
	marks := m.Marks
	marks.Claim = c.claim
	m, err := c.writeClaim(ctx, m, marks)
	if err != nil {
		return Created{}, err
	}
	out := Created{Machine: m, Adopted: true}
	if c.wish.Protect != nil && *c.wish.Protect != m.Protected {
		if out.Machine, err = c.protect(ctx, m, *c.wish.Protect); err != nil {
			return out, err
		}
		m = out.Machine
	}
	want := wantedState(c.wish.Spec.Start)
	if m.State == want || (m.State != backends.StateRunning && m.State != backends.StateStopped) {
		return out, nil
	}
	out.Machine, err = c.powerTo(ctx, c.pool, c.claim, m, want)
	return out, err
}
