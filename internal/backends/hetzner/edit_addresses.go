// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// family is an address family of the public interface. At Hetzner every public address
// is an object of its own, a primary IP: one is made with a server, and goes with it,
// unless it is given one that exists.
type family struct {
	kind   hcloud.PrimaryIPType
	title  string
	flag   string // the option that switches it
	option string // the option that names the primary IP
	of     func(*hcloud.Server) int64
}

func families() []family {
	return []family{
		{hcloud.PrimaryIPTypeIPv4, "IPv4", "public_ipv4", "primary_ipv4_id", func(s *hcloud.Server) int64 { return s.PublicNet.IPv4.ID }},
		{hcloud.PrimaryIPTypeIPv6, "IPv6", "public_ipv6", "primary_ipv6_id", func(s *hcloud.Server) int64 { return s.PublicNet.IPv6.ID }},
	}
}

// wished is what options say about the family: the primary IP, whether there is to be
// an address at all, and whether they say anything.
func (f family) wished(options backends.Values) (id int64, on, says bool) {
	if id, ok := parseID(options.String(f.option)); ok {
		return id, true, true
	}
	return 0, options.Bool(f.flag), options.Has(f.flag)
}

// addresses gives the server the public addresses of the wish.
func (e *edit) addresses(ctx context.Context) error {
	for _, f := range families() {
		id, on, says := f.wished(e.to.Options)
		if !says {
			continue
		}
		if err := e.address(ctx, f, id, on); err != nil {
			return err
		}
		wasID, wasOn, said := f.wished(e.from.Options)
		if id != wasID || on != wasOn || says != said {
			if err := e.sweepAddresses(ctx, f, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *edit) address(ctx context.Context, f family, id int64, on bool) error {
	now := f.of(e.server)
	switch {
	case id != 0 && now != id:
		// Before anything is given up for it.
		warning, issue, err := e.checkPrimaryIP(ctx, f, id, fmt.Sprint(e.server.ID), regionOf(e.server))
		switch {
		case err != nil:
			return err
		case issue != nil:
			return issue
		case warning != "":
			return backends.Errorf(backends.InvalidState, "%s", warning).At(attribute, f.option)
		}
		if err := e.release(ctx, f); err != nil {
			return err
		}
		return e.assign(ctx, f, id)
	case id == 0 && !on && now != 0:
		return e.release(ctx, f)
	case id == 0 && on && now == 0:
		return e.acquire(ctx, f)
	}
	return nil
}

func regionOf(s *hcloud.Server) string {
	if s.Location == nil {
		return ""
	}
	return s.Location.Name
}

// release takes the family's address from the server. One that was made with the server
// is labelled first, so that it is found and deleted even if this run ends here: alone
// it would stay, and be paid for.
func (e *edit) release(ctx context.Context, f family) error {
	now := f.of(e.server)
	if now == 0 {
		return nil
	}
	if err := e.off(ctx); err != nil {
		return err
	}
	given, _, _ := f.wished(e.from.Options)
	if now != given {
		ip, err := e.primaryIP(ctx, now)
		if err != nil && !backends.HasCode(err, backends.NotFound) {
			return err
		}
		if err == nil && ip.AutoDelete && ip.Labels[e.serverLabel()] == "" {
			if err := e.labelPrimaryIP(ctx, ip); err != nil {
				return err
			}
		}
	}
	return e.do(ctx, fmt.Sprintf("Taking the public %s address from %s", f.title, e.called()), "primary IP", now,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return e.api.PrimaryIP.Unassign(ctx, now)
		},
		func() bool { return f.of(e.server) != now })
}

func (e *edit) assign(ctx context.Context, f family, id int64) error {
	if err := e.off(ctx); err != nil {
		return err
	}
	return e.do(ctx, fmt.Sprintf("Giving primary IP %d to %s", id, e.called()), "primary IP", id,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return e.api.PrimaryIP.Assign(ctx, hcloud.PrimaryIPAssignOpts{ID: id, AssigneeID: e.server.ID, AssigneeType: assigneeServer})
		},
		func() bool { return f.of(e.server) == id })
}

// assigneeServer is the API's word for what a primary IP is assigned to.
const assigneeServer = "server"

// acquire gives the server an address that goes with it, as its creation would have. One
// that an interrupted edit has left is taken. The name is the server's, so that of two
// tries only one makes an address.
func (e *edit) acquire(ctx context.Context, f family) error {
	if err := e.off(ctx); err != nil {
		return err
	}
	left, err := e.leftAddresses(ctx, f)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return e.assign(ctx, f, left[0].ID)
	}
	opts := hcloud.PrimaryIPCreateOpts{
		Name: fmt.Sprintf("server-%d-%s", e.server.ID, f.kind), Type: f.kind,
		AssigneeType: assigneeServer, AssigneeID: &e.server.ID, AutoDelete: new(true),
		Labels: map[string]string{e.serverLabel(): fmt.Sprint(e.server.ID)},
	}
	return e.do(ctx, fmt.Sprintf("Giving a public %s address to %s", f.title, e.called()), "server", e.server.ID,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			made, answer, err := e.api.PrimaryIP.Create(ctx, opts)
			if err != nil || made == nil {
				return nil, answer, err
			}
			return made.Action, answer, nil
		},
		func() bool { return f.of(e.server) != 0 })
}

