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
	Machine backends.Machine
	// Adopt tells whether the pool allows taking it over; then Differs says why it
	// wasn't.
	Adopt   bool
	Differs []backends.DigestField
}

// Error says what exists and, when adoption failed, what differs.
func (e *ExistsError) Error() string {
	msg := fmt.Sprintf("%s: %s", backends.Conflict, existsMessage(e.Machine))
	if len(e.Differs) > 0 {
		msg += " " + e.difference()
	}
	return msg
}

func existsMessage(m backends.Machine) string {
	return fmt.Sprintf("The machine %q (%s) exists already.", m.Name, m.ID)
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
	out := backends.Errorf(backends.Conflict, "%s", existsMessage(e.Machine))
	if len(e.Differs) > 0 {
		out.Message += " " + e.difference()
	}
	out.Details = map[string]any{"machine_id": e.Machine.ID}
	return out
}

// claimedAnew is the error of an object that someone else took over.
func claimedAnew(m backends.Machine) *backends.Error {
	e := backends.Errorf(backends.Conflict, "The machine %q (%s) was claimed by another run or state; it is left alone.", m.Name, m.ID)
	e.Details = map[string]any{"machine_id": m.ID}
	return e.WithRemedy("If that is not intended, find out who else manages it: its claim is in the cloud's labels or tags.")
}

// nameTaken is the error of a name that another object holds.
func nameTaken(m backends.Machine) *backends.Error {
	holder := "an object that is not managed by Better Compute"
	if m.Marks.Managed {
		holder = fmt.Sprintf("a machine of the pool %s", m.Marks.Pool)
	}
	e := backends.Errorf(backends.Conflict, "The name %q is taken in the cloud by %s (id %s).", m.Name, holder, m.ID)
	e.Details = map[string]any{"machine_id": m.ID}
	return e.WithRemedy("Choose another name, or delete or rename that object.")
}
