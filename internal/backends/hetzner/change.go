// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"net/http"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// MarkMachine implements [backends.Backend] with one PUT. The API replaces all
// labels of a server, so those that aren't ours are sent along as m shows them.
func (c *Client) MarkMachine(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	what := "Labelling " + called(m)
	id, err := objectNumber(what, m.ID)
	if err != nil {
		return m, err
	}
	labels := c.marks.write(m.Labels, marks)
	s, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) (*hcloud.Server, *hcloud.Response, error) {
			s, answer, err := c.api.Server.Update(ctx, &hcloud.Server{ID: id}, hcloud.ServerUpdateOpts{Labels: labels})
			if err == nil && succeeded(answer) && s.ID != id {
				err = errNoObject
			}
			return s, answer, err
		})
	if err != nil {
		return m, err
	}
	return c.machine(s), nil
}

// DeleteMachine implements [backends.Backend]. A DELETE sent again after a lost
// answer finds the server gone: that is NOT_FOUND, which its callers take as done.
func (c *Client) DeleteMachine(ctx context.Context, m backends.Machine) error {
	what := "Deleting " + called(m)
	id, err := objectNumber(what, m.ID)
	if err != nil {
		return err
	}
	return c.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		result, answer, err := c.api.Server.DeleteWithResult(ctx, &hcloud.Server{ID: id})
		if err != nil || result == nil {
			return nil, answer, err
		}
		return result.Action, answer, nil
	}, acceptOnly)
}

// Protect implements [backends.Protector]. The API wants the protections against
// deletion and rebuild equal.
func (c *Client) Protect(ctx context.Context, m backends.Machine, protected bool) error {
	what := "Changing the protection of " + called(m)
	id, err := objectNumber(what, m.ID)
	if err != nil {
		return err
	}
	return c.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		return c.api.Server.ChangeProtection(ctx, &hcloud.Server{ID: id},
			hcloud.ServerChangeProtectionOpts{Delete: &protected, Rebuild: &protected})
	}, waitForEnd)
}

// Reinstall implements [backends.Reinstaller]. The server keeps the user data it
// was made with.
func (c *Client) Reinstall(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
	return c.rebuild(ctx, m, spec.Image, nil)
}

// ReinstallWithUserData implements [backends.UserDataReinstaller].
func (c *Client) ReinstallWithUserData(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
	if issues := spec.CheckUserData("Hetzner", maxUserDataKiB); len(issues) > 0 {
		return issues[0]
	}
	data, err := spec.CloudInit()
	if err != nil {
		return err
	}
	text := string(data)
	return c.rebuild(ctx, m, spec.Image, &text)
}

func (c *Client) rebuild(ctx context.Context, m backends.Machine, image string, userData *string) error {
	what := "Reinstalling " + called(m)
	id, err := objectNumber(what, m.ID)
	if err != nil {
		return err
	}
	t, err := c.typeOf(ctx, m)
	if err != nil {
		return err
	}
	imageID, _, issue, err := c.resolveImage(ctx, image, t)
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
	lost := false
	return c.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		if lost {
			// The answer was lost: a rebuild that was begun, ended or not, is not started
			// again, which would wipe what the guest has set up since.
			begun, answer, err := c.rebuildAfter(ctx, id, before)
			if begun != nil || err != nil {
				return begun, answer, err
			}
		}
		// The id goes as text, as the API's description has it.
		result, answer, err := c.api.Server.RebuildWithResult(ctx, &hcloud.Server{ID: id},
			hcloud.ServerRebuildOpts{Image: &hcloud.Image{Name: imageID}, UserData: userData})
		// Once lost, always in doubt: a refusal of the next try (the server is locked,
		// perhaps by the very rebuild) says nothing about this one.
		lost = lost || !turnedDown(answer)
		return result.Action, answer, err
	}, waitForEnd)
}

// turnedDown tells whether the API has answered that it did nothing.
func turnedDown(answer *hcloud.Response) bool {
	return answer != nil && answer.Response != nil &&
		answer.StatusCode >= http.StatusBadRequest && answer.StatusCode < http.StatusInternalServerError
}

// newestAction is the id of the server's newest action, 0 without one. Ids tell
// what came later; the clocks of two machines don't.
func (c *Client) newestAction(ctx context.Context, what string, id int64) (int64, error) {
	actions, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) ([]*hcloud.Action, *hcloud.Response, error) {
			return c.newestActions(ctx, id)
		})
	var newest int64
	for _, a := range actions {
		newest = max(newest, a.ID)
	}
	return newest, err
}

// rebuildAfter is the server's newest rebuild that was begun after an action, nil
// without one.
func (c *Client) rebuildAfter(ctx context.Context, id, after int64) (*hcloud.Action, *hcloud.Response, error) {
	actions, answer, err := c.newestActions(ctx, id)
	var newest *hcloud.Action
	for _, a := range actions {
		if a.Command == "rebuild_server" && a.ID > after && (newest == nil || a.ID > newest.ID) {
			newest = a
		}
	}
	return newest, answer, err
}

// newestActions is one page of the server's actions, the newest first.
func (c *Client) newestActions(ctx context.Context, id int64) ([]*hcloud.Action, *hcloud.Response, error) {
	return c.api.Server.Action.ListFor(ctx, &hcloud.Server{ID: id}, hcloud.ActionListOpts{
		ListOpts: hcloud.ListOpts{PerPage: perPage}, Sort: []string{"id:desc"},
	})
}

// typeOf is the machine's server type: of the catalog, or the one that the server
// holds when the type is no longer sold.
func (c *Client) typeOf(ctx context.Context, m backends.Machine) (*hcloud.ServerType, error) {
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, err
	}
	if t := catalog.types[m.Offer]; t != nil {
		return t, nil
	}
	s, err := c.server(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	if s.ServerType == nil || s.ServerType.Architecture == "" {
		return nil, backends.Errorf(backends.ProviderError, "Reinstalling %s: the API doesn't say what type server %s has.",
			called(m), strconv.FormatInt(s.ID, 10))
	}
	return s.ServerType, nil
}
