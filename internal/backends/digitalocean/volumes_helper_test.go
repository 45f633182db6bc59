// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"strconv"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func testVolume() backends.VolumeSpec {
	marks := testSpec().Marks
	marks.Key, marks.Digest, marks.GoesWithMachine = "pvol_0123456789abcdefghjkmnpqrs", "k123456-r99zzzz", true
	return backends.VolumeSpec{
		Name: "data", Kind: backends.BlockVolume, Region: "fra1", SizeGiB: 10, Filesystem: "xfs", Marks: marks,
	}
}

func madeVolume(t *testing.T, c *Client, change ...func(*backends.VolumeSpec)) backends.Volume {
	t.Helper()
	spec := testVolume()
	for _, f := range change {
		f(&spec)
	}
	v, err := c.Volumes().Make(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// again is the volume as the cloud shows it now.
func again(t *testing.T, store backends.VolumeStore, v backends.Volume) backends.Volume {
	t.Helper()
	v, err := store.Get(t.Context(), v.ID)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// madeDroplet is the id of a Droplet that the test makes by itself.
func madeDroplet(t *testing.T, cloud *emulated.Service, region string) string {
	t.Helper()
	made := send(t, cloud, "POST", "/v2/droplets", map[string]any{
		"name": "web", "region": region, "size": "s-1vcpu-1gb", "image": "ubuntu-24-04-x64",
	})
	return strconv.Itoa(int(field[float64](t, made, "droplet", "id")))
}

func droplet(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// madeVPC is the id of a VPC that the test makes by itself.
func madeVPC(t *testing.T, cloud *emulated.Service, name, region string) string {
	t.Helper()
	return field[string](t, send(t, cloud, "POST", "/v2/vpcs", map[string]any{"name": name, "region": region}), "vpc", "id")
}

func fault(t *testing.T, cloud *emulated.Service, rule emulator.Rule) {
	t.Helper()
	if err := cloud.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}
