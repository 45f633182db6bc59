// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// addressTaken explains the refusal of a create whose primary IP another server has. A
// server that is being deleted, as the one that this one replaces, will let go of it:
// that is waited for, until deadline.
func (c *Client) addressTaken(ctx context.Context, spec backends.MachineSpec, refusal error, deadline time.Time) error {
	for _, f := range families() {
		id, _, _ := f.wished(spec.Options)
		if id == 0 {
			continue
		}
		ip, err := c.primaryIP(ctx, id)
		if err == nil && ip.AssigneeID != 0 {
			var holder backends.Machine
			holder, err = c.GetMachine(ctx, strconv.FormatInt(ip.AssigneeID, 10))
			if err == nil && holder.State != backends.StateDeleting {
				e := plain(refusal)
				e.Remedy = fmt.Sprintf("The primary IP %d is assigned to %s: unassign it there, or use another one.", id, called(holder))
				return e.At(attribute, f.option)
			}
		}
		if err != nil && !backends.HasCode(err, backends.NotFound) {
			// Nothing was made; the look-up's own failure must not read as "perhaps".
			return fmt.Errorf("%w (looking for its holder failed: %w)", plain(refusal), err)
		}
	}
	e := plain(refusal)
	if time.Now().Before(deadline) {
		e.Reason, e.Retryable = backends.ReasonLocked, true
	}
	return e
}
