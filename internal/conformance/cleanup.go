// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Leftover is a machine that could not be cleaned up, or a look for machines that
// failed.
type Leftover struct {
	Machine backends.Machine // only an id or a key may be known
	Err     error
}

// String names the machine and says why it is still there.
func (l Leftover) String() string {
	switch {
	case l.Machine.ID == "":
		return fmt.Sprintf("machines with the key %s may be left: %v", l.Machine.Marks.Key, l.Err)
	case l.Machine.Name == "":
		return fmt.Sprintf("the machine %s may be left: %v", l.Machine.ID, l.Err)
	default:
		return fmt.Sprintf("the machine %q (%s) is left: %v", l.Machine.Name, l.Machine.ID, l.Err)
	}
}

// cleanupPolls are the pauses between looks for a machine that is being deleted,
// before scaling: the last one repeats.
var cleanupPolls = []time.Duration{250 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

// cleanUp deletes what carries a key of the trial's and what its calls returned,
// and says what it couldn't. It goes on after the end of ctx.
func (r *run) cleanUp(ctx context.Context, t *Trial) []Leftover {
	t.mu.Lock()
	keys, ids := slices.Clone(t.keys), slices.Clone(t.machines)
	t.mu.Unlock()
	if len(keys) == 0 && len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.subject.CleanupTimeout)
	defer cancel()

	var left []Leftover
	found := map[string]backends.Machine{}
	var order []string
	see := func(m backends.Machine) {
		if _, seen := found[m.ID]; !seen {
			order = append(order, m.ID)
		}
		found[m.ID] = m
	}
	for _, id := range ids {
		see(backends.Machine{ID: id})
	}
	for _, key := range keys {
		machines, err := r.backend.FindMachines(ctx, key)
		if err != nil {
			left = append(left, Leftover{backends.Machine{Marks: backends.Marks{Key: key}}, err})
			continue
		}
		for _, m := range machines {
			if m.Marks.Key == key { // a backend that finds others must not get them deleted
				see(m)
			}
		}
	}
	for _, id := range order {
		if l := r.remove(ctx, found[id]); l != nil {
			left = append(left, *l)
		}
	}
	return left
}

// remove deletes a machine, protected or not, and waits until it is gone.
func (r *run) remove(ctx context.Context, m backends.Machine) *Leftover {
	for n := 0; ; n++ {
		if n > 0 {
			if err := backends.Sleep(ctx, backends.Scale(cleanupPolls[min(n, len(cleanupPolls))-1])); err != nil {
				return &Leftover{m, errors.New("it was asked to be deleted, and didn't go in time")}
			}
		}
		seen, err := r.backend.GetMachine(ctx, m.ID)
		switch {
		case backends.HasCode(err, backends.NotFound), err == nil && seen.State == backends.StateDeleted:
			return nil
		case err != nil:
			return &Leftover{m, err}
		}
		m = seen
		if n > 0 || m.State == backends.StateDeleting {
			continue
		}
		if p, ok := r.backend.(backends.Protector); ok && m.Protected {
			if err := p.Protect(ctx, m, false); err != nil {
				return &Leftover{m, err}
			}
		}
		if err := r.backend.DeleteMachine(ctx, m); err != nil && !backends.HasCode(err, backends.NotFound) {
			return &Leftover{m, err}
		}
	}
}
