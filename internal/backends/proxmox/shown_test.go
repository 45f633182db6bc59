// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestShown: a VM that is taken over is compared with a wish by what it has. A wish that
// it fulfils already leads to no edit, another one to the edit of what differs.
func TestShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := emulate(t, emulated.Options{Pools: []string{"one", "two"}, Bridges: []string{"vmbr0", "vmbr1"}})
		spec := testSpec()
		spec.Labels = map[string]string{"role": "web", "blue": ""}
		spec.Network = "vmbr1"
		spec.Options = backends.Values{
			"node": "pve2", "cpu_type": "host", "on_boot": true, "tags": []any{"green", "x.y"}, "pool_id": "one",
			"ip_config":       []any{backends.Values{"ipv4": "10.0.0.5/24", "gateway": "10.0.0.1", "ipv6": "auto"}},
			"dns":             backends.Values{"servers": []any{"10.0.0.2", "10.0.0.3"}, "domain": "example.com"},
			"network_devices": []any{backends.Values{"model": "virtio", "vlan_id": int64(5), "firewall": true, "mtu": int64(1400)}, backends.Values{"model": "e1000", "bridge": "vmbr0", "mac_address": "bc:24:11:00:aa:01"}},
		}
		m := mustCreate(t, c, spec)
		other := func(options backends.Values) backends.MachineSpec { return with(spec, options) }
		changed := func(change func(*backends.MachineSpec)) backends.MachineSpec {
			s := with(spec, nil)
			change(&s)
			return s
		}
		for name, test := range map[string]struct {
			to   backends.MachineSpec
			want []string
		}{
			"the same":           {spec, nil},
			"none":               {changed(func(s *backends.MachineSpec) { s.Options, s.Labels, s.Network = nil, nil, "" }), nil},
			"fewer":              {changed(func(s *backends.MachineSpec) { s.Options = backends.Values{"cpu_type": "host"} }), nil},
			"where it was made":  {other(backends.Values{"node": "pve1", "vm_id": int64(4711)}), nil},
			"another name":       {changed(func(s *backends.MachineSpec) { s.Name = "web-1" }), []string{"name"}},
			"another label":      {changed(func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "db", "a": "b"} }), []string{"labels"}},
			"one of the labels":  {changed(func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web"} }), nil},
			"another bridge":     {changed(func(s *backends.MachineSpec) { s.Network = "vmbr0" }), []string{"network_id"}},
			"another CPU":        {other(backends.Values{"cpu_type": "kvm64"}), []string{"proxmox.cpu_type"}},
			"not on boot":        {other(backends.Values{"on_boot": false}), []string{"proxmox.on_boot"}},
			"another pool":       {other(backends.Values{"pool_id": "two"}), []string{"proxmox.pool_id"}},
			"one of the tags":    {other(backends.Values{"tags": []any{"x.y"}}), nil},
			"another tag":        {other(backends.Values{"tags": []any{"x.y", "red"}}), []string{"proxmox.tags"}},
			"another address":    {other(backends.Values{"ip_config": []any{backends.Values{"ipv4": "10.0.0.6/24"}}}), []string{"proxmox.ip_config"}},
			"one address more":   {other(backends.Values{"ip_config": append(slices.Clone(spec.Options.List("ip_config")), backends.Values{"ipv4": "dhcp"})}), []string{"proxmox.ip_config"}},
			"servers' order":     {other(backends.Values{"dns": backends.Values{"servers": []any{"10.0.0.3", "10.0.0.2"}}}), []string{"proxmox.dns"}},
			"only the domain":    {other(backends.Values{"dns": backends.Values{"domain": "example.com"}}), nil},
			"another VLAN":       {other(cardsOf(backends.Values{"model": "virtio", "vlan_id": int64(6)})), []string{"proxmox.network_devices"}},
			"the same VLAN":      {other(cardsOf(backends.Values{"model": "virtio", "vlan_id": int64(5)})), nil},
			"another MAC":        {other(cardsOf(backends.Values{"model": "virtio", "mac_address": "bc:24:11:00:aa:02"})), []string{"proxmox.network_devices"}},
			"one card more":      {other(cardsOf(backends.Values{"model": "virtio"}, backends.Values{"model": "e1000"}, backends.Values{"model": "virtio"})), []string{"proxmox.network_devices"}},
			"other capitals":     {other(cardsOf(backends.Values{"model": "virtio"}, backends.Values{"model": "e1000", "mac_address": "BC:24:11:00:AA:01"})), nil},
			"a card unprotected": {other(cardsOf(backends.Values{"model": "virtio", "firewall": false})), []string{"proxmox.network_devices"}},
		} {
			shown, err := c.Shown(t.Context(), m, test.to)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range c.PlanEdit(shown, test.to) {
				got = append(got, e.Path.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %v, want %v; shown %+v", name, got, test.want, shown)
			}
		}
		m.ID = "150"
		if _, err := c.Shown(t.Context(), m, spec); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("a container: %v", err)
		}
	})
}
