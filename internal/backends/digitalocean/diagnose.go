// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"context"
	"slices"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// lifecycle are the types of actions that decide whether a Droplet runs: a success
// of any of them is later news than a failure of another.
var lifecycle = []string{
	"create", "power_on", "power_off", "shutdown", "reboot", "power_cycle", "restore", actionRebuild,
}

// actionDestroy is a deletion. What else Droplets have (a resize, a rename, snapshots)
// says nothing about why one doesn't run or go: whoever began it has waited for it.
const actionDestroy = "destroy"

// Diagnose implements [backends.Diagnoser] from the Droplet's newest actions of
// that kind: the newest one that failed and that no later one, ended well or still
// running, makes old news. Of a Droplet that goes with some of its volumes it says
// which of them could not be deleted.
func (c *Client) Diagnose(ctx context.Context, m backends.Machine) error {
	what := "Reading the actions of " + called(m)
	id, err := dropletID(what, m.ID)
	if err != nil {
		return err
	}
	if c.going.has(id) {
		if err := c.destroyFailure(ctx, m, id); err != nil {
			return err
		}
	}
	actions, err := c.newestActions(ctx, what, id)
	if err != nil {
		return err
	}
	// A resize or another change that failed, long ago maybe, is no news of the power.
	actions = slices.DeleteFunc(actions, func(a godo.Action) bool { return !slices.Contains(lifecycle, a.Type) })
	if failed := newestFailure(actions); failed != nil {
		return actionError(called(m), failed)
	}
	return nil
}

func newestFailure(actions []godo.Action) *godo.Action {
	actions = slices.Clone(actions)
	slices.SortFunc(actions, func(a, b godo.Action) int { return cmp.Compare(b.ID, a.ID) })
	seen := map[string]bool{}
	for i, a := range actions {
		kind := a.Type
		switch {
		case slices.Contains(lifecycle, kind):
			kind = "lifecycle"
		case kind != actionDestroy:
			continue
		}
		if !seen[kind] && a.Status == actionFailed {
			return &actions[i]
		}
		seen[kind] = true
	}
	return nil
}
