// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// TestRequestsFitTheDescription holds every kind of request of this backend
// against the vendor's API description.
func TestRequestsFitTheDescription(t *testing.T) {
	document := openapitest.Load(t, "hetzner.json")
	synctest.Test(t, func(t *testing.T) {
		cloud := emulated.New(emulated.Options{Boot: 4 * time.Second})
		net := makeNetwork(t, cloud, "main", "10.0.0.0/16", "10.0.1.0/24")
		firewall := objectID(t, post(t, cloud, "/firewalls", map[string]any{"name": "web"}), "firewall")
		key := makeKey(t, cloud, "laptop")
		checked := openapitest.Wrap(t, document, cloud, openapitest.Allow(openapitest.Deviation{
			Method: "POST", Path: "/servers", Contains: "ssh_keys",
			Why: "The description's text says ids are integers, as hcloud-go sends them; its schema has strings only.",
		}))
		c := clientOf(t, emulator.Transport(checked), &fixedSecrets{token: testToken})
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(c.Prove(ctx))
		spec := testSpec()
		spec.Options = backends.Values{
			"ssh_key_ids": []any{fmt.Sprint(key)}, "firewall_ids": []any{fmt.Sprint(firewall)}, "backups": true, "public_ipv4": false,
			"networks": []any{backends.Values{"network_id": fmt.Sprint(net), "ip": "10.0.1.9", "alias_ips": []any{"10.0.1.10"}}},
		}
		_, issues, err := c.CheckMachine(ctx, spec)
		must(err)
		if len(issues) > 0 {
			t.Fatal(issues)
		}
		m, err := c.MakeMachine(ctx, spec)
		must(err)
		m, err = c.FinishMachine(ctx, m, spec)
		must(err)
		marks := m.Marks
		marks.Complete = true
		m, err = c.MarkMachine(ctx, m, marks)
		must(err)
		time.Sleep(time.Minute) // of the bubble's clock: the server boots
		for _, action := range []backends.PowerAction{
			backends.PowerGracefulOff, backends.PowerOn, backends.PowerOff, backends.PowerReset, backends.PowerGracefulRestart,
		} {
			must(c.Power(ctx, m, action))
			time.Sleep(time.Minute) // of the bubble's clock
		}
		spec.Image = "161547269"
		must(c.Reinstall(ctx, m, spec))
		must(c.ReinstallWithUserData(ctx, m, spec))
		_, err = c.FindMachines(ctx, spec.Marks.Key)
		must(err)
		_, err = backends.ListAll(ctx, c.ListMachines, backends.Filter{Account: spec.Marks.Account, Pool: spec.Marks.Pool})
		must(err)
		must(c.Diagnose(ctx, m))
		must(c.Protect(ctx, m, true))
		must(c.Protect(ctx, m, false))
		spec.Image = "nope"
		if _, issues, err := c.CheckMachine(ctx, spec); err != nil || len(issues) != 1 {
			t.Errorf("%v, %v", issues, err)
		}
		spec = testSpec()
		if _, err := c.MakeMachine(ctx, spec); err == nil {
			t.Error("a second server of the same name")
		}
		must(c.DeleteMachine(ctx, m))
	})
}
