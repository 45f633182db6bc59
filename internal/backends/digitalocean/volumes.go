// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// volumes are the team's block volumes. Their names are unique in a region. The API
// gives them no status: a volume that is there is ready.
type volumes struct{ *Client }

var (
	_ backends.Volumer         = (*Client)(nil)
	_ backends.Volumes         = volumes{}
	_ backends.VolumeDiagnoser = volumes{}
)

// Volumes implements [backends.Volumer].
func (c *Client) Volumes() backends.Volumes { return volumes{c} }

// Unfiltered implements [backends.VolumeStore]: the API can't select by tags.
func (volumes) Unfiltered() bool { return true }

// FixedMarks implements [backends.VolumeStore].
func (volumes) FixedMarks() bool { return false }

// Device implements [backends.Volumes] by the path that the vendor's guides give
// (https://docs.digitalocean.com/products/volumes, "mount"): the API doesn't show it.
func (volumes) Device(name string) string {
	if name == "" {
		return ""
	}
	return "/dev/disk/by-id/scsi-0DO_Volume_" + name
}

type volumeAnswer struct {
	Volume *godo.Volume `json:"volume"`
}

// Get implements [backends.VolumeStore].
func (v volumes) Get(ctx context.Context, id string) (backends.Volume, error) {
	what := "Reading volume " + id
	var found *godo.Volume
	err := backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) (err error) {
		found, err = v.read(ctx, what, id)
		return err
	})
	if err != nil {
		return backends.Volume{}, err
	}
	return v.volume(found), nil
}

// read asks for a volume once.
func (v volumes) read(ctx context.Context, what, id string) (*godo.Volume, error) {
	if err := checkObject(what, id); err != nil {
		return nil, err
	}
	var answer volumeAnswer
	err := v.try(ctx, what, request{method: http.MethodGet, path: at("volumes", id)}, &answer,
		func() bool { return answer.Volume != nil && answer.Volume.ID == id })
	return answer.Volume, err
}

// List implements [backends.VolumeStore].
func (v volumes) List(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Volume], error) {
	return v.list(ctx, "Listing the volumes", nil, func(o backends.Volume) bool { return filter.Holds(o.Marks) })
}

// Named implements [backends.VolumeStore]: at most one volume per region.
func (v volumes) Named(ctx context.Context, name string) ([]backends.Volume, error) {
	found, err := v.list(ctx, "Looking for the volume named "+name, url.Values{"name": {name}},
		func(o backends.Volume) bool { return o.Name == name })
	if err != nil {
		return nil, err
	}
	return backends.Objects(ctx, found)
}

// list are the volumes of a query that are wanted.
func (v volumes) list(ctx context.Context, what string, query url.Values, want func(backends.Volume) bool) (
	backends.Listing[backends.Volume], error) {
	found, err := pages(ctx, v.Client, what, at("volumes"), query, "volumes",
		func(o godo.Volume) bool { return isObject(o.ID) }, v.volume)
	if err != nil {
		return backends.Listing[backends.Volume]{}, err
	}
	return found.Only(want), nil
}

// volume is a volume in our words.
func (v volumes) volume(o *godo.Volume) backends.Volume {
	out := backends.Volume{
		ID: o.ID, Name: o.Name, Kind: backends.BlockVolume, State: backends.StateReady, SizeGiB: o.SizeGigaBytes,
		Device: v.Device(o.Name), URN: "do:volume:" + o.ID, Created: o.CreatedAt,
		Protected: v.tags.isProtected(o.Tags),
		Marks:     v.tags.read(o.Tags), Labels: v.tags.labels(o.Tags),
	}
	if o.Region != nil {
		out.Region = o.Region.Slug
	}
	for _, id := range o.DropletIDs {
		if machine := strconv.Itoa(id); id > 0 && !slices.Contains(out.Machines, machine) {
			out.Machines = append(out.Machines, machine)
		}
	}
	return out
}

// calledVolume is a volume as messages name it.
func calledVolume(v backends.Volume) string {
	noun := "volume"
	if v.Kind == backends.SharedVolume {
		noun = "share"
	}
	if v.Name == "" {
		return noun + " " + v.ID
	}
	return fmt.Sprintf("%s %s (%s)", noun, v.Name, v.ID)
}
