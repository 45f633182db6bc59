// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// networks attaches the server to the networks of the wish, in its order, and detaches
// it from those of the earlier wish that are no longer in it. Networks go before others
// come only where they overlap: should the new one be refused, the old one is there yet.
func (e *edit) networks(ctx context.Context) error {
	if e.to.Network == "" && !e.to.Options.Has("networks") {
		return nil
	}
	want, err := allNetworks(e.to)
	if err != nil {
		return err
	}
	had, err := allNetworks(e.from)
	if err != nil {
		return err
	}
	var leaving []int64
	for _, n := range had {
		wanted := slices.ContainsFunc(want, func(w network) bool { return w.id == n.id })
		if !wanted && placeIn(e.server, n.id) != nil {
			leaving = append(leaving, n.id)
		}
	}
	for _, n := range want {
		var before network
		if i := slices.IndexFunc(had, func(h network) bool { return h.id == n.id }); i >= 0 {
			before = had[i]
		}
		err := e.join(ctx, n, before)
		if hasAPICode(err, codeNetworksOverlap) && len(leaving) > 0 {
			if err := e.leave(ctx, leaving); err != nil {
				return err
			}
			leaving = nil
			err = e.join(ctx, n, before)
		}
		if err != nil {
			return err
		}
	}
	return e.leave(ctx, leaving)
}

// join brings the server into a network, with the addresses that the wish names.
func (e *edit) join(ctx context.Context, n, before network) error {
	now := placeIn(e.server, n.id)
	aliases := n.aliases
	if now != nil {
		aliases = n.changedAliases(now, before)
	}
	switch {
	case now == nil:
		return e.enter(ctx, n, aliases)
	case n.ip != "" && n.ip != now.IP.String():
		// An address can't be changed: the server leaves the network and comes back.
		if err := e.leave(ctx, []int64{n.id}); err != nil {
			return err
		}
		err := e.enter(ctx, n, aliases)
		if err != nil && ctx.Err() == nil && placeIn(e.server, n.id) == nil {
			former := network{id: n.id, ip: now.IP.String()}
			if back := e.enter(ctx, former, texts(now.Aliases)); back != nil {
				return fmt.Errorf("%w (going back to %s failed: %w)", err, former.ip, back)
			}
		}
		return err
	case slices.Equal(aliases, sortedTexts(now.Aliases)):
		return nil
	}
	opts := hcloud.ServerChangeAliasIPsOpts{Network: &hcloud.Network{ID: n.id}}
	for _, alias := range aliases {
		opts.AliasIPs = append(opts.AliasIPs, net.ParseIP(alias))
	}
	return e.do(ctx, fmt.Sprintf("Changing the alias addresses of %s in network %d", e.called(), n.id), "network", n.id,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return e.api.Server.ChangeAliasIPs(ctx, &hcloud.Server{ID: e.server.ID}, opts)
		},
		func() bool {
			now := placeIn(e.server, n.id)
			return now != nil && slices.Equal(aliases, sortedTexts(now.Aliases))
		})
}

// changedAliases are the aliases that the server has in the network, with those of one
// wish made those of another, sorted. A wish that doesn't name any leaves them.
func (n network) changedAliases(now *hcloud.ServerPrivateNet, before network) []string {
	aliases := sortedTexts(now.Aliases)
	if n.namesAliases {
		aliases = slices.DeleteFunc(aliases, func(a string) bool { return slices.Contains(before.aliases, a) })
		aliases = append(aliases, n.aliases...)
		slices.Sort(aliases)
		aliases = slices.Compact(aliases)
	}
	return aliases
}

func (e *edit) enter(ctx context.Context, n network, aliases []string) error {
	opts, err := attachOpts(network{id: n.id, ip: n.ip, aliases: aliases})
	if err != nil {
		return err
	}
	return e.do(ctx, fmt.Sprintf("Attaching %s to network %d", e.called(), n.id), "network", n.id,
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return e.api.Server.AttachToNetwork(ctx, &hcloud.Server{ID: e.server.ID}, opts)
		},
		func() bool {
			now := placeIn(e.server, n.id)
			return now != nil && (n.ip == "" || n.ip == now.IP.String())
		})
}

func (e *edit) leave(ctx context.Context, networks []int64) error {
	for _, id := range networks {
		err := e.do(ctx, fmt.Sprintf("Detaching %s from network %d", e.called(), id), "network", id,
			func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
				return e.api.Server.DetachFromNetwork(ctx, &hcloud.Server{ID: e.server.ID},
					hcloud.ServerDetachFromNetworkOpts{Network: &hcloud.Network{ID: id}})
			},
			func() bool { return placeIn(e.server, id) == nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// placeIn is the server's place in a network, nil without one.
func placeIn(s *hcloud.Server, network int64) *hcloud.ServerPrivateNet {
	return s.PrivateNetFor(&hcloud.Network{ID: network})
}

// shownNetworks are the networks of a wish that the server is in, with the addresses that
// it has there, as far as the wish names any.
func shownNetworks(s *hcloud.Server, wished []any) []any {
	out := []any{}
	for _, w := range wished {
		values, ok := w.(backends.Values)
		if !ok {
			continue
		}
		id, ok := parseID(values.String("network_id"))
		if !ok {
			continue
		}
		now := placeIn(s, id)
		if now == nil {
			continue
		}
		shown := values.Clone()
		if values.Has("ip") {
			shown["ip"] = now.IP.String()
		}
		if values.Has("alias_ips") {
			aliases, here := []any{}, texts(now.Aliases)
			for _, alias := range values.Strings("alias_ips") {
				if slices.Contains(here, alias) {
					aliases = append(aliases, alias)
				}
			}
			shown["alias_ips"] = aliases
		}
		out = append(out, shown)
	}
	return out
}

func texts(ips []net.IP) []string {
	var out []string
	for _, ip := range ips {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap().String())
		}
	}
	return out
}

func sortedTexts(ips []net.IP) []string {
	out := texts(ips)
	slices.Sort(out)
	return out
}
