// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Power implements [backends.Powerer] by the specification's table. graceful-off
// only asks the guest: its success says nothing about the power. Switching on
// what is on, or off what is off, is accepted and changes nothing.
func (c *Client) Power(ctx context.Context, m backends.Machine, action backends.PowerAction) error {
	var send func(context.Context, *hcloud.Server) (*hcloud.Action, *hcloud.Response, error)
	var doing string
	switch action {
	case backends.PowerOn:
		send, doing = c.api.Server.Poweron, "Powering on"
	case backends.PowerOff:
		send, doing = c.api.Server.Poweroff, "Powering off"
	case backends.PowerGracefulOff:
		send, doing = c.api.Server.Shutdown, "Shutting down"
	case backends.PowerReset, backends.PowerCycle:
		send, doing = c.api.Server.Reset, "Resetting"
	case backends.PowerGracefulRestart:
		send, doing = c.api.Server.Reboot, "Rebooting"
	default:
		return backends.Errorf(backends.Unsupported, "Hetzner Cloud has no power action %q.", action)
	}
	what := doing + " " + called(m)
	id, err := objectNumber(what, m.ID)
	if err != nil {
		return err
	}
	return c.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		return send(ctx, &hcloud.Server{ID: id})
	}, acceptOnly)
}

// called is a machine as messages name it.
func called(m backends.Machine) string {
	if m.Name == "" {
		return "server " + m.ID
	}
	return fmt.Sprintf("server %s (%s)", m.Name, m.ID)
}
