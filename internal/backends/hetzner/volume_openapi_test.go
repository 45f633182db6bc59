// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// TestVolumeRequestsFitTheDescription holds every kind of request about volumes
// against the vendor's API description.
func TestVolumeRequestsFitTheDescription(t *testing.T) {
	document := openapitest.Load(t, "hetzner.json")
	synctest.Test(t, func(t *testing.T) {
		checked := openapitest.Wrap(t, document, emulated.New(emulated.Options{Boot: 4 * time.Second}))
		c := clientOf(t, emulator.Transport(checked), &fixedSecrets{token: testToken})
		volumes := c.Volumes()
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // of the bubble's clock
		}
		m := made(t, c)
		for _, filesystem := range []string{"ext4", "none"} {
			spec := testVolume()
			spec.Filesystem, spec.Labels = filesystem, map[string]string{"role": "db"}
			v, err := volumes.Make(ctx, spec)
			must(err)
			v, err = volumes.Mark(ctx, v, v.Marks)
			must(err)
			must(volumes.Attach(ctx, v, m.ID))
			must(volumes.Resize(ctx, v, 20))
			_, err = backends.ListAll(ctx, volumes.List, backends.Filter{Account: spec.Marks.Account, Pool: spec.Marks.Pool})
			must(err)
			_, err = volumes.Named(ctx, spec.Name)
			must(err)
			must(volumes.(backends.VolumeDiagnoser).Diagnose(ctx, v))
			must(volumes.Detach(ctx, v, m.ID))
			must(volumes.Delete(ctx, v))
		}
	})
}
