// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// deviations are those of the vendor's own client and of the real API, as the
// emulator lists them.
func deviations() []openapitest.Deviation {
	var out []openapitest.Deviation
	for _, d := range emulated.Deviations() {
		out = append(out, openapitest.Deviation(d))
	}
	return out
}

// TestMachineRequestsFitTheDescription holds every kind of request that machines need
// against the vendor's API description.
func TestMachineRequestsFitTheDescription(t *testing.T) {
	document := openapitest.Load(t, "digitalocean.json")
	synctest.Test(t, func(t *testing.T) {
		cloud := emulated.New(emulated.Options{Boot: 4 * time.Second})
		key := makeKey(t, cloud, "laptop")
		vpc := cloud.AddVPC("main", "fra1")
		checked := openapitest.Wrap(t, document, cloud, openapitest.Allow(deviations()...))
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
		spec.Network = vpc
		spec.Labels = map[string]string{"role": "web"}
		spec.UserData = "#!/bin/sh\ntrue"
		spec.Options = backends.Values{
			"ssh_key_ids": []any{key.id, key.fingerprint}, "tags": []any{"firewall"}, "ipv6": true, "monitoring": true, "droplet_agent": true,
			"backups": true, "backup_policy": backends.Values{"plan": "weekly", "weekday": "SUN", "hour": int64(0)},
		}
		_, issues, err := c.CheckMachine(ctx, spec)
		must(err)
		if len(issues) > 0 {
			t.Fatal(issues)
		}
		m, err := c.MakeMachine(ctx, spec)
		must(err)
		m, err = c.MarkMachine(ctx, m, completed(m))
		must(err)
		taken := m.Marks
		taken.Claim, taken.Digest = "n3w", "i999999"
		m, err = c.MarkMachine(ctx, m, taken)
		must(err)
		time.Sleep(time.Minute) // of the bubble's clock: the Droplet boots
		for _, action := range []backends.PowerAction{
			backends.PowerGracefulOff, backends.PowerOn, backends.PowerOff, backends.PowerReset, backends.PowerGracefulRestart,
		} {
			must(c.Power(ctx, m, action))
			time.Sleep(time.Minute) // of the bubble's clock
		}
		must(c.Reinstall(ctx, m, spec))
		spec.Image = "195932981"
		must(c.Reinstall(ctx, m, spec))
		edited := spec
		edited.Name, edited.Labels, edited.Options, edited.Marks = "api-0", map[string]string{"role": "api"}, spec.Options.Clone(), taken
		edited.Options["backup_policy"] = backends.Values{"plan": "daily", "hour": int64(4)}
		_, err = c.Shown(ctx, m, edited)
		must(err)
		_, err = c.Edit(ctx, m, spec, edited, nil)
		must(err)
		edited.Options = backends.Values{"backups": false}
		_, err = c.Edit(ctx, m, edited, edited, nil)
		must(err)
		edited.Options, edited.Offer = backends.Values{"backups": true}, "s-2vcpu-4gb"
		_, err = c.Edit(ctx, m, edited, edited, nil)
		must(err)
		must(c.Protect(ctx, m, true))
		must(c.Protect(ctx, m, false))
		downs := 0
		_, err = c.Resize(ctx, m, edited, true, powerDown(t, c, m, &downs))
		must(err)
		_, err = c.FindMachines(ctx, spec.Marks.Key)
		must(err)
		_, err = backends.ListAll(ctx, c.ListMachines, backends.Filter{Account: spec.Marks.Account, Pool: spec.Marks.Pool})
		must(err)
		must(c.Diagnose(ctx, m))
		// By its id, with the least of options, and what isn't there.
		plain := testSpec()
		plain.Image = "195932981"
		second, err := c.MakeMachine(ctx, plain)
		must(err)
		time.Sleep(time.Minute) // of the bubble's clock
		_, err = c.Edit(ctx, second, plain, func() backends.MachineSpec { plain.Options = backends.Values{"ipv6": true}; return plain }(), nil)
		must(err)
		spec.Image = "nope"
		spec.Options = backends.Values{"ssh_key_ids": []any{"4711"}}
		if _, issues, err := c.CheckMachine(ctx, spec); err != nil || len(issues) != 2 {
			t.Errorf("%v, %v", issues, err)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		got := send(t, cloud, "POST", "/v2/volumes", map[string]any{"name": "data", "region": "fra1", "size_gigabytes": 10})
		volume := field[string](t, got, "volume", "id")
		cloud.AttachVolume(volume, number(t, second))
		must(c.DeleteMachineWith(ctx, second, []backends.Volume{{ID: volume}}))
		must(c.Diagnose(ctx, second))
		must(c.DeleteMachine(ctx, m))
		time.Sleep(time.Minute) // of the bubble's clock
		must(c.Tidy(ctx, taken))
		if len(cloud.Droplets())+len(cloud.Volumes()) > 0 {
			t.Error("something is left")
		}
	})
}
