// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The polls of an action, before scaling.
const (
	firstPoll   = 250 * time.Millisecond
	longestPoll = 5 * time.Second
)

// waiting says whether an action's end is waited for.
type waiting bool

const (
	waitForEnd waiting = true
	acceptOnly waiting = false
)

// act starts an asynchronous action of a server. A server that is locked by
// another action is waited for by the retry policy. An action that has failed by
// the time it is answered is a failure either way.
func (c *Client) act(ctx context.Context, what string,
	call func(context.Context) (*hcloud.Action, *hcloud.Response, error), wait waiting) error {
	action, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			a, answer, err := call(ctx)
			if err == nil && succeeded(answer) && (a == nil || a.ID <= 0) {
				err = errNoObject
			}
			return a, answer, err
		})
	if err != nil {
		return err
	}
	for poll := firstPoll; ; poll = min(poll*2, longestPoll) {
		switch {
		case action.Status == hcloud.ActionStatusError:
			return actionFailed(what, action)
		case action.Status != hcloud.ActionStatusRunning || wait == acceptOnly:
			return nil
		}
		if err := backends.Sleep(ctx, backends.Scale(poll)); err != nil {
			return err
		}
		var body schema.ActionGetResponse
		id := action.ID
		err := get(ctx, c.api, what, fmt.Sprintf("/actions/%d", id), &body, func() bool { return body.Action.ID == id })
		if err != nil {
			return err
		}
		action = hcloud.ActionFromSchema(body.Action)
	}
}
