// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"fmt"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// ExistsError is a CONFLICT: the object that was to be made exists, and it is
// complete, so it may be in use by another state or another block of this one.
type ExistsError struct {
	Object backends.About
	// Adopt tells whether the pool allows taking it over. Then Differs says why it
	// wasn't; with nothing in it, another block of this configuration owns the object.
	Adopt   bool
	Differs []backends.DigestField
}

// Error says what exists and, when adoption failed, what differs.
func (e *ExistsError) Error() string {
	msg := fmt.Sprintf("%s: %s", backends.Conflict, existsMessage(e.Object))
	if len(e.Differs) > 0 {
		msg += " " + e.difference()
	}
	return msg
}

func existsMessage(a backends.About) string {
	return fmt.Sprintf("The %s %q (%s) exists already.", a.Noun, a.Name, a.ID)
}

func (e *ExistsError) difference() string {
	names := make([]string, len(e.Differs))
	for i, f := range e.Differs {
		names[i] = f.String()
	}
	return "It was not adopted, since it was made with another " + strings.Join(names, ", ") + "."
}

// Unwrap is the error in the contract's terms.
func (e *ExistsError) Unwrap() error {
	out := backends.Errorf(backends.Conflict, "%s", existsMessage(e.Object))
	if len(e.Differs) > 0 {
		out.Message += " " + e.difference()
	}
	out.Details = map[string]any{e.Object.Noun + "_id": e.Object.ID}
	return out
}

// claimedAnew is the error of an object that someone else took over.
func claimedAnew(o backends.Object) *backends.Error {
	a := o.About()
	e := backends.Errorf(backends.Conflict, "The %s %q (%s) was claimed by another run or state; it is left alone.", a.Noun, a.Name, a.ID)
	e.Details = map[string]any{a.Noun + "_id": a.ID}
	return e.WithRemedy("If that is not intended, find out who else manages it: its claim is in the cloud's labels or tags.")
}

// anothers is the error of a state whose object carries the key of another resource
// by now.
func anothers(o backends.Object) *backends.Error {
	a := o.About()
	e := backends.Errorf(backends.Conflict, "The %s %q (%s) carries the id of another resource (%s, pool %s); it is left alone.",
		a.Noun, a.Name, a.ID, a.Marks.Key, a.Marks.Pool)
	e.Details = map[string]any{a.Noun + "_id": a.ID}
	return e.WithRemedy("Forget it here with a removed block (destroy = false), and import the %s that this resource should have.", a.Noun)
}
