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

// recipe is an object to create, and what is special about making its kind.
type recipe[T backends.Object] struct {
	pool reference.Reference // with the pool's keys: adopt and limits
	// marks are all set but for Complete. Their claim is fresh: the same key and claim
	// again is a retry and yields the same object.
	marks backends.Marks
	// refusal is why the object can't be made now; nil when it can. It doesn't keep
	// what exists from being taken up or over.
	refusal error
	// reserve books what the object takes of the pool's limits.
	reserve func(ctx context.Context) (release func(), err error)
	// make is the one call that makes it. With an error it returns what may be made all
	// the same (see [backends.Backend.MakeMachine]).
	make func(ctx context.Context) (T, error)
	// prepare brings an object that carries our claim to what is wanted, all but the
	// completion mark. It is called again where a creation was interrupted.
	prepare func(ctx context.Context, object T) (T, error)
	// lift removes what keeps a half-made object from being deleted; nil for nothing.
	lift func(ctx context.Context, object T) (T, error)
	// differs are the inputs by which a complete object isn't what is wanted, besides
	// those of the digest.
	differs func(object T) []backends.DigestField
	// adopted brings a complete object that was taken over to what is wanted.
	adopted func(ctx context.Context, object T) (T, error)
}

// outcome is what became of a recipe. With an error it holds what is there all the
// same.
type outcome[T backends.Object] struct {
	object            T
	adopted, asWanted bool
}

// makeTries bounds how often an object is made whose making had no clear outcome
// and which then wasn't found.
const makeTries = 3

// create makes an object, or takes up, or takes over the one that carries the
// recipe's key, by the rules of DESIGN.md §6.
func (k *kind[T]) create(ctx context.Context, r recipe[T]) (outcome[T], error) {
	ctx = backends.Operation(ctx) // once it has made something, it is let finish it
	unlock, err := k.account.shared.keys.lock(ctx, r.marks.Key)
	if err != nil {
		return outcome[T]{}, err
	}
	defer unlock()
	k.account.shared.claims.Store(r.marks.Claim, true)
	c := &creation[T]{kind: k, recipe: r, pool: r.pool.PoolRef().ID(), claim: r.marks.Claim}
	return c.run(ctx)
}

type creation[T backends.Object] struct {
	*kind[T]
	recipe recipe[T]
	pool   string
	claim  string
	makes  int
	// taken is when the cloud first said that an object which it doesn't show has the
	// name.
	taken time.Time
}

// run looks at what carries the key and acts on it, until there is an object of
// ours that is complete.
func (c *creation[T]) run(ctx context.Context) (outcome[T], error) {
	since := c.lookUpSince()
	for round := 0; ; round++ {
		if round > 0 {
			if err := backends.Sleep(ctx, poll(round-1)); err != nil {
				return outcome[T]{}, err
			}
		}
		found, err := c.lookUp(ctx, since)
		if err != nil {
			return outcome[T]{}, err
		}
		since = time.Now()
		if found == nil {
			made, err := c.make(ctx)
			switch {
			case made == nil && err != nil:
				return outcome[T]{}, err
			case err != nil:
				return outcome[T]{object: *made}, err
			case made == nil:
				continue // its name is taken by an object with our key, or its outcome is unclear
			}
			return c.finished(ctx, *made)
		}
		switch m := (*found).About().Marks; {
		case m.Claim == c.claim && m.Complete && !m.Fixed:
			return outcome[T]{object: *found}, nil
		case m.Claim == c.claim:
			return c.finished(ctx, *found)
		}
		over, out, err := c.others(ctx, *found)
		if over || err != nil {
			return out, err
		}
	}
}

func (c *creation[T]) finished(ctx context.Context, object T) (outcome[T], error) {
	unlock, err := c.lock(ctx, object.About().ID)
	if err != nil {
		return outcome[T]{object: object}, err
	}
	defer unlock()
	object, asWanted, err := c.finish(ctx, c.pool, object, c.recipe.prepare)
	if backends.HasCode(err, backends.NotFound) || backends.HasCode(err, backends.AccessDenied) {
		asWanted = false // it went while it was finished, and its id may be another's
	}
	return outcome[T]{object: object, asWanted: asWanted}, err
}

// lookUp is the object that carries the key: ours if there is one, else the
// oldest; nil when there is none.
func (c *creation[T]) lookUp(ctx context.Context, since time.Time) (*T, error) {
	found, err := c.reader.byKey(ctx, backends.Filter{Pool: c.pool}, c.recipe.marks.Key, since)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if i := slices.IndexFunc(found, c.carriesOurs); i > 0 {
		return &found[i], nil
	}
	return &found[0], nil
}

func (c *creation[T]) carriesOurs(object T) bool { return object.About().Marks.Claim == c.claim }

