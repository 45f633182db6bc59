// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"net/http"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// MarkMachine implements [backends.Backend] by the tags that differ: the completion
// mark is one call. The API answers nothing to a change of tags, so the machine
// returned is the one last seen with the marks that were written; who needs to know
// of another's claim reads again.
func (c *Client) MarkMachine(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	what := "Tagging " + called(m)
	if _, err := dropletID(what, m.ID); err != nil {
		return m, err
	}
	seen := m
	err := c.retag(ctx, what, tagged{godo.DropletResourceType, m.ID}, m.Marks, marks,
		func(ctx context.Context) ([]string, error) {
			d, err := c.droplet(ctx, what, m.ID)
			if err != nil {
				return nil, err
			}
			seen = c.machine(d)
			return d.Tags, nil
		})
	if err != nil {
		return seen, err
	}
	seen.Marks = backends.Marks{}
	if marks.Managed {
		seen.Marks = marks
	}
	return seen, nil
}

// DeleteMachine implements [backends.Backend]. A DELETE sent again after a lost
// answer may find the Droplet gone: that is NOT_FOUND, which its callers take as
// done. That it was accepted doesn't mean that the Droplet goes (tf#283): callers
// wait until it can't be read.
func (c *Client) DeleteMachine(ctx context.Context, m backends.Machine) error {
	what := "Deleting " + called(m)
	id, err := dropletID(what, m.ID)
	if err != nil {
		return err
	}
	if m.Protected {
		return protectedError(what)
	}
	return c.tell(ctx, what, request{method: http.MethodDelete, path: at("droplets", id)})
}
