// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// GetMachine implements [backends.Backend].
func (c *Client) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	s, err := c.server(ctx, id)
	if err != nil {
		return backends.Machine{}, err
	}
	return c.machine(s), nil
}

func (c *Client) server(ctx context.Context, id string) (*hcloud.Server, error) {
	what := "Reading server " + id
	number, err := objectNumber(what, id)
	if err != nil {
		return nil, err
	}
	var body schema.ServerGetResponse
	err = get(ctx, c.api, what, fmt.Sprintf("/servers/%d", number), &body, func() bool { return body.Server.ID == number })
	if err != nil {
		return nil, err
	}
	return hcloud.ServerFromSchema(body.Server), nil
}

// objectNumber reads the id of a machine or volume. One that isn't a number is of no object here.
func objectNumber(what, id string) (int64, error) {
	number, ok := parseID(id)
	if !ok {
		return 0, backends.Errorf(backends.InvalidInput, "%s: %s", what, checkID(id))
	}
	return number, nil
}

// FindMachines implements [backends.Backend].
func (c *Client) FindMachines(ctx context.Context, key string) ([]backends.Machine, error) {
	selector, ok := c.marks.selector(labelKey, key)
	if !ok {
		return nil, nil
	}
	found, err := c.every(ctx, "Looking for a server with the key "+key, hcloud.ServerListOpts{
		ListOpts: hcloud.ListOpts{LabelSelector: selector},
	})
	slices.SortFunc(found, func(a, b backends.Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return found, err
}

// ListMachines implements [backends.Lister].
func (c *Client) ListMachines(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Machine], error) {
	selector, ok := c.marks.selectorOf(filter)
	if !ok {
		return backends.Whole[backends.Machine](nil), nil
	}
	opts := hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{LabelSelector: selector}}
	if filter.Phase == backends.PhaseGoing {
		opts.Status = []hcloud.ServerStatus{hcloud.ServerStatusDeleting}
	}
	return c.list(ctx, "Listing the servers", opts)
}

// OnePerKey implements [backends.OnePerKey]: names of servers are unique in a project.
func (c *Client) OnePerKey() {}

// ListsPhases implements [backends.PhaseLister] by a label and by the status.
func (c *Client) ListsPhases() {}

// byName is the server that holds a name, nil when the API shows none.
func (c *Client) byName(ctx context.Context, name string) (*backends.About, error) {
	found, err := c.every(ctx, "Looking for the server named "+name, hcloud.ServerListOpts{Name: name})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return new(found[0].About()), nil
}

// list reads the first page, and the others when asked to, in the order of ids, so
// that a server made meanwhile moves no other to another page. A server can still
// come twice when pages are read while one is deleted.
func (c *Client) list(ctx context.Context, what string, opts hcloud.ServerListOpts) (backends.Listing[backends.Machine], error) {
	return pages(ctx, what,
		func(ctx context.Context, number int) ([]backends.Machine, *hcloud.Response, error) {
			opts := opts
			opts.Page, opts.PerPage, opts.Sort = number, perPage, []string{"id:asc"}
			found, answer, err := c.api.Server.List(ctx, opts)
			if err == nil && slices.ContainsFunc(found, func(s *hcloud.Server) bool { return s.ID <= 0 }) {
				err = errNoObject
			}
			return turned(found, c.machine), answer, err
		})
}

// every are all servers of a list.
func (c *Client) every(ctx context.Context, what string, opts hcloud.ServerListOpts) ([]backends.Machine, error) {
	found, err := c.list(ctx, what, opts)
	if err != nil {
		return nil, err
	}
	return backends.Objects(ctx, found)
}
