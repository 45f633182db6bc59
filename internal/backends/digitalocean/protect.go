// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"slices"
	"strings"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// tagProtected is deletion protection, without a value. DigitalOcean has none for
// Droplets and volumes, so it is a tag like the marks, which holds for whoever deletes
// through this backend, whichever state they work from: the control panel and other
// tools don't know it. It is no part of [backends.Marks], and writing those leaves it.
const tagProtected = "protected"

var _ backends.Protector = (*Client)(nil)

// isProtected tells whether tags hold the one for deletion protection.
func (t tagNames) isProtected(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.EqualFold(tag, t.name(tagProtected)) })
}

// Protect implements [backends.Protector].
func (c *Client) Protect(ctx context.Context, m backends.Machine, protected bool) error {
	what := "Protecting " + called(m)
	if !protected {
		what = "Lifting the protection of " + called(m)
	}
	if _, err := dropletID(what, m.ID); err != nil {
		return err
	}
	return c.protect(ctx, what, tagged{godo.DropletResourceType, m.ID}, protected)
}

func (c *Client) protect(ctx context.Context, what string, o tagged, protected bool) error {
	tag := c.tags.name(tagProtected)
	if protected {
		return c.tagWith(ctx, what, o, tag)
	}
	return c.untag(ctx, what, o, tag)
}

// protectedError is the answer to the deletion of what is protected.
func protectedError(what string) error {
	e := backends.Errorf(backends.InvalidState, "%s: it has deletion protection.", what).
		WithRemedy("Lift the protection first.")
	e.Reason = backends.ReasonProtected
	return e
}
