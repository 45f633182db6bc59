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
	found, err := c.list(ctx, "Looking for a server with the key "+key, hcloud.ServerListOpts{
		ListOpts: hcloud.ListOpts{LabelSelector: selector},
	})
	slices.SortFunc(found, func(a, b backends.Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return found, err
}

// ListMachines implements [backends.Lister].
func (c *Client) ListMachines(ctx context.Context, filter backends.Filter) ([]backends.Machine, error) {
	selector, ok := c.marks.selectorOf(filter)
	if !ok {
		return nil, nil
	}
	return c.list(ctx, "Listing the servers", hcloud.ServerListOpts{
		ListOpts: hcloud.ListOpts{LabelSelector: selector},
	})
}

// byName is the server that holds a name, nil when the API shows none.
func (c *Client) byName(ctx context.Context, name string) (*backends.About, error) {
	found, err := c.list(ctx, "Looking for the server named "+name, hcloud.ServerListOpts{Name: name})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return new(found[0].About()), nil
}

// list reads all pages, in the order of ids, so that a server made meanwhile
// moves no other to another page. A server can still come twice when pages are
// read while one is deleted; it is listed once.
func (c *Client) list(ctx context.Context, what string, opts hcloud.ServerListOpts) ([]backends.Machine, error) {
	servers, err := pages(ctx, what,
		func(ctx context.Context, number int) ([]*hcloud.Server, *hcloud.Response, error) {
			opts := opts
			opts.Page, opts.PerPage, opts.Sort = number, perPage, []string{"id:asc"}
			found, answer, err := c.api.Server.List(ctx, opts)
			if err == nil && slices.ContainsFunc(found, func(s *hcloud.Server) bool { return s.ID <= 0 }) {
				err = errNoObject
			}
			return found, answer, err
		})
	if err != nil {
		return nil, err
	}
	seen := make(map[int64]bool, len(servers))
	out := make([]backends.Machine, 0, len(servers))
	for _, s := range servers {
		if !seen[s.ID] {
			seen[s.ID] = true
			out = append(out, c.machine(s))
		}
	}
	return out, nil
}
