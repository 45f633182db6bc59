// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// network is one private network of a wish.
type network struct {
	id      int64
	ip      string
	aliases []string
	// namesAliases: the wish says something about aliases, be it that there are none.
	namesAliases bool
}

// networksOf are the networks that POST /servers can carry (ids only), and those
// that are attached afterwards: the first one with addresses of its own and all
// behind it, since the order of networks is the order of the guest's interfaces.
func networksOf(spec backends.MachineSpec) (now, later []network, err error) {
	if spec.Network != "" {
		id, ok := parseID(spec.Network)
		if !ok {
			return nil, nil, backends.Errorf(backends.InvalidInput, "%s", checkID(spec.Network)).At("network_id")
		}
		now = append(now, network{id: id})
	}
	for i, e := range spec.Options.List("networks") {
		values, ok := e.(backends.Values)
		if !ok {
			continue
		}
		id, err := optionID(values.String("network_id"), "networks", i, "network_id")
		if err != nil {
			return nil, nil, err
		}
		n := network{id: id, ip: values.String("ip"), aliases: values.Strings("alias_ips"), namesAliases: values.Has("alias_ips")}
		if n.ip == "" && len(n.aliases) == 0 && len(later) == 0 {
			now = append(now, n)
		} else {
			later = append(later, n)
		}
	}
	return now, later, nil
}

// allNetworks are the networks of a wish, in its order.
func allNetworks(spec backends.MachineSpec) ([]network, error) {
	now, later, err := networksOf(spec)
	return append(now, later...), err
}

// FinishMachine does what the making call has no field for: networks with
// addresses of their own, backups, and then the first start of a server that had
// to wait for its networks. It looks at the server and does only what is missing,
// so that a create that was interrupted anywhere is finished by calling it again;
// a wish without any of these costs no call. It returns the machine as last seen.
//
// It belongs between making and the wait for running, once the id is recorded,
// and likewise where a half-made machine is taken up again.
func (c *Client) FinishMachine(ctx context.Context, m backends.Machine, spec backends.MachineSpec) (backends.Machine, error) {
	_, later, err := networksOf(spec)
	if err != nil {
		return m, err
	}
	backups := spec.Options.Bool("backups")
	if len(later) == 0 && !backups {
		return m, nil
	}
	s, err := c.server(ctx, m.ID)
	if err != nil {
		return m, err
	}
	for _, n := range later {
		if s.PrivateNetFor(&hcloud.Network{ID: n.id}) != nil {
			continue
		}
		if err := c.attach(ctx, s, n); err != nil {
			return c.machine(s), err
		}
	}
	if backups && s.BackupWindow == "" {
		err := c.act(ctx, fmt.Sprintf("Switching on backups of server %s", s.Name),
			func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
				return c.api.Server.EnableBackup(ctx, s, "")
			}, waitForEnd)
		if err != nil {
			return c.machine(s), err
		}
	}
	if len(later) > 0 && spec.Start && s.Status != hcloud.ServerStatusRunning && s.Status != hcloud.ServerStatusStarting {
		if err := c.Power(ctx, c.machine(s), backends.PowerOn); err != nil {
			return c.machine(s), err
		}
	}
	last, err := c.GetMachine(ctx, m.ID)
	if err != nil {
		return c.machine(s), err
	}
	return last, nil
}

func (c *Client) attach(ctx context.Context, s *hcloud.Server, n network) error {
	opts, err := attachOpts(n)
	if err != nil {
		return err
	}
	err = c.act(ctx, fmt.Sprintf("Attaching server %s to network %d", s.Name, n.id),
		func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
			return c.api.Server.AttachToNetwork(ctx, s, opts)
		}, waitForEnd)
	switch {
	case hasAPICode(err, codeServerAttached):
		return nil // by an earlier try whose answer was lost
	case backends.HasCode(err, backends.NotFound):
		// The server was there a moment ago: it is the network that isn't.
		return missingObject(err, "network", n.id)
	}
	return err
}

// attachOpts are the call's input for a network.
func attachOpts(n network) (hcloud.ServerAttachToNetworkOpts, error) {
	opts := hcloud.ServerAttachToNetworkOpts{Network: &hcloud.Network{ID: n.id}}
	if n.ip != "" {
		opts.IP = net.ParseIP(n.ip)
		if opts.IP == nil {
			return opts, backends.Errorf(backends.InvalidInput, "%s", checkIPv4(n.ip)).At(attribute, "networks")
		}
	}
	for _, alias := range n.aliases {
		a, err := netip.ParseAddr(alias)
		if err != nil {
			return opts, backends.Errorf(backends.InvalidInput, "%s", checkIPv4(alias)).At(attribute, "networks")
		}
		opts.AliasIPs = append(opts.AliasIPs, a.AsSlice())
	}
	return opts, nil
}
