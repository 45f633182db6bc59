// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"cmp"
	"context"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// lifecycle are the commands that decide whether a server runs: a success of any
// of them is later news than a failure of another.
var lifecycle = []string{
	"create_server", "start_server", "stop_server", "shutdown_server", "reboot_server", "reset_server", "rebuild_server",
}

// Diagnose implements [backends.Diagnoser] from the server's newest actions of that
// kind: the newest one that failed and that no later one, ended well or still running,
// makes old news.
func (c *Client) Diagnose(ctx context.Context, m backends.Machine) error {
	what := "Reading the actions of " + called(m)
	id, err := objectNumber(what, m.ID)
	if err != nil {
		return err
	}
	actions, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) ([]*hcloud.Action, *hcloud.Response, error) {
			return c.newestActions(ctx, id)
		})
	if err != nil {
		return err
	}
	// A change of type or of an option that failed, long ago maybe, is no news of the power.
	actions = slices.DeleteFunc(actions, func(a *hcloud.Action) bool { return !slices.Contains(lifecycle, a.Command) })
	if failed := newestFailure(actions, lifecycle); failed != nil {
		return actionFailed(called(m), failed)
	}
	return nil
}

// newestFailure takes the commands of one kind together.
func newestFailure(actions []*hcloud.Action, oneKind []string) *hcloud.Action {
	actions = slices.Clone(actions)
	slices.SortFunc(actions, func(a, b *hcloud.Action) int { return cmp.Compare(b.ID, a.ID) })
	seen := map[string]bool{}
	for _, a := range actions {
		kind := a.Command
		if slices.Contains(oneKind, kind) {
			kind = oneKind[0]
		}
		if !seen[kind] && a.Status == hcloud.ActionStatusError {
			return rootOf(a, actions)
		}
		seen[kind] = true
	}
	return nil
}

// rootOf is the creation, where that has failed too: the start that was queued
// behind it fails with it and says nothing about why.
func rootOf(failed *hcloud.Action, actions []*hcloud.Action) *hcloud.Action {
	for _, a := range actions {
		if failed.Command == "start_server" && a.Command == "create_server" && a.Status == hcloud.ActionStatusError {
			return a
		}
	}
	return failed
}
