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

// snapshots are those of block volumes. They are there at once, stay in the volume's
// region, and outlive it.
type snapshots struct{ *Client }

var (
	_ backends.Snapshotter = (*Client)(nil)
	_ backends.Snapshots   = snapshots{}
	_ backends.OnePerKey   = snapshots{}
)

// Snapshots implements [backends.Snapshotter].
func (c *Client) Snapshots() backends.Snapshots { return snapshots{c} }

// OnePerKey implements [backends.OnePerKey]: names are unique on a volume.
func (snapshots) OnePerKey() {}

// Unfiltered implements [backends.Snapshots]: the API can't select by tags.
func (snapshots) Unfiltered() bool { return true }

// FixedMarks implements [backends.Snapshots].
func (snapshots) FixedMarks() bool { return false }

// CheckForm implements [backends.Snapshots]. The API takes any name.
func (snapshots) CheckForm(backends.SnapshotSpec) []*backends.Error { return nil }

type snapshotAnswer struct {
	Snapshot *godo.Snapshot `json:"snapshot"`
}

// Get implements [backends.Snapshots].
func (s snapshots) Get(ctx context.Context, id string) (backends.Snapshot, error) {
	found, err := s.get(ctx, "Reading snapshot "+id, id)
	if err != nil {
		return backends.Snapshot{}, err
	}
	return s.snapshot(found), nil
}

func (s snapshots) get(ctx context.Context, what, id string) (*godo.Snapshot, error) {
	if err := checkObject(what, id); err != nil {
		return nil, err
	}
	answer, err := call(ctx, s.Client, backends.Idempotent, what, request{method: http.MethodGet, path: at("snapshots", id)},
		func(a *snapshotAnswer) bool { return a.Snapshot != nil && a.Snapshot.ID == id })
	if err != nil {
		return nil, err
	}
	return answer.Snapshot, nil
}

// List implements [backends.Snapshots].
func (s snapshots) List(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Snapshot], error) {
	return s.list(ctx, "Listing the snapshots", at("snapshots"), url.Values{"resource_type": {"volume"}},
		func(o backends.Snapshot) bool { return filter.Holds(o.Marks) })
}

// OfVolume implements [backends.Snapshots]. The API lists those of a volume only as
// long as it has the volume.
func (s snapshots) OfVolume(ctx context.Context, volume string) ([]backends.Snapshot, error) {
	what := "Listing the snapshots of volume " + volume
	if err := checkObject(what, volume); err != nil {
		return nil, err
	}
	of := func(o backends.Snapshot) bool { return o.Volume == volume }
	found, err := s.list(ctx, what, at("volumes", volume, "snapshots"), nil, of)
	if backends.HasCode(err, backends.NotFound) {
		found, err = s.list(ctx, what, at("snapshots"), url.Values{"resource_type": {"volume"}}, of)
	}
	if err != nil {
		return nil, err
	}
	return backends.Objects(ctx, found)
}

// list are the snapshots of a query that are wanted.
func (s snapshots) list(ctx context.Context, what, path string, query url.Values,
	want func(backends.Snapshot) bool) (backends.Listing[backends.Snapshot], error) {
	found, err := pages(ctx, s.Client, what, path, query, "snapshots",
		func(o godo.Snapshot) bool { return isObject(o.ID) }, s.snapshot)
	if err != nil {
		return backends.Listing[backends.Snapshot]{}, err
	}
	return found.Only(want), nil
}

// snapshot is a snapshot in our words. What a volume made from it has is
// min_disk_size; size_gigabytes is what is stored, 0 at first (csi#298).
func (s snapshots) snapshot(o *godo.Snapshot) backends.Snapshot {
	out := backends.Snapshot{
		ID: o.ID, Name: o.Name, Kind: backends.BlockVolume, State: backends.StateReady, Volume: o.ResourceID,
		SizeGiB: int64(o.MinDiskSize), Created: created(o.Created),
		Marks: s.tags.read(o.Tags), Labels: s.tags.labels(o.Tags),
	}
	if len(o.Regions) > 0 {
		out.Region = o.Regions[0]
	}
	return out
}

// Mark implements [backends.Snapshots] by the tags that differ, as
// [Client.MarkMachine] does.
func (s snapshots) Mark(ctx context.Context, o backends.Snapshot, marks backends.Marks) (backends.Snapshot, error) {
	what := "Tagging " + calledSnapshot(o)
	if err := checkObject(what, o.ID); err != nil {
		return o, err
	}
	seen := o
	err := s.retag(ctx, what, tagged{godo.VolumeSnapshotResourceType, o.ID}, o.Marks, marks,
		func(ctx context.Context) ([]string, error) {
			found, err := s.get(ctx, what, o.ID)
			if err != nil {
				return nil, err
			}
			seen = s.snapshot(found)
			return found.Tags, nil
		})
	if err != nil {
		return seen, err
	}
	seen.Marks = backends.Marks{}
	if marks.Managed {
		seen.Marks = marks
	}
	return seen, nil
}

// Delete implements [backends.Snapshots].
func (s snapshots) Delete(ctx context.Context, o backends.Snapshot) error {
	what := "Deleting " + calledSnapshot(o)
	if err := checkObject(what, o.ID); err != nil {
		return err
	}
	return s.tell(ctx, what, request{method: http.MethodDelete, path: at("snapshots", o.ID)})
}

// calledSnapshot is a snapshot as messages name it.
func calledSnapshot(s backends.Snapshot) string {
	if s.Name == "" {
		return "snapshot " + s.ID
	}
	return fmt.Sprintf("snapshot %s (%s)", s.Name, s.ID)
}
