// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// remake ends a reinstallation whose first half destroyed the machine, in a cloud where
// that is how one is done (see [backends.Remaker]): the run before this one ended while
// the cloud still worked on it, so that the refresh saw the machine and the update
// doesn't. It was to be wiped, so it is made again under its id, with its claim. missing is
// the error of the update, and what is returned where it can't be. The machine is locked
// by the caller.
func (a *Account) remake(ctx context.Context, c Change, out Updated, missing error) (Updated, error) {
	r, ok := a.Backend.(backends.Remaker)
	if !ok || c.Claim == "" { // one that was imported and never taken over is nobody's
		return out, missing
	}
	if _, err := a.machines.get(ctx, c.ID); !backends.HasCode(err, backends.NotFound) {
		return out, missing // something else wasn't found, or another machine has the id
	}
	a.machines.reader.deleted(c.ID)
	spec := c.Spec
	spec.Marks.Claim = c.Claim
	begun := time.Now()
	call, cancel := backends.Grace(ctx)
	m, err := r.RemakeMachine(call, c.ID, spec)
	cancel()
	if m.ID != "" {
		out = Updated{Machine: m, Claim: c.Claim, Reinstalled: true}
	}
	if err != nil {
		return out, err
	}
	a.machines.reader.made(m, begun)
	if out.Machine, _, err = a.machines.finish(ctx, c.Pool, m, a.prepareMachine(c.Pool, spec)); err != nil {
		return out, err
	}
	c.Reinstall = false
	return out, a.converge(ctx, &out, c)
}
