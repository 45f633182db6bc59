// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"strconv"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func testVolume() backends.VolumeSpec {
	marks := testSpec().Marks
	marks.Key, marks.Digest, marks.GoesWithMachine = "pvol_0123456789abcdefghjkmnpqrs", "k123456-r99zzzz", true
	return backends.VolumeSpec{
		Name: "data", Kind: backends.BlockVolume, Region: "fsn1", SizeGiB: 10, Filesystem: "xfs", Marks: marks,
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

func again(t *testing.T, c *Client, v backends.Volume) backends.Volume {
	t.Helper()
	v, err := c.Volumes().Get(t.Context(), v.ID)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func numberOf(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
