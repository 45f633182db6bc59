// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// The uris of an account and a pool at DigitalOcean, whose token is [token].
const (
	oceanQuery      = "?region=fra1&token=env://" + tokenVariable
	oceanAccountURI = "digitalocean://root/main" + oceanQuery
	oceanPoolURI    = "digitalocean://root/main/web" + oceanQuery

	// oceanShareRegion is one of the regions with shares.
	oceanShareRegion = "nyc2"
)

// ocean is a provider with both clouds, of which DigitalOcean is used.
type ocean struct {
	*world
	cloud *oceanemulator.Service
}

// newOcean is a world whose DigitalOcean makes snapshots as often as it is asked,
// unless options say otherwise.
func newOcean(t *testing.T, options oceanemulator.Options) *ocean {
	t.Helper()
	if options.SnapshotInterval == 0 {
		options.SnapshotInterval = -1
	}
	o := &ocean{world: &world{t: t, hetzner: hetzneremulator.New(hetzneremulator.Options{})}, cloud: oceanemulator.New(options)}
	clouds, err := backends.NewRegistry(
		hetzner.New(hetzner.Options{Transport: emulator.Transport(o.hetzner)}),
		digitalocean.New(digitalocean.Options{Transport: emulator.Transport(o.cloud)}),
	)
	if err != nil {
		t.Fatal(err)
	}
	o.clouds = clouds
	return o
}

// oceanPool is the configuration of an account and a pool at DigitalOcean; lines are
// put into the pool.
func oceanPool(lines ...string) string {
	return oceanAccountOf("env://"+tokenVariable) + fmt.Sprintf(`
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
  %s
}
`, strings.Join(lines, "\n  "))
}

func oceanAccountOf(token string) string {
	return fmt.Sprintf(`
resource "bettercompute_provider_account" "main" {
  name = "main"
  digitalocean = {
    token  = %q
    region = "fra1"
  }
}
`, token)
}

// changes are the calls since the last time that change something, as
// "POST /v2/volumes".
func (o *ocean) changes() []string {
	var out []string
	for _, c := range o.cloud.Calls() {
		if c.Method != http.MethodGet {
			out = append(out, c.Method+" "+c.Path)
		}
	}
	o.cloud.ClearCalls()
	return out
}

// backendOf is the backend of a pool's account, beside the provider.
func (w *world) backendOf(poolURI string) (reference.Reference, backends.Backend) {
	w.t.Helper()
	pool, err := reference.ParseKind(w.clouds, reference.KindPool, poolURI)
	if err != nil {
		w.t.Fatal(err)
	}
	backend, err := pool.Definition().Create(pool.FullConfig(), backends.Environment{Secrets: fixedSecrets{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	return pool, backend
}

// makeVolume makes a block volume behind the provider's back that carries the marks
// of a pool's, complete, as another state's would.
func (w *world) makeVolume(poolURI, region, name string) backends.Volume {
	w.t.Helper()
	pool, backend := w.backendOf(poolURI)
	volumer, ok := backend.(backends.Volumer)
	if !ok {
		w.t.Fatalf("%s has no volumes", pool.Cloud)
	}
	v, err := volumer.Volumes().Make(w.t.Context(), backends.VolumeSpec{
		Name: name, Kind: backends.BlockVolume, Region: region, SizeGiB: 10,
		Marks: backends.Marks{Managed: true, Key: pool.VolumeRef(name).ID(), Account: pool.AccountID(), Pool: pool.PoolID(), Claim: "another-states"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	marks := v.Marks
	marks.Complete = true
	if v, err = volumer.Volumes().Mark(w.t.Context(), v, marks); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// makeSnapshot makes a snapshot of a volume behind the provider's back; marked with
// what a pool's carries.
func (o *ocean) makeSnapshot(v backends.Volume, name string, marked bool) backends.Snapshot {
	o.t.Helper()
	pool, backend := o.backendOf(oceanPoolURI)
	snapshotter, ok := backend.(backends.Snapshotter)
	if !ok {
		o.t.Fatalf("%s has no snapshots", pool.Cloud)
	}
	spec := backends.SnapshotSpec{Name: name, Volume: v.ID, Region: v.Region}
	if marked {
		spec.Marks = backends.Marks{
			Managed: true, Key: pool.VolumeRef(v.Name).SnapshotRef(name).ID(), Account: pool.AccountID(), Pool: pool.PoolID(),
			Claim: "another-states", Volume: v.Name,
		}
	}
	s, err := snapshotter.Snapshots().Make(o.t.Context(), spec)
	if err != nil {
		o.t.Fatal(err)
	}
	if !marked {
		o.cloud.SetVolumeSnapshotTags(s.ID)
		return s
	}
	marks := s.Marks
	marks.Complete = true
	if s, err = snapshotter.Snapshots().Mark(o.t.Context(), s, marks); err != nil {
		o.t.Fatal(err)
	}
	return s
}

// noSnapshots fails when the cloud has snapshots, after a destroy.
func (o *ocean) noSnapshots(*terraform.State) error {
	if left := o.cloud.VolumeSnapshots(); len(left) > 0 {
		return fmt.Errorf("the cloud still has %+v", left)
	}
	return nil
}

// oneSnapshot is the one snapshot of the cloud.
func (o *ocean) oneSnapshot() oceanemulator.VolumeSnapshot {
	o.t.Helper()
	all := o.cloud.VolumeSnapshots()
	if len(all) != 1 {
		o.t.Fatalf("the cloud has %d snapshots: %+v", len(all), all)
	}
	return all[0]
}

// makeShare makes a share behind the provider's back that carries the marks of a
// pool's, as another state's would.
func (o *ocean) makeShare(name string) backends.Volume {
	o.t.Helper()
	pool, backend := o.backendOf(oceanPoolURI)
	volumer, ok := backend.(backends.SharedVolumer)
	if !ok {
		o.t.Fatalf("%s has no shared volumes", pool.Cloud)
	}
	vpc := o.cloud.AddVPC("files", oceanShareRegion)
	v, err := volumer.SharedVolumes().Make(o.t.Context(), backends.VolumeSpec{
		Name: name, Kind: backends.SharedVolume, Region: oceanShareRegion, SizeGiB: 50, Network: vpc,
		Marks: backends.Marks{
			Managed: true, Key: pool.VolumeRef(name).ID(), Account: pool.AccountID(), Pool: pool.PoolID(), Claim: "anotherstatesclaim",
		},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}
