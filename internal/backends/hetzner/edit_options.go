// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// placement brings the server into the placement group of the wish. A server is in one
// group at most, so it leaves another first, and goes back there if the new one has no
// room.
func (e *edit) placement(ctx context.Context) error {
	want, ok := parseID(e.to.Options.String("placement_group_id"))
	if !ok || groupOf(e.server) == want {
		return nil
	}
	if missing, err := e.isMissing(ctx, referred{kind: placementGroupKind, id: want}); err != nil || missing {
		if err == nil {
			r := reference{referred{kind: placementGroupKind, id: want}, []backends.Path{{attribute, "placement_group_id"}}}
			return r.missing()[0]
		}
		return err
	}
	if err := e.off(ctx); err != nil {
		return err
	}
	former := groupOf(e.server)
	if former != 0 {
		err := e.do(ctx, fmt.Sprintf("Taking %s out of placement group %d", e.called(), former), "", 0,
			func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
				return e.api.Server.RemoveFromPlacementGroup(ctx, &hcloud.Server{ID: e.server.ID})
			},
			func() bool { return groupOf(e.server) == 0 })
		if err != nil {
			return err
		}
	}
	err := e.joinGroup(ctx, want)
	if err != nil && former != 0 && ctx.Err() == nil && groupOf(e.server) == 0 {
		if back := e.joinGroup(ctx, former); back != nil {
			return fmt.Errorf("%w (going back to placement group %d failed: %w)", err, former, back)
		}
	}
	return err
}

func (e *edit) joinGroup(ctx context.Context, id int64) error {
	return e.do(ctx, fmt.Sprintf("Putting %s into placement group %d", e.called(), id), "placement group", id,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return e.api.Server.AddToPlacementGroup(ctx, &hcloud.Server{ID: e.server.ID}, &hcloud.PlacementGroup{ID: id})
		},
		func() bool { return groupOf(e.server) == id })
}

// groupOf is the server's placement group, 0 without one.
func groupOf(s *hcloud.Server) int64 {
	if s.PlacementGroup == nil {
		return 0
	}
	return s.PlacementGroup.ID
}

// backups switches the daily backups on or off; off deletes those there are.
func (e *edit) backups(ctx context.Context) error {
	want := e.to.Options.Bool("backups")
	is := func() bool { return e.server.BackupWindow != "" }
	if !e.to.Options.Has("backups") || is() == want {
		return nil
	}
	what := "Switching off backups of " + e.called()
	if want {
		what = "Switching on backups of " + e.called()
	}
	return e.do(ctx, what, "", 0,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			if want {
				return e.api.Server.EnableBackup(ctx, &hcloud.Server{ID: e.server.ID}, "")
			}
			return e.api.Server.DisableBackup(ctx, &hcloud.Server{ID: e.server.ID})
		},
		func() bool { return is() == want })
}
