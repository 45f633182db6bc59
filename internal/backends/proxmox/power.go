// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"net/http"
	"regexp"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// textsNotRunning is the refusal of what only a running VM can do.
var textsNotRunning = regexp.MustCompile(`(?i)not running`)

// Power implements [backends.Powerer]. Its tasks are waited for, but for
// graceful-off: that lasts as long as the guest takes, and its caller watches the
// VM's state, so the task is only begun.
func (c *Client) Power(ctx context.Context, m backends.Machine, action backends.PowerAction) error {
	var doing string
	switch action {
	case backends.PowerOn:
		doing = "Starting "
	case backends.PowerOff:
		doing = "Stopping "
	case backends.PowerGracefulOff:
		doing = "Shutting down "
	case backends.PowerReset:
		doing = "Resetting "
	case backends.PowerGracefulRestart:
		doing = "Rebooting "
	case backends.PowerCycle:
		doing = "Power cycling "
	default:
		return backends.Errorf(backends.Unsupported, "Proxmox VE has no power action %q.", action)
	}
	what := doing + called(m)
	v, err := c.own(ctx, what, m)
	if err != nil {
		return err
	}
	switch action {
	case backends.PowerOn:
		return c.start(ctx, what, v.where)
	case backends.PowerOff:
		return c.stop(ctx, what, v.where)
	case backends.PowerCycle:
		if err := c.stop(ctx, what, v.where); err != nil {
			return err
		}
		return c.start(ctx, what, v.where)
	case backends.PowerGracefulOff:
		_, err := c.begin(ctx, backends.Idempotent, what, request{http.MethodPost, v.at("status", "shutdown"), nil})
		return err
	case backends.PowerReset:
		_, err = c.run(ctx, what, request{http.MethodPost, v.at("status", "reset"), nil}, nil)
	default:
		_, err = c.run(ctx, what, request{http.MethodPost, v.at("status", "reboot"), nil}, nil)
	}
	if says(err, textsNotRunning) {
		e := *backends.AsError(err)
		e.Code = backends.InvalidState
		return e.WithRemedy("Start it first.")
	}
	return err
}