// sweepAddresses deletes the addresses that were made with the server and that it has no
// longer.
func (e *edit) sweepAddresses(ctx context.Context, f family, but int64) error {
	left, err := e.leftAddresses(ctx, f)
	if err != nil {
		return err
	}
	for _, ip := range left {
		if ip.ID == but {
			continue
		}
		_, err := request(ctx, backends.Idempotent, fmt.Sprintf("Deleting primary IP %d", ip.ID),
			func(ctx context.Context) (struct{}, *hcloud.Response, error) {
				answer, err := e.api.PrimaryIP.Delete(ctx, ip)
				if err == nil && succeeded(answer) && answer.StatusCode != http.StatusNoContent {
					err = errNotDeleted
				}
				return struct{}{}, answer, err
			})
		if err != nil && !backends.HasCode(err, backends.NotFound) {
			return plain(err)
		}
	}
	return nil
}

// serverLabel is the label of a primary IP that belongs to a server: its value is the
// server's id.
func (c *Client) serverLabel() string { return c.marks.name("server") }

// leftAddresses are the server's own addresses of a family that nothing has.
func (e *edit) leftAddresses(ctx context.Context, f family) ([]*hcloud.PrimaryIP, error) {
	what := "Looking for addresses of " + e.called()
	own := strconv.FormatInt(e.server.ID, 10)
	found, err := all(ctx, what,
		func(ctx context.Context, number int) ([]*hcloud.PrimaryIP, *hcloud.Response, error) {
			return e.api.PrimaryIP.List(ctx, hcloud.PrimaryIPListOpts{ListOpts: hcloud.ListOpts{
				Page: number, PerPage: perPage, LabelSelector: e.serverLabel() + "=" + own,
			}})
		})
	// A server that ignores the filter must not have its addresses deleted.
	return slices.DeleteFunc(found, func(ip *hcloud.PrimaryIP) bool {
		return ip.ID <= 0 || ip.Type != f.kind || ip.AssigneeID != 0 || ip.Labels[e.serverLabel()] != own
	}), err
}

func (c *Client) primaryIP(ctx context.Context, id int64) (*hcloud.PrimaryIP, error) {
	var body schema.PrimaryIPGetResponse
	err := get(ctx, c.api, fmt.Sprintf("Reading primary IP %d", id), fmt.Sprintf("/primary_ips/%d", id), &body,
		func() bool { return body.PrimaryIP.ID == id })
	if err != nil {
		return nil, err
	}
	return hcloud.PrimaryIPFromSchema(body.PrimaryIP), nil
}

func (e *edit) labelPrimaryIP(ctx context.Context, ip *hcloud.PrimaryIP) error {
	labels := maps.Clone(ip.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[e.serverLabel()] = strconv.FormatInt(e.server.ID, 10)
	_, err := request(ctx, backends.Idempotent, fmt.Sprintf("Labelling primary IP %d", ip.ID),
		func(ctx context.Context) (*hcloud.PrimaryIP, *hcloud.Response, error) {
			return e.api.PrimaryIP.Update(ctx, ip, hcloud.PrimaryIPUpdateOpts{Labels: &labels})
		})
	if backends.HasCode(err, backends.NotFound) {
		return plainAs(err, backends.ProviderError)
	}
	return err
}

// plainAs is a copy of the error with another code.
func plainAs(err error, code backends.Code) *backends.Error {
	e := plain(err)
	e.Code = code
	return e
}

// checkPrimaryIP looks at a primary IP that a server of a location is to get. One that
// another server has is a warning: it may be free by the time it is needed.
func (c *Client) checkPrimaryIP(ctx context.Context, f family, id int64, server, location string) (
	warning string, issue *backends.Error, err error) {
	bad := func(format string, args ...any) *backends.Error {
		return backends.Errorf(backends.InvalidInput, format, args...).At(attribute, f.option)
	}
	ip, err := c.primaryIP(ctx, id)
	switch {
	case backends.HasCode(err, backends.NotFound):
		return "", bad("There is no primary IP %d in the account's project.", id).
			WithRemedy("Use the id of a primary IP of this project; if Hetzner's own provider makes it, reference its id (hcloud_primary_ip.NAME.id)."), nil
	case err != nil:
		return "", nil, err
	case ip.Type != f.kind:
		return "", bad("The primary IP %d is an address of %s, not %s.", id, ip.Type, f.kind), nil
	case ip.Location != nil && location != "" && ip.Location.Name != location:
		return "", bad("The primary IP %d is in %s, the server in %s.", id, backends.Printable(ip.Location.Name), location).
			WithRemedy("Primary IPs stay in their location: use one of %s.", location), nil
	case ip.AssigneeID != 0 && strconv.FormatInt(ip.AssigneeID, 10) != server:
		return fmt.Sprintf("The primary IP %d is assigned to server %d, which must give it up first.", id, ip.AssigneeID), nil, nil
	}
	return "", nil, nil
}
