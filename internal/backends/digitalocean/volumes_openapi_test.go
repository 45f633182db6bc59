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

// TestVolumeRequestsFitTheDescription holds every kind of request about volumes,
// shares and their snapshots against the vendor's API description.
func TestVolumeRequestsFitTheDescription(t *testing.T) {
	document := openapitest.Load(t, "digitalocean.json")
	synctest.Test(t, func(t *testing.T) {
		cloud := emulated.New(emulated.Options{Boot: 4 * time.Second, SnapshotInterval: -1})
		m, vpc := madeDroplet(t, cloud, "fra1"), madeVPC(t, cloud, "main", shareRegion)
		const godoPages = "godo pages through shares and their snapshots, and selects shares by name"
		checked := openapitest.Wrap(t, document, cloud, openapitest.Allow(
			openapitest.Deviation{Method: "GET", Path: "/v2/nfs", Contains: "page: is not in the description", Why: godoPages},
			openapitest.Deviation{Method: "GET", Path: "/v2/nfs", Contains: "query name: is not in the description", Why: godoPages},
			openapitest.Deviation{Method: "GET", Path: "/v2/nfs/snapshots", Contains: "page: is not in the description", Why: godoPages},
			openapitest.Deviation{
				Method: "DELETE", Path: "/v2/nfs/{nfs_id}", Contains: "missing properties 'id', 'message'",
				Why: "godo's tests have an answer of 200 with the share, the description 204",
			},
		))
		c := clientOf(t, emulator.Transport(checked), &fixedSecrets{token: testToken})
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // of the bubble's clock
		}
		filter := backends.Filter{Pool: testSpec().Marks.Pool}

		volumes, snapshots := c.Volumes(), c.Snapshots()
		spec := testVolume()
		spec.Description, spec.Options = "the data", backends.Values{"tags": []any{"raw"}, "filesystem_label": "data"}
		_, err := volumes.Check(ctx, spec)
		must(err)
		v, err := volumes.Make(ctx, spec)
		must(err)
		marks := v.Marks
		marks.Complete = true
		v, err = volumes.Mark(ctx, v, marks)
		must(err)
		marks.Claim = "another"
		v, err = volumes.Mark(ctx, v, marks)
		must(err)
		must(volumes.Attach(ctx, v, m))
		must(volumes.Resize(ctx, v, 20))
		must(volumes.(backends.VolumeDiagnoser).Diagnose(ctx, v))
		must(volumes.Detach(ctx, v, m))
		_, err = backends.ListAll(ctx, volumes.List, filter)
		must(err)
		_, err = volumes.Named(ctx, spec.Name)
		must(err)
		s, err := snapshots.Make(ctx, testSnapshot(v))
		must(err)
		restored := testVolume()
		restored.Name, restored.Restores, restored.Snapshot = "restored", true, s.ID
		_, err = volumes.Make(ctx, restored)
		must(err)
		_, err = backends.ListAll(ctx, snapshots.List, filter)
		must(err)
		_, err = snapshots.OfVolume(ctx, v.ID)
		must(err)
		_, err = snapshots.Get(ctx, s.ID)
		must(err)
		marks = s.Marks
		marks.Complete = true
		s, err = snapshots.Mark(ctx, s, marks)
		must(err)
		must(snapshots.Delete(ctx, s))
		must(volumes.Delete(ctx, v))

		shares, snapshots := c.SharedVolumes(), c.SharedSnapshots()
		_, err = shares.Check(ctx, testShare(vpc))
		must(err)
		v, err = shares.Make(ctx, testShare(vpc))
		must(err)
		v, err = shares.Get(ctx, v.ID)
		must(err)
		must(shares.Resize(ctx, v, 60))
		_, err = backends.ListAll(ctx, shares.List, filter)
		must(err)
		_, err = shares.Named(ctx, v.Name)
		must(err)
		s, err = snapshots.Make(ctx, testShareSnapshot(v))
		must(err)
		s, err = snapshots.Get(ctx, s.ID)
		must(err)
		_, err = backends.ListAll(ctx, snapshots.List, filter)
		must(err)
		_, err = snapshots.OfVolume(ctx, v.ID)
		must(err)
		must(snapshots.Delete(ctx, s))
		must(shares.Delete(ctx, v))
	})
}
