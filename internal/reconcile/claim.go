// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// NewClaim is a fresh claim: 26 random characters that any label or tag may hold.
func NewClaim() string { return strings.ToLower(rand.Text()) }

// Ownership is what an object's marks say to the holder of a claim.
type Ownership int

// The kinds of ownership.
const (
	Ours      Ownership = iota // it carries our claim, and no other key
	Unclaimed                  // it is managed and ours by key, and nobody's claim is on it
	Theirs                     // someone else's claim is on it
	Unmarked                   // it carries no marks of ours at all
	Foreign                    // it carries another key and not our claim: it is another resource's
)

// Own compares an object's marks with the key and claim of a state. An empty
// claim is a state that never took the object: an import. What carries our claim is
// ours under any key: the key follows the name, and a rename that was cut off has
// changed it in the cloud and not in the state.
func Own(m backends.Marks, key, claim string) Ownership {
	switch {
	case m.Key == "" && m.Claim == "":
		return Unmarked
	case m.Claim != "" && m.Claim == claim:
		return Ours
	case !m.Carries(key):
		return Foreign
	case m.Claim == "":
		return Unclaimed
	default:
		return Theirs
	}
}

// LostMarks tells whether marks of an object of ours are gone, or others than they were
// written: someone changed labels or tags by hand. Without its key or pool an object isn't
// found by a run whose state was lost. Another key is none that was lost: see [Own].
func LostMarks(have, wanted backends.Marks) bool {
	return have.Managed && !have.Fixed && (have.Key == "" && wanted.Key != "" || have.Account != wanted.Account || have.Pool != wanted.Pool ||
		have.Volume != wanted.Volume || have.Digest == "" && wanted.Digest != "")
}

// claim is a fresh claim as an object of the kind carries it.
func (k *kind[T]) claim(fresh string) string {
	if k.fixed {
		return fresh[:min(len(fresh), backends.FixedClaimLength)]
	}
	return fresh
}

// isPartial tells whether little is known of an object now, and not even whose it is.
func isPartial[T backends.Object](object T) bool {
	m, ok := any(object).(backends.Machine)
	return ok && m.Partial && !m.Marks.Managed
}

// partial is the refusal to do anything with an object of which little is known.
func partial(object backends.Object) error {
	a := object.About()
	e := backends.Errorf(backends.ProviderError, "Whose the %s %s is can't be told now, so nothing was done to it. %s", a.Noun, a.ID, a.Message)
	e.Reason = backends.ReasonUnreachable
	return e.WithRemedy("Run again when it can be reached.")
}

// whole is an object once it is known whose it is: one that is being made, or deleted,
// and doesn't say so yet, is waited for. NOT_FOUND when it is gone by then.
func (k *kind[T]) whole(ctx context.Context, pool string, object T) (T, error) {
	transient := func(o T) bool {
		state := o.About().State
		return isPartial(o) && (state == backends.StatePending || state == backends.StateDeleting)
	}
	if transient(object) {
		last, err := k.await(ctx, pool, object, func(o T, missing bool) (bool, error) {
			if missing {
				return true, k.reader.gone(o.About().ID)
			}
			return !transient(o), nil
		})
		if err != nil {
			if message := last.About().Message; transient(last) && !backends.HasCode(err, backends.NotFound) {
				err = fmt.Errorf("%w %s", err, message)
			}
			return last, err
		}
		object = last
	}
	if isPartial(object) {
		return object, partial(object)
	}
	return object, nil
}

// own makes sure that an object is ours to change, claiming it where nobody has.
// marks are those it should carry but for Claim and Complete. The claim returned is
// the one that the state holds from now on, whoever's the object carries: the
// state's own, or the one that was written where it had none.
func (k *kind[T]) own(ctx context.Context, object T, o Owned, marks backends.Marks) (T, string, error) {
	object, err := k.whole(ctx, o.Pool, object)
	if err != nil {
		return object, o.Claim, err
	}
	a := object.About()
	own := Own(a.Marks, o.Key, o.Claim)
	switch {
	case k.isStrangers(a, o):
		return object, o.Claim, k.reader.gone(a.ID)
	case own == Ours && !LostMarks(a.Marks, marks):
		return object, o.Claim, nil
	case own == Foreign:
		return object, o.Claim, anothers(object)
	case own == Theirs && o.Claim != "":
		return object, o.Claim, claimedAnew(object)
	case own == Theirs && a.Marks.Fixed:
		k.account.shared.claims.Store(a.Marks.Claim, true)
		return object, a.Marks.Claim, nil // it can't be written over, so it is shared
	case own == Unmarked && o.Claim != "":
		return object, o.Claim, backends.Errorf(backends.AccessDenied, "The %s %q (%s) carries none of our marks any more, so it is not changed.", a.Noun, a.Name, a.ID).
			WithRemedy("If it is this resource's %s, remove it from the state, import it again and apply, which marks it.", a.Noun)
	}
	marks.Managed = true
	marks.Claim = cmp.Or(o.Claim, NewClaim()) // a label that someone removed is put back
	if own == Ours {
		marks.Key = cmp.Or(a.Marks.Key, marks.Key)
		marks.Complete, marks.GoesWithMachine = a.Marks.Complete, a.Marks.GoesWithMachine
		marks.Digest = cmp.Or(a.Marks.Digest, marks.Digest)
		mended, err := k.write(ctx, object, marks)
		return mended, o.Claim, err
	}
	if own == Unmarked {
		// It is not half made: nobody but its owner knows how it was made.
		marks.Complete = true
	} else {
		// What it was made from is what it says, until it has become something else.
		marks.Complete, marks.Digest = a.Marks.Complete, a.Marks.Digest
	}
	claimed, err := k.writeClaim(ctx, object, marks)
	if claimed.About().Marks.Claim == marks.Claim {
		return claimed, marks.Claim, err
	}
	return claimed, o.Claim, err
}
