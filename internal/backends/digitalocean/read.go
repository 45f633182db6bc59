// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// dropletAnswer is the answer to the making and reading of one Droplet.
type dropletAnswer struct {
	Droplet *godo.Droplet `json:"droplet"`
}

// GetMachine implements [backends.Backend]. A Droplet that was just made may be
// NOT_FOUND for some seconds (tf#378); only the caller knows that it was.
func (c *Client) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	d, err := c.droplet(ctx, "Reading Droplet "+id, id)
	if err != nil {
		return backends.Machine{}, err
	}
	return c.machine(d), nil
}

func (c *Client) droplet(ctx context.Context, what, id string) (*godo.Droplet, error) {
	number, err := dropletID(what, id)
	if err != nil {
		return nil, err
	}
	answer, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: at("droplets", number)},
		func(a *dropletAnswer) bool { return a.Droplet != nil && a.Droplet.ID == number })
	if err != nil {
		return nil, err
	}
	return answer.Droplet, nil
}

// dropletID reads a machine's id. One that isn't a number is of no Droplet.
func dropletID(what, id string) (int, error) {
	number, ok := parseID(id)
	if !ok {
		return 0, backends.Errorf(backends.InvalidInput, "%s: %s", what, checkID(id))
	}
	return number, nil
}

// FindMachines implements [backends.Backend].
func (c *Client) FindMachines(ctx context.Context, key string) ([]backends.Machine, error) {
	listing, err := c.tagged(ctx, "Looking for a Droplet with the key "+key, c.tags.name(tagKey, key),
		func(m backends.Marks) bool { return m.Managed && m.Carries(key) })
	if err != nil {
		return nil, err
	}
	found, err := backends.Objects(ctx, listing)
	slices.SortFunc(found, func(a, b backends.Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return found, err
}

// ListMachines implements [backends.Lister]. The API selects by one tag: the pool's
// if there is one, since it selects less.
func (c *Client) ListMachines(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Machine], error) {
	tag := c.tags.name()
	switch {
	case filter.Pool != "":
		tag = c.tags.name(tagPool, filter.Pool)
	case filter.Account != "":
		tag = c.tags.name(tagAccount, filter.Account)
	}
	return c.tagged(ctx, "Listing the Droplets", tag, filter.Holds)
}

// tagged are the machines with a tag whose marks are the ones wanted. A tag that
// can't be one is on nothing.
func (c *Client) tagged(ctx context.Context, what, tag string, want func(backends.Marks) bool) (backends.Listing[backends.Machine], error) {
	if len(tag) > maxTag || !tagForm.MatchString(tag) {
		return backends.Whole[backends.Machine](nil), nil
	}
	machines, err := pages(ctx, c, what, at("droplets"), url.Values{"tag_name": {tag}}, "droplets",
		func(d godo.Droplet) bool { return d.ID > 0 }, c.machine)
	if err != nil {
		return backends.Listing[backends.Machine]{}, err
	}
	return machines.Only(func(m backends.Machine) bool { return want(m.Marks) }), nil
}
