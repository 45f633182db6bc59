// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/pveapitest"
)

// TestRequestsFitTheDescription holds every kind of request against the vendor's API
// description.
func TestRequestsFitTheDescription(t *testing.T) {
	document := pveapitest.Load(t)
	var deviations []pveapitest.Deviation
	for _, d := range emulated.Deviations() {
		deviations = append(deviations, pveapitest.Deviation(d))
	}
	synctest.Test(t, func(t *testing.T) {
		cluster, err := emulated.New(emulated.Options{PlainHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		c := clientOf(t, document.Wrap(t, emulator.Transport(cluster), deviations...), backends.Values{"pool": "tofu", "storage": "shared"})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx := t.Context()
		must(c.Prove(ctx))
		spec := testSpec()
		spec.Offer = "2c-4g-20d"
		spec.Network = "vmbr0"
		spec.SSHKeys = []string{"ssh-ed25519 AAAA+/= me@here"}
		spec.Labels = map[string]string{"role": "web"}
		spec.Options = backends.Values{
			"node": "pve2", "cpu_type": "host", "on_boot": true, "tags": []any{"blue"},
			"ip_config":       []any{backends.Values{"ipv4": "10.0.0.5/24", "gateway": "10.0.0.1", "ipv6": "auto"}},
			"dns":             backends.Values{"servers": []any{"1.1.1.1", "2606:4700:4700::1111"}, "domain": "example.com"},
			"network_devices": []any{backends.Values{"model": "virtio", "vlan_id": int64(5), "firewall": true, "mtu": int64(1)}},
		}
		_, issues, err := c.CheckMachine(ctx, spec)
		must(err)
		if len(issues) > 0 {
			t.Fatal(issues)
		}
		m := mustCreate(t, c, spec)
		_, err = c.ReadAddresses(ctx, m)
		must(err)
		_, err = c.GetMachine(ctx, m.ID)
		must(err)
		_, err = c.GetMachine(ctx, "999")
		wantCode(t, err, backends.NotFound)
		_, err = backends.ListAll(ctx, c.ListMachines, backends.Filter{})
		must(err)
		_, err = c.FindMachines(ctx, testKey)
		must(err)
		marks := m.Marks
		marks.Claim = "another"
		m, err = c.MarkMachine(ctx, m, marks)
		must(err)
		for _, action := range []backends.PowerAction{
			backends.PowerReset, backends.PowerGracefulRestart, backends.PowerCycle, backends.PowerOff, backends.PowerOn, backends.PowerGracefulOff,
		} {
			must(c.Power(ctx, m, action))
		}
		must(c.Protect(ctx, m, true))
		must(c.Reinstall(ctx, m, spec))
		must(c.Protect(ctx, m, false))
		must(c.DeleteMachine(ctx, m))
	})
}
