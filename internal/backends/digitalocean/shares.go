// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// shares are the team's NFS shares. Each is attached to a VPC, all of whose Droplets
// can mount it; nothing is known of those that do. Names aren't unique, and hold the
// marks (see [markedName]): so [backends.Volume.Name] of a share is the cloud's name,
// which isn't the one in the wish.
type shares struct{ *Client }

var (
	_ backends.SharedVolumer   = (*Client)(nil)
	_ backends.VolumeStore     = shares{}
	_ backends.VolumeDiagnoser = shares{}
)

// SharedVolumes implements [backends.SharedVolumer].
func (c *Client) SharedVolumes() backends.VolumeStore { return shares{c} }

// Unfiltered implements [backends.VolumeStore]: the API selects by the whole name.
func (shares) Unfiltered() bool { return true }

// FixedMarks implements [backends.VolumeStore].
func (shares) FixedMarks() bool { return true }

// nfsInactive is the status of a share that is attached to no VPC; godo has no
// constant for it (OpenAPI, nfs_response).
const nfsInactive = godo.NfsShareStatus("INACTIVE")

type shareAnswer struct {
	Share *godo.Nfs `json:"share"`
}

// Get implements [backends.VolumeStore]. Requests about one share may name its
// region, which older versions of the API wanted; here it isn't known.
func (s shares) Get(ctx context.Context, id string) (backends.Volume, error) {
	what := "Reading share " + id
	if err := checkObject(what, id); err != nil {
		return backends.Volume{}, err
	}
	answer, err := call(ctx, s.Client, backends.Idempotent, what, request{method: http.MethodGet, path: at("nfs", id)},
		func(a *shareAnswer) bool { return a.Share != nil && a.Share.ID == id })
	if err != nil {
		return backends.Volume{}, err
	}
	return share(answer.Share), nil
}

// List implements [backends.VolumeStore].
func (s shares) List(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Volume], error) {
	found, err := s.all(ctx, "Listing the shares", nil, func(v backends.Volume) bool { return filter.Holds(v.Marks) })
	return backends.Whole(found), err
}

// Named implements [backends.VolumeStore] by the name in the cloud.
func (s shares) Named(ctx context.Context, name string) ([]backends.Volume, error) {
	return s.all(ctx, "Looking for the share named "+name, url.Values{"name": {name}},
		func(v backends.Volume) bool { return v.Name == name })
}

// all are the shares of a query that are wanted.
func (s shares) all(ctx context.Context, what string, query url.Values, want func(backends.Volume) bool) ([]backends.Volume, error) {
	found, err := nfsList(ctx, s.Client, what, at("nfs"), query, "shares", func(o godo.Nfs) string { return o.ID })
	return wanted(found, share, want), err
}

// share is a share in our words.
func share(o *godo.Nfs) backends.Volume {
	v := backends.Volume{
		ID: o.ID, Name: o.Name, Kind: backends.SharedVolume, SizeGiB: int64(o.SizeGib), Region: o.Region,
		Created: created(o.CreatedAt), Marks: namedMarks(idShare, o.Name),
	}
	v.State, v.Message = shareState(o.Status)
	if len(o.VpcIDs) > 0 {
		v.Network = o.VpcIDs[0]
	}
	if o.Host != "" && o.MountPath != "" {
		v.Mount = &backends.Mount{Source: o.Host + ":" + o.MountPath, Type: "nfs4"}
	}
	if v.Marks.Managed {
		v.Marks.Digest = shareDigest(v.Marks.Key, v.Region, v.Network)
		// A share that was in use once is never half made, whatever becomes of it: a
		// half-made one may be deleted and made anew.
		v.Marks.Complete = o.Status == godo.NfsShareActive || o.Status == nfsInactive || v.Mount != nil
	}
	return v
}

// shareDigest is the digest of what a share shows. It is that of the wish it was made
// from: a share has no filesystem.
func shareDigest(key, region, network string) string {
	return backends.Digest(key, map[backends.DigestField]string{
		backends.DigestKind:    string(backends.SharedVolume),
		backends.DigestRegion:  region,
		backends.DigestNetwork: network,
	})
}

func shareState(status godo.NfsShareStatus) (state backends.State, message string) {
	switch status {
	case godo.NfsShareCreating:
		return backends.StatePending, ""
	case godo.NfsShareActive:
		return backends.StateReady, ""
	case nfsInactive:
		return backends.StateError, "The share is attached to no VPC, so that nothing can mount it. Attach it to its VPC in the DigitalOcean control panel."
	case godo.NfsShareFailed:
		return backends.StateError, "DigitalOcean could not make the share, and doesn't say why."
	case godo.NfsShareDeleted:
		return backends.StateDeleted, ""
	default:
		return backends.StateUnknown, fmt.Sprintf("DigitalOcean reports a status of shares that this version doesn't know: %q.",
			backends.Printable(string(status)))
	}
}
