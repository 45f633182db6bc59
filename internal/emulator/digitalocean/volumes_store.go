// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// What this provider makes carries the tag; shares, which have no tags, a name
// with the prefix. The emulator knows them for the control API's "managed" alone.
const (
	managedTag    = "better-compute"
	managedPrefix = "bc-"
)

// volumeStore is the part of a project that holds volumes, their snapshots,
// shares and their snapshots, all by their ids.
type volumeStore struct {
	Volumes         map[string]*volume         `json:"volumes"`
	VolumeSnapshots map[string]*volumeSnapshot `json:"volume_snapshots"`
	Shares          map[string]*share          `json:"shares"`
	ShareSnapshots  map[string]*shareSnapshot  `json:"share_snapshots"`
	// NextShare numbers the shares' addresses.
	NextShare int `json:"next_share"`
}

// complete makes the maps that a snapshot left out.
func (v *volumeStore) complete() {
	ensure(&v.Volumes)
	ensure(&v.VolumeSnapshots)
	ensure(&v.Shares)
	ensure(&v.ShareSnapshots)
}

// volumeRoutes are those of volumes, snapshots and shares.
func volumeRoutes() []route {
	var all []route
	for _, area := range [][]route{blockRoutes(), snapshotRoutes(), shareRoutes()} {
		all = append(all, area...)
	}
	return all
}

// volumesOf are the ids of the volumes that are attached to a Droplet; never nil.
func (p *project) volumesOf(droplet int64) []string {
	ids := []string{}
	for _, v := range byAge(p.Volumes) {
		if v.Droplet == droplet {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// attachable refuses a volume that a new Droplet in the region can't have.
func (c *call) attachable(id, region string) error {
	v := c.p.Volumes[id]
	switch {
	case v == nil || c.missing(&v.object):
		return notFound()
	case c.p.taken(v):
		return alreadyAttached()
	case v.Region != region:
		return otherRegion()
	}
	return nil
}

// attachNow attaches a volume to a Droplet at once.
func (p *project) attachNow(id string, droplet int64) {
	if v := p.Volumes[id]; v != nil {
		v.Droplet = droplet
	}
}

// detachAll detaches all volumes of a Droplet that goes.
func (p *project) detachAll(droplet int64) {
	for _, id := range p.volumesOf(droplet) {
		p.Volumes[id].Droplet = 0
	}
}

// volumeTags finds the tags of a volume or volume snapshot; nil: there is none.
func (p *project) volumeTags(resourceType, id string) *object {
	switch resourceType {
	case tagVolume:
		if v := p.Volumes[id]; v != nil {
			return &v.object
		}
	case tagVolumeSnapshot:
		if s := p.VolumeSnapshots[id]; s != nil {
			return &s.object
		}
	}
	return nil
}

// eachVolumeObject calls for every volume and volume snapshot.
func (p *project) eachVolumeObject(do func(resourceType, id string, o *object)) {
	for _, v := range byAge(p.Volumes) {
		do(tagVolume, v.ID, &v.object)
	}
	for _, s := range byAge(p.VolumeSnapshots) {
		do(tagVolumeSnapshot, s.ID, &s.object)
	}
}

// deleteVolume and deleteVolumeSnapshot delete at once; an error says why not.
func (p *project) deleteVolume(id string) error {
	v := p.Volumes[id]
	switch {
	case v == nil:
		return notFound()
	case p.taken(v):
		return conflict("failed to delete volume: attached volume cannot be deleted")
	}
	delete(p.Volumes, id)
	return nil
}

func (p *project) deleteVolumeSnapshot(id string) error {
	if p.VolumeSnapshots[id] == nil {
		return notFound()
	}
	delete(p.VolumeSnapshots, id)
	return nil
}

// volumeAssociates are the volumes of a Droplet and the snapshots of those.
func (p *project) volumeAssociates(droplet int64) (volumes, snapshots []wireAssociate) {
	volumes, snapshots = []wireAssociate{}, []wireAssociate{}
	for _, id := range p.volumesOf(droplet) {
		v := p.Volumes[id]
		volumes = append(volumes, wireAssociate{ID: v.ID, Name: v.Name, Cost: monthly(v.Size, volumeCents)})
		for _, s := range p.snapshotsOf(id) {
			snapshots = append(snapshots, wireAssociate{ID: s.ID, Name: s.Name, Cost: monthly(s.MinDiskSize, snapshotCents)})
		}
	}
	return volumes, snapshots
}

// volumeRows adds the rows of the control API. Volumes and their snapshots have
// no status in this API; a volume's row says whether it is attached.
func (p *project) volumeRows(objects *emulator.Objects) {
	add := func(rows *[]emulator.Object, id, name, state string, managed bool) {
		*rows = append(*rows, emulator.Object{ID: id, Name: name, State: state, Managed: managed})
	}
	for _, v := range byAge(p.Volumes) {
		state := "available"
		if v.Droplet != 0 {
			state = "attached"
		}
		add(&objects.Volumes, v.ID, v.Name, state, v.hasTag(managedTag))
	}
	for _, s := range byAge(p.Shares) {
		add(&objects.Volumes, s.ID, s.Name, s.Status, strings.HasPrefix(s.Name, managedPrefix))
	}
	for _, s := range byAge(p.VolumeSnapshots) {
		add(&objects.Snapshots, s.ID, s.Name, "available", s.hasTag(managedTag))
	}
	for _, s := range byAge(p.ShareSnapshots) {
		add(&objects.Snapshots, s.ID, s.Name, s.Status, strings.HasPrefix(s.Name, managedPrefix))
	}
}
