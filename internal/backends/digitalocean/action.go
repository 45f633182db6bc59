// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The polls of an action, before scaling.
const (
	firstPoll   = 250 * time.Millisecond
	longestPoll = 5 * time.Second
)

// The API's words for an action's status.
const (
	actionRuns   = "in-progress"
	actionFailed = "errored"
)

// actionRebuild is the type of the action that a reinstallation is.
const actionRebuild = "rebuild"

type actionAnswer struct {
	Action *godo.Action `json:"action"`
}

func (a *actionAnswer) good() bool { return a.Action != nil && a.Action.ID > 0 }

// act starts an action of a Droplet and returns it. While another runs ("pending
// event") the retry policy waits. An action that has failed by the time it is
// answered is a failure.
func (c *Client) act(ctx context.Context, what string, id int, body any) (*godo.Action, error) {
	answer, err := call(ctx, c, backends.Idempotent, what,
		request{method: http.MethodPost, path: at("droplets", id, "actions"), body: body}, (*actionAnswer).good)
	switch {
	case err != nil:
		return nil, err
	case answer.Action.Status == actionFailed:
		return nil, actionError(what, answer.Action)
	}
	return answer.Action, nil
}

// awaitAction waits until an action has ended.
func (c *Client) awaitAction(ctx context.Context, what string, a *godo.Action) error {
	for poll := firstPoll; ; poll = min(poll*2, longestPoll) {
		switch a.Status {
		case actionFailed:
			return actionError(what, a)
		case actionRuns:
		default:
			return nil
		}
		if err := backends.Sleep(backends.Caller(ctx), backends.Scale(poll)); err != nil {
			return err
		}
		answer, err := call(ctx, c, backends.Idempotent, what,
			request{method: http.MethodGet, path: at("actions", a.ID)},
			func(b *actionAnswer) bool { return b.good() && b.Action.ID == a.ID })
		if err != nil {
			return err
		}
		a = answer.Action
	}
}

// settleTime is how much later than an action's end its effect may show (droplet_kit#50),
// before scaling.
const settleTime = time.Minute

// event starts an action of a Droplet, waits until it has ended and until the Droplet
// shows what it did, and returns the Droplet. A refusal by a Droplet that shows it
// already is the success of an earlier try whose answer was lost. With an error it
// returns the Droplet if it was read.
func (c *Client) event(ctx context.Context, what string, id int, body any, shows func(*godo.Droplet) bool) (*godo.Droplet, error) {
	action, err := c.act(ctx, what, id, body)
	if err == nil {
		err = c.awaitAction(ctx, what, action)
	}
	if err != nil && !backends.HasReason(err, backends.ReasonInvalid) {
		return nil, err
	}
	end := time.Now().Add(backends.Scale(settleTime))
	for poll := firstPoll; ; poll = min(poll*2, longestPoll) {
		d, lost := c.droplet(ctx, what, strconv.Itoa(id))
		switch {
		case lost != nil && err != nil:
			return nil, err
		case lost != nil:
			return nil, lost
		case shows(d):
			return d, nil
		case err != nil:
			return d, err
		case !time.Now().Before(end):
			return d, backends.Errorf(backends.ProviderError, "%s: DigitalOcean says that it is done, and the Droplet doesn't show it.", what).
				WithRemedy("Run again.")
		}
		if err := backends.Sleep(backends.Caller(ctx), backends.Scale(poll)); err != nil {
			return d, err
		}
	}
}

type actionsAnswer struct {
	Actions *[]godo.Action `json:"actions"`
}

// newestActions is one page of the Droplet's actions, the newest among them: the API
// begins with those.
func (c *Client) newestActions(ctx context.Context, what string, id int) ([]godo.Action, error) {
	answer, err := call(ctx, c, backends.Idempotent, what,
		request{method: http.MethodGet, path: at("droplets", id, "actions"), query: url.Values{"per_page": {strconv.Itoa(perPage)}}},
		func(a *actionsAnswer) bool { return a.Actions != nil })
	if err != nil {
		return nil, err
	}
	return *answer.Actions, nil
}
