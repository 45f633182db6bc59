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

// maxFirewalls is how many firewalls a server takes, those of label selectors included.
const maxFirewalls = 5

// firewalls applies the firewalls of the wish, and removes those of the earlier wish that
// are no longer in it. New ones come first, so that a server is never without, unless
// there is no room for them.
func (e *edit) firewalls(ctx context.Context) error {
	if !e.to.Options.Has("firewall_ids") {
		return nil
	}
	want, had := firewallsOf(e.to.Options), firewallsOf(e.from.Options)
	var coming, leaving []int64
	for _, id := range want {
		if !hasFirewall(e.server, id) {
			coming = append(coming, id)
		}
	}
	for _, id := range had {
		if hasFirewall(e.server, id) && !slices.Contains(want, id) {
			leaving = append(leaving, id)
		}
	}
	steps := []func() error{
		func() error { return e.applyFirewalls(ctx, coming) },
		func() error { return e.removeFirewalls(ctx, leaving) },
	}
	if len(e.server.PublicNet.Firewalls)+len(coming) > maxFirewalls {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (e *edit) applyFirewalls(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		err := e.do(ctx, fmt.Sprintf("Applying firewall %d to %s", id, e.called()), "firewall", id,
			func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
				return oneOf(e.api.Firewall.ApplyResources(ctx, &hcloud.Firewall{ID: id}, e.resource()))
			},
			func() bool { return hasFirewall(e.server, id) })
		if hasAPICode(err, codePrivateOnly) {
			refusal := plain(err)
			refusal.Remedy = "Firewalls work on public addresses: switch one on (public_ipv4, public_ipv6), or leave firewall_ids out."
			return refusal.At(attribute, "firewall_ids")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeFirewalls leaves what a label selector applies: that is another's doing, and the
// API doesn't take it off a single server.
func (e *edit) removeFirewalls(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		err := e.do(ctx, fmt.Sprintf("Removing firewall %d from %s", id, e.called()), "firewall", id,
			func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
				return oneOf(e.api.Firewall.RemoveResources(ctx, &hcloud.Firewall{ID: id}, e.resource()))
			},
			func() bool { return !hasFirewall(e.server, id) })
		if err != nil && !hasAPICode(err, codeBySelector) {
			return err
		}
	}
	return nil
}

// resource is the server as firewalls name what they are applied to.
func (e *edit) resource() []hcloud.FirewallResource {
	return []hcloud.FirewallResource{{
		Type: hcloud.FirewallResourceTypeServer, Server: &hcloud.FirewallResourceServer{ID: e.server.ID},
	}}
}

// oneOf is the one action about one server.
func oneOf(actions []*hcloud.Action, answer *hcloud.Response, err error) (*hcloud.Action, *hcloud.Response, error) {
	if err != nil || len(actions) == 0 {
		return nil, answer, err
	}
	return actions[0], answer, nil
}

func hasFirewall(s *hcloud.Server, id int64) bool {
	return slices.ContainsFunc(s.PublicNet.Firewalls, func(f *hcloud.ServerFirewallStatus) bool { return f.Firewall.ID == id })
}

// shownFirewalls are the firewalls of a wish that the server has.
func shownFirewalls(s *hcloud.Server, wished []any) []any {
	out := []any{}
	for _, w := range wished {
		text, _ := w.(string)
		if id, ok := parseID(text); ok && hasFirewall(s, id) {
			out = append(out, w)
		}
	}
	return out
}

// firewallsOf are the firewalls that options name, each once.
func firewallsOf(options backends.Values) []int64 {
	var out []int64
	for _, text := range options.Strings("firewall_ids") {
		if id, ok := parseID(text); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
