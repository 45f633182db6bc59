// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"net/http"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Power implements [backends.Powerer] by the specification's table. graceful-off
// only asks the guest: its success says nothing about the power. Switching on what
// is on, or off what is off, the API refuses; here it is a success.
func (c *Client) Power(ctx context.Context, m backends.Machine, action backends.PowerAction) error {
	var kind, doing string
	switch action {
	case backends.PowerOn:
		kind, doing = "power_on", "Powering on"
	case backends.PowerOff:
		kind, doing = "power_off", "Powering off"
	case backends.PowerGracefulOff:
		kind, doing = "shutdown", "Shutting down"
	case backends.PowerReset, backends.PowerCycle:
		kind, doing = "power_cycle", "Power cycling"
	case backends.PowerGracefulRestart:
		kind, doing = "reboot", "Rebooting"
	default:
		return backends.Errorf(backends.Unsupported, "DigitalOcean has no power action %q.", action)
	}
	what := doing + " " + called(m)
	id, err := dropletID(what, m.ID)
	if err != nil {
		return err
	}
	_, err = c.act(ctx, what, id, map[string]string{"type": kind})
	already := map[backends.PowerAction]string{
		backends.PowerOn: "already powered on", backends.PowerOff: "already powered off", backends.PowerGracefulOff: "already powered off",
	}[action]
	if already != "" && says(err, http.StatusUnprocessableEntity, already) {
		return nil
	}
	return err
}

// rebuildRequest is the body of a rebuild.
type rebuildRequest struct {
	Type  string                  `json:"type"`
	Image godo.DropletCreateImage `json:"image"`
}

// Reinstall implements [backends.Reinstaller]. The Droplet keeps its id, its
// addresses and the user data that it was made with: the API can't change those.
func (c *Client) Reinstall(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
	what := "Reinstalling " + called(m)
	id, err := dropletID(what, m.ID)
	if err != nil {
		return err
	}
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return err
	}
	_, issue, err := c.resolveImage(ctx, spec.Image, catalog.sizes[m.Offer], m.Region)
	if err != nil {
		return err
	}
	if issue != nil {
		return issue
	}
	before, err := c.newestAction(ctx, what, id)
	if err != nil {
		return err
	}
	action, err := c.rebuild(ctx, what, id, rebuildRequest{actionRebuild, imageOf(spec.Image)}, before)
	if err != nil {
		return err
	}
	return c.awaitAction(ctx, what, action)
}

// rebuild starts a rebuild. Where an answer was lost, one that was begun, ended or
// not, is not started again, which would wipe what the guest has set up since; and
// once in doubt it stays so, since "pending event" may be that very rebuild.
func (c *Client) rebuild(ctx context.Context, what string, id int, body rebuildRequest, before int) (*godo.Action, error) {
	var action *godo.Action
	lost := false
	err := backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		if lost {
			begun, err := c.rebuildAfter(ctx, what, id, before)
			if err != nil || begun != nil {
				action = begun
				return err
			}
		}
		var answer actionAnswer
		err := c.try(ctx, what, request{method: http.MethodPost, path: at("droplets", id, "actions"), body: body}, &answer, answer.good)
		action = answer.Action
		e := backends.AsError(err)
		lost = lost || e != nil && e.Ambiguous
		return err
	})
	return action, err
}

// newestAction is the id of the Droplet's newest action, 0 without one. Ids tell
// what came later; the clocks of two machines don't.
func (c *Client) newestAction(ctx context.Context, what string, id int) (int, error) {
	actions, err := c.newestActions(ctx, what, id)
	newest := 0
	for _, a := range actions {
		newest = max(newest, a.ID)
	}
	return newest, err
}

// rebuildAfter is the Droplet's newest rebuild that was begun after an action, nil
// without one.
func (c *Client) rebuildAfter(ctx context.Context, what string, id, after int) (*godo.Action, error) {
	actions, err := c.newestActions(ctx, what, id)
	var newest *godo.Action
	for i, a := range actions {
		if a.Type == actionRebuild && a.ID > after && (newest == nil || a.ID > newest.ID) {
			newest = &actions[i]
		}
	}
	return newest, err
}