// make makes the object. A nil object without an error asks for another look; an
// object with an error may be being made, and is to be recorded.
func (c *creation[T]) make(ctx context.Context) (*T, error) {
	if c.recipe.refusal != nil {
		return nil, c.recipe.refusal
	}
	release, err := c.recipe.reserve(ctx)
	if err != nil {
		return nil, err
	}
	c.makes++
	begun := time.Now()
	call, cancel := backends.Grace(ctx)
	object, err := c.recipe.make(call)
	cancel()
	if err == nil {
		c.reader.made(object, begun)
		return &object, nil
	}
	taken, nameIsTaken := errors.AsType[*backends.NameTaken](err)
	switch e := backends.AsError(err); {
	case object.About().ID != "":
		return &object, err // its booking stays
	case nameIsTaken:
		release()
		return nil, c.nameTaken(ctx, taken)
	case e == nil || !e.Ambiguous:
		release()
		return nil, err
	}
	// The booking stays: the object may be there.
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

// nameTaken is nil while the one that has the name may be ours, and the lists only
// lag behind it. It may be, also where the cloud shows nobody who has it.
func (c *creation[T]) nameTaken(ctx context.Context, taken *backends.NameTaken) error {
	holder := taken.Holder
	refusal := error(taken)
	if holder.ID == "" {
		refusal = taken.Unwrap()
	} else if m := holder.Marks; m.Key != c.recipe.marks.Key || !(backends.Filter{Pool: c.pool}).Holds(m) {
		return refusal
	}
	if c.taken.IsZero() {
		c.taken = time.Now()
	} else if time.Since(c.taken) > c.reader.lags.list {
		return refusal
	}
	if holder.ID == "" {
		return nil
	}
	if _, err := c.ask(ctx, holder.ID); err != nil && !backends.HasCode(err, backends.NotFound) {
		return err
	}
	return nil
}

// lookAgain watches the lists for an object that a call without a clear outcome
// may have made, as long as lists may lag; nil when it doesn't show.
func (c *creation[T]) lookAgain(ctx context.Context) (*T, error) {
	end := time.Now().Add(c.reader.lags.list)
	for n := 0; ; n++ {
		object, err := c.lookUp(ctx, time.Now())
		switch {
		case err != nil && !patient(err):
			return nil, err
		case err == nil && object != nil && c.carriesOurs(*object):
			return object, nil
		case !time.Now().Before(end):
			return nil, nil
		}
		if err := backends.Sleep(ctx, poll(n)); err != nil {
			return nil, err
		}
	}
}

// others deals with an object that carries our key and not our claim. It reports
// whether the creation is over; if not, run looks again.
func (c *creation[T]) others(ctx context.Context, object T) (over bool, out outcome[T], err error) {
	// A list may be old: before any consequence the object itself is asked.
	object, err = c.ask(ctx, object.About().ID)
	switch {
	case backends.HasCode(err, backends.NotFound):
		return false, out, nil
	case err != nil:
		return true, out, err
	case isPartial(object):
		return true, out, partial(object)
	}
	about := object.About()
	switch {
	case about.Going():
		return false, out, c.awaitGone(ctx, c.pool, object)
	case about.Marks.Claim == c.claim:
		return false, out, nil
	case !about.Marks.Complete:
		return c.takeOverHalfMade(ctx, object)
	}
	// What this process made or changed has an owner in this very configuration, so it
	// is never adopted from under it.
	_, owned := c.account.shared.claims.Load(about.Marks.Claim)
	e := &ExistsError{Object: about, Adopt: c.recipe.pool.Adopt}
	if e.Adopt && !owned {
		e.Differs = c.differences(object)
	}
	if !e.Adopt || owned || len(e.Differs) > 0 {
		return true, out, e
	}
	out, err = c.adopt(ctx, object)
	return true, out, err
}

var errWatchOver = errors.New("the other run didn't finish it")

// takeOverHalfMade watches an object that another run began; when that run
// doesn't finish it, it is taken over, and made anew if it was made from
// something else, or the cloud says that its making failed.
func (c *creation[T]) takeOverHalfMade(ctx context.Context, object T) (over bool, out outcome[T], err error) {
	id, claim := object.About().ID, object.About().Marks.Claim
	moved := func(a backends.About) bool { return a.Marks.Complete || a.Marks.Claim != claim || a.Going() }
	watch, cancel := context.WithTimeoutCause(ctx, backends.Scale(watchWindow), errWatchOver)
	defer cancel()
	_, err = c.await(watch, c.pool, object, func(o T, missing bool) (bool, error) {
		return missing || moved(o.About()), nil
	})
	switch {
	case err == nil:
		return false, out, nil // look again
	case !errors.Is(err, errWatchOver) || ctx.Err() != nil:
		return true, out, err
	}
	object, err = c.ask(ctx, id)
	switch {
	case backends.HasCode(err, backends.NotFound):
		return false, out, nil
	case err != nil:
		return true, out, err
	case isPartial(object):
		return true, out, partial(object)
	case moved(object.About()):
		return false, out, nil
	}
	if object, err = c.take(ctx, object); err != nil {
		return true, out, err
	}
	if object.About().Marks.Digest == c.recipe.marks.Digest {
		out, err = c.finished(ctx, object)
		if !backends.HasReason(err, backends.ReasonAction) {
			return true, out, err
		}
		object = out.object // what the other run began can't be finished
	}
	if c.recipe.lift != nil {
		if object, err = c.recipe.lift(ctx, object); err != nil {
			return true, out, err
		}
	}
	if err := c.remove(ctx, c.pool, object); err != nil {
		return true, out, err
	}
	return false, out, nil
}

// take writes our claim over another's. One that can't be written over is ours from
// now on.
func (c *creation[T]) take(ctx context.Context, object T) (T, error) {
	marks := object.About().Marks
	if marks.Fixed {
		c.claim = marks.Claim
		c.account.shared.claims.Store(c.claim, true)
		return object, nil
	}
	marks.Claim = c.claim
	return c.writeClaim(ctx, object, marks)
}

// differences are the inputs that an object wasn't made from, or no longer has.
func (c *creation[T]) differences(object T) []backends.DigestField {
	out := backends.DigestDifference(object.About().Marks.Digest, c.recipe.marks.Digest)
	for _, f := range c.recipe.differs(object) {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// adopt takes over a complete object. Whatever fails from the written claim on,
// the object is ours and is reported so.
func (c *creation[T]) adopt(ctx context.Context, object T) (outcome[T], error) {
	object, err := c.take(ctx, object)
	if err != nil {
		return outcome[T]{}, err
	}
	object, err = c.recipe.adopted(ctx, object)
	return outcome[T]{object: object, adopted: true}, err
}
