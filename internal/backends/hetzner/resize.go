// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var _ backends.Resizer = (*Client)(nil)

// CheckResize implements [backends.Resizer]. The API takes a type of the same
// architecture and kind of storage, whose disk is no smaller than the server's, and
// which isn't being withdrawn from the server's location.
func (c *Client) CheckResize(ctx context.Context, m backends.Machine, to backends.MachineSpec, growDisk bool) (
	warnings []string, issues []*backends.Error, err error) {
	if to.Offer == "" {
		return nil, nil, nil
	}
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.server(ctx, m.ID)
	if err != nil {
		return nil, nil, err
	}
	if s.ServerType == nil || s.ServerType.Name == to.Offer {
		return nil, nil, nil
	}
	if issues := catalog.checkResize(s, to.Offer); len(issues) > 0 {
		return nil, issues, nil
	}
	t, disk := catalog.types[to.Offer], diskOf(s)
	switch {
	case t.Disk > disk && growDisk:
		warnings = append(warnings, fmt.Sprintf("The disk of server %s grows from %d to %d GB, and can't shrink again: "+
			"server types with a smaller disk are closed to it from then on.", s.Name, disk, t.Disk))
	case t.Disk > disk:
		warnings = append(warnings, fmt.Sprintf("The disk of server %s keeps its %d GB, although %s has %d GB, so that the server can go back. "+
			"With resize_disk = true it grows, for good.", s.Name, disk, t.Name, t.Disk))
	}
	return warnings, nil, nil
}

// checkResize tells why a server can't become one of a type.
func (c *catalog) checkResize(s *hcloud.Server, name string) []*backends.Error {
	region := regionOf(s)
	t := c.types[name]
	fitting := c.fitting(s, t)
	refusal := func(format string, args ...any) []*backends.Error {
		return []*backends.Error{backends.Errorf(backends.InvalidInput, format, args...).At("offer").
			WithRemedy("A server keeps its architecture and its disk. In %s this one can become %s.", region, backends.Choice(fitting))}
	}
	switch {
	case t == nil:
		_, _, _, issue := c.check(name, "")
		return []*backends.Error{issue}
	case t.Architecture != s.ServerType.Architecture:
		return refusal("Server %s is of the architecture %s, %s is of %s.", s.Name, s.ServerType.Architecture, name, t.Architecture)
	case t.StorageType != s.ServerType.StorageType:
		return refusal("Server %s has %s storage, %s has %s storage.", s.Name, s.ServerType.StorageType, name, t.StorageType)
	case t.Disk < diskOf(s):
		return refusal("The disk of server %s has %d GB, that of %s only %d GB, and a disk can't shrink.", s.Name, diskOf(s), name, t.Disk)
	}
	state, until := at(t, region)
	switch state {
	case absent:
		return refusal("%s is not offered in %s.", name, region)
	case gone:
		return refusal("%s was withdrawn from %s on %s.", name, region, day(until))
	case deprecated:
		return refusal("%s is being withdrawn from %s: no server becomes one of that type any more.", name, region)
	case soldOut:
		if isDeprecated(t, region) {
			return refusal("%s is being withdrawn from %s: no server becomes one of that type any more.", name, region)
		}
		issue := backends.Errorf(backends.CapacityUnavailable, "%s is out of stock in %s now.", name, region).At("offer").
			WithRemedy("In %s this server can become %s; or wait.", region, backends.Choice(fitting))
		issue.Reason = backends.ReasonCapacity
		return []*backends.Error{issue}
	case onSale:
	}
	return nil
}

// fitting are a few types that a server can become, the cheapest first: of those that
// are no smaller than a wanted one, else of all.
func (c *catalog) fitting(s *hcloud.Server, wanted *hcloud.ServerType) []string {
	region := regionOf(s)
	fits := slices.DeleteFunc(c.alternatives(region), func(name string) bool {
		t := c.types[name]
		return name == s.ServerType.Name || t.Architecture != s.ServerType.Architecture ||
			t.StorageType != s.ServerType.StorageType || t.Disk < diskOf(s)
	})
	like := fits
	if wanted != nil {
		like = slices.DeleteFunc(slices.Clone(fits), func(name string) bool {
			t := c.types[name]
			return t.Cores < wanted.Cores || t.Memory < wanted.Memory
		})
	}
	if len(like) == 0 {
		like = fits
	}
	return like[:min(backends.Nearest, len(like))]
}

// diskOf is the size of the server's disk in GB, which a resize may have left smaller
// than its type's.
func diskOf(s *hcloud.Server) int {
	if s.PrimaryDiskSize > 0 {
		return s.PrimaryDiskSize
	}
	return s.ServerType.Disk
}

// Resize implements [backends.Resizer]. The API starts the server when it has another
// type, whether it ran before or not; its caller sees to that.
func (c *Client) Resize(ctx context.Context, m backends.Machine, to backends.MachineSpec, growDisk bool, off backends.PowerDown) (
	backends.Machine, error) {
	s, err := c.server(ctx, m.ID)
	if err != nil {
		return m, err
	}
	e := &edit{Client: c, to: to, powerOff: off, server: s}
	is := func() bool { return e.server.ServerType != nil && e.server.ServerType.Name == to.Offer }
	if is() {
		return c.machine(e.server), nil
	}
	// The action of an earlier run may be at it: then the server shows the old type.
	if err := e.unlocked(ctx); err != nil {
		return c.machine(e.server), err
	}
	if is() {
		return c.machine(e.server), nil
	}
	if err := e.off(ctx); err != nil {
		return c.machine(e.server), err
	}
	err = e.do(ctx, fmt.Sprintf("Making %s a %s", e.called(), to.Offer), "", 0,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return e.api.Server.ChangeType(ctx, &hcloud.Server{ID: s.ID},
				hcloud.ServerChangeTypeOpts{ServerType: &hcloud.ServerType{Name: to.Offer}, UpgradeDisk: growDisk})
		}, is)
	if err == nil {
		err = e.look(ctx)
	}
	if backends.HasReason(err, backends.ReasonCapacity) {
		err = c.explainResize(ctx, err, e.server, to.Offer)
	}
	return c.machine(e.server), err
}

// explainResize says of a resize that there was no room for what there is room for.
func (c *Client) explainResize(ctx context.Context, err error, s *hcloud.Server, offer string) error {
	e := plain(err)
	e.Message = fmt.Sprintf("%s The server type %s can't be had in %s now; the server keeps its type.", e.Message, offer, regionOf(s))
	e.Remedy = "Try again later, or choose another offer."
	if catalog, err := c.catalog.Get(ctx); err == nil && s.ServerType != nil {
		if names := slices.DeleteFunc(catalog.fitting(s, catalog.types[offer]), func(name string) bool { return name == offer }); len(names) > 0 {
			e.Remedy = fmt.Sprintf("Try again later, or choose another offer: in %s, %s.", regionOf(s), backends.Choice(names))
		}
	}
	return e
}
