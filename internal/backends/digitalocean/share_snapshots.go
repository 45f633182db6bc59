// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// shareSnapshots are those of NFS shares. Their names hold the marks as those of
// shares do, so that [backends.Snapshot.Name] isn't the name in the wish. They keep a
// share from being deleted, and no share is made from one.
type shareSnapshots struct{ *Client }

var (
	_ backends.SharedSnapshotter = (*Client)(nil)
	_ backends.Snapshots         = shareSnapshots{}
)

// SharedSnapshots implements [backends.SharedSnapshotter].
func (c *Client) SharedSnapshots() backends.Snapshots { return shareSnapshots{c} }

// FixedMarks implements [backends.Snapshots].
func (shareSnapshots) FixedMarks() bool { return true }

// Unfiltered implements [backends.Snapshots]: the API can't select by the marks.
func (shareSnapshots) Unfiltered() bool { return true }

// CheckForm implements [backends.Snapshots]. The name isn't sent.
func (shareSnapshots) CheckForm(backends.SnapshotSpec) []*backends.Error { return nil }

type shareSnapshotAnswer struct {
	Snapshot *godo.NfsSnapshot `json:"snapshot"`
}

// Get implements [backends.Snapshots].
func (s shareSnapshots) Get(ctx context.Context, id string) (backends.Snapshot, error) {
	what := "Reading share snapshot " + id
	if err := checkObject(what, id); err != nil {
		return backends.Snapshot{}, err
	}
	answer, err := call(ctx, s.Client, backends.Idempotent, what, request{method: http.MethodGet, path: at("nfs", "snapshots", id)},
		func(a *shareSnapshotAnswer) bool { return a.Snapshot != nil && a.Snapshot.ID == id })
	if err != nil {
		return backends.Snapshot{}, err
	}
	return shareSnapshot(answer.Snapshot), nil
}

// List implements [backends.Snapshots].
func (s shareSnapshots) List(ctx context.Context, filter backends.Filter) (backends.Listing[backends.Snapshot], error) {
	found, err := s.all(ctx, "Listing the share snapshots", nil, func(o backends.Snapshot) bool { return filter.Holds(o.Marks) })
	return backends.Whole(found), err
}

// OfVolume implements [backends.Snapshots].
func (s shareSnapshots) OfVolume(ctx context.Context, volume string) ([]backends.Snapshot, error) {
	what := "Listing the snapshots of share " + volume
	if err := checkObject(what, volume); err != nil {
		return nil, err
	}
	return s.all(ctx, what, url.Values{"share_id": {volume}}, func(o backends.Snapshot) bool { return o.Volume == volume })
}

// all are the snapshots of a query that are wanted.
func (s shareSnapshots) all(ctx context.Context, what string, query url.Values,
	want func(backends.Snapshot) bool) ([]backends.Snapshot, error) {
	found, err := nfsList(ctx, s.Client, what, at("nfs", "snapshots"), query, "snapshots", func(o godo.NfsSnapshot) string { return o.ID })
	return wanted(found, shareSnapshot, want), err
}

// shareSnapshot is a snapshot in our words.
func shareSnapshot(o *godo.NfsSnapshot) backends.Snapshot {
	out := backends.Snapshot{
		ID: o.ID, Name: o.Name, Kind: backends.SharedVolume, Volume: o.ShareID, SizeGiB: int64(o.SizeGib), Region: o.Region,
		Created: created(o.CreatedAt), Marks: namedMarks(idSnapshot, o.Name),
	}
	out.State, out.Message = shareSnapshotState(o.Status)
	out.Marks.Complete = out.Marks.Managed && o.Status == godo.NfsSnapshotActive
	return out
}

