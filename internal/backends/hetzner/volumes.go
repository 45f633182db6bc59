// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// volumes are the project's volumes. Hetzner has no snapshots of volumes and no
// shared volumes. It keeps no description either: that of a wish is dropped.
type volumes struct{ *Client }

var (
	_ backends.Volumer         = (*Client)(nil)
	_ backends.Volumes         = volumes{}
	_ backends.VolumeDiagnoser = volumes{}
	_ backends.OnePerKey       = volumes{}
)

// Volumes implements [backends.Volumer].
func (c *Client) Volumes() backends.Volumes { return volumes{c} }

// OnePerKey implements [backends.OnePerKey]: names are unique in a project.
func (volumes) OnePerKey() {}

// Unfiltered implements [backends.VolumeStore]: label selectors select.
func (volumes) Unfiltered() bool { return false }

// FixedMarks implements [backends.VolumeStore].
func (volumes) FixedMarks() bool { return false }

// Device implements [backends.Volumes]: the path is made from the volume's id.
func (volumes) Device(string) string { return "" }

// Get implements [backends.VolumeStore].
func (v volumes) Get(ctx context.Context, id string) (backends.Volume, error) {
	what := "Reading volume " + id
	number, err := objectNumber(what, id)
	if err != nil {
		return backends.Volume{}, err
	}
	found, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) (*hcloud.Volume, *hcloud.Response, error) { return v.read(ctx, number) })
	if err != nil {
		return backends.Volume{}, err
	}
	return v.volume(found), nil
}

// read asks for a volume once.
func (v volumes) read(ctx context.Context, id int64) (*hcloud.Volume, *hcloud.Response, error) {
	var body schema.VolumeGetResponse
	answer, err := send(ctx, v.api, http.MethodGet, fmt.Sprintf("/volumes/%d", id), nil, &body)
	if err == nil && succeeded(answer) && body.Volume.ID != id {
		err = errNoObject
	}
	return hcloud.VolumeFromSchema(body.Volume), answer, err
}

// List implements [backends.VolumeStore].
func (v volumes) List(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Volume], error) {
	selector, ok := v.marks.selectorOf(filter)
	if !ok {
		return backends.Whole[backends.Volume](nil), nil
	}
	return v.list(ctx, "Listing the volumes", hcloud.VolumeListOpts{ListOpts: hcloud.ListOpts{LabelSelector: selector}})
}

// Named implements [backends.VolumeStore]. Names are unique in a project.
func (v volumes) Named(ctx context.Context, name string) ([]backends.Volume, error) {
	found, err := v.list(ctx, "Looking for the volume named "+name, hcloud.VolumeListOpts{Name: name})
	if err != nil {
		return nil, err
	}
	// A server that ignores the filter must not vouch for the name.
	return backends.Objects(ctx, found.Only(func(v backends.Volume) bool { return v.Name == name }))
}

// list reads the first page, and the others when asked to, in the order of ids; see
// [Client.list].
func (v volumes) list(ctx context.Context, what string, opts hcloud.VolumeListOpts) (backends.Listing[backends.Volume], error) {
	return pages(ctx, what,
		func(ctx context.Context, number int) ([]backends.Volume, *hcloud.Response, error) {
			opts := opts
			opts.Page, opts.PerPage, opts.Sort = number, perPage, []string{"id:asc"}
			found, answer, err := v.api.Volume.List(ctx, opts)
			if err == nil && slices.ContainsFunc(found, func(o *hcloud.Volume) bool { return o.ID <= 0 }) {
				err = errNoObject
			}
			return turned(found, v.volume), answer, err
		})
}

// volume is a volume in our words.
func (v volumes) volume(o *hcloud.Volume) backends.Volume {
	state, message := volumeState(o.Status)
	out := backends.Volume{
		ID: strconv.FormatInt(o.ID, 10), Name: o.Name, Kind: backends.BlockVolume, State: state, Message: message,
		SizeGiB: int64(o.Size), Device: o.LinuxDevice, Protected: o.Protection.Delete, Created: o.Created,
		Marks: v.marks.read(o.Labels), Labels: v.marks.foreign(o.Labels),
	}
	if o.Location != nil {
		out.Region = o.Location.Name
	}
	if o.Server != nil && o.Server.ID > 0 {
		out.Machines = []string{strconv.FormatInt(o.Server.ID, 10)}
	}
	return out
}

func volumeState(status hcloud.VolumeStatus) (state backends.State, message string) {
	switch status {
	case hcloud.VolumeStatusAvailable:
		return backends.StateReady, ""
	case hcloud.VolumeStatusCreating:
		return backends.StatePending, ""
	default:
		return backends.StateUnknown, fmt.Sprintf("Hetzner Cloud reports a status of volumes that this version doesn't know: %q.",
			backends.Printable(string(status)))
	}
}

// calledVolume is a volume as messages name it.
func calledVolume(v backends.Volume) string {
	if v.Name == "" {
		return "volume " + v.ID
	}
	return fmt.Sprintf("volume %s (%s)", v.Name, v.ID)
}