func shareSnapshotState(status godo.NfsSnapshotStatus) (state backends.State, message string) {
	switch status {
	case godo.NfsSnapshotCreating:
		return backends.StatePending, ""
	case godo.NfsSnapshotActive:
		return backends.StateReady, ""
	case godo.NfsSnapshotFailed:
		return backends.StateError, "DigitalOcean could not make the snapshot, and doesn't say why."
	case godo.NfsSnapshotDeleted:
		return backends.StateDeleted, ""
	case godo.NfsSnapshotUnknown, "":
		return backends.StateUnknown, "DigitalOcean doesn't know the snapshot's status."
	default:
		return backends.StateUnknown, fmt.Sprintf("DigitalOcean reports a status of snapshots that this version doesn't know: %q.",
			backends.Printable(string(status)))
	}
}

// Make implements [backends.Snapshots] by an action of the share, whose resource is
// the new snapshot.
func (s shareSnapshots) Make(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
	what := "Creating snapshot " + spec.Name + " of share " + spec.Volume
	if err := checkObject(what, spec.Volume); err != nil {
		return backends.Snapshot{}, plain(err).At("volume")
	}
	name, err := markedName(idSnapshot, spec.Marks)
	if err != nil {
		return backends.Snapshot{}, err
	}
	answer, err := call(ctx, s.Client, backends.Making, what, request{
		method: http.MethodPost, path: at("nfs", spec.Volume, "actions"),
		body: &godo.NfsActionRequest{Type: "snapshot", Region: spec.Region, Params: &godo.NfsSnapshotParams{Name: name}},
	}, (*nfsAction).good)
	if backends.HasCode(err, backends.NotFound) {
		// The snapshot doesn't exist yet: the share doesn't.
		e := plain(err)
		e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
		return backends.Snapshot{}, e.At("volume").WithRemedy("Check that the share %s still exists.", spec.Volume)
	}
	if err != nil {
		return backends.Snapshot{}, err
	}
	if err := answer.failed(what); err != nil {
		return backends.Snapshot{}, err
	}
	a := answer.Action
	if uuidForm.MatchString(a.ResourceID) && a.ResourceID != spec.Volume {
		made := backends.Snapshot{
			ID: a.ResourceID, Name: name, Kind: backends.SharedVolume, State: backends.StatePending,
			Volume: spec.Volume, Region: spec.Region, Marks: namedMarks(idSnapshot, name),
		}
		if a.StartedAt != nil {
			made.Created = a.StartedAt.Time
		}
		return made, nil
	}
	return s.named(ctx, what, spec.Volume, name)
}

// named is the share's newest snapshot with a name, for answers that don't say which
// one was made. Not to find it doesn't mean that there is none.
func (s shareSnapshots) named(ctx context.Context, what, volume, name string) (backends.Snapshot, error) {
	have, err := s.OfVolume(ctx, volume)
	have = slices.DeleteFunc(have, func(o backends.Snapshot) bool { return o.Name != name })
	if err != nil || len(have) == 0 {
		e := backends.Errorf(backends.ProviderError, "%s: the API accepted it, and doesn't say which snapshot it makes.", what)
		e.Ambiguous, e.Err = true, err
		return backends.Snapshot{}, e
	}
	return slices.MaxFunc(have, func(a, b backends.Snapshot) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}), nil
}

// Mark implements [backends.Snapshots]. A share snapshot's marks are in its name.
func (shareSnapshots) Mark(_ context.Context, o backends.Snapshot, _ backends.Marks) (backends.Snapshot, error) {
	return o, backends.Errorf(backends.Unsupported, "The marks of a share snapshot of DigitalOcean are in its name, which can't be changed.")
}

// Delete implements [backends.Snapshots].
func (s shareSnapshots) Delete(ctx context.Context, o backends.Snapshot) error {
	what := "Deleting share " + calledSnapshot(o)
	if err := checkObject(what, o.ID); err != nil {
		return err
	}
	return s.tell(ctx, what,
		request{method: http.MethodDelete, path: at("nfs", "snapshots", o.ID), query: inRegion(o.Region)})
}
