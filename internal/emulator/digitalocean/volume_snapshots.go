// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"net/http"
	"slices"
	"time"
)

// snapshotsPerVolume is DigitalOcean's documented limit.
const snapshotsPerVolume = 25

// volumeSnapshot is the snapshot of a volume, which it survives.
type volumeSnapshot struct {
	object
	ID     string `json:"id"`
	Name   string `json:"name"`
	Volume string `json:"volume"`
	Region string `json:"region"`
	// MinDiskSize is the volume's size at that time, in GiB.
	MinDiskSize int `json:"min_disk_size"`
	// Sized is when the size of its data is known; until then that is 0.
	Sized           time.Time `json:"sized"`
	FilesystemType  string    `json:"filesystem_type"`
	FilesystemLabel string    `json:"filesystem_label"`
}

// usedShare is the part of a volume that is taken to be used.
const usedShare = 0.1

func snapshotRoutes() []route {
	return []route{
		{"GET", "/volumes/{id}/snapshots", http.StatusOK, listVolumeSnapshots},
		{"POST", "/volumes/{id}/snapshots", http.StatusCreated, createVolumeSnapshot},
		{"GET", "/volumes/snapshots/{id}", http.StatusOK, getVolumeSnapshot},
		{"DELETE", "/volumes/snapshots/{id}", http.StatusNoContent, deleteVolumeSnapshot},
		{"GET", "/snapshots", http.StatusOK, listSnapshots},
		{"GET", "/snapshots/{id}", http.StatusOK, getSnapshot},
		{"DELETE", "/snapshots/{id}", http.StatusNoContent, deleteSnapshot},
	}
}

func (c *call) wireVolumeSnapshot(s *volumeSnapshot) wireSnapshot {
	w := wireSnapshot{
		ID: s.ID, Name: s.Name, CreatedAt: stamp(s.Created), Regions: []string{s.Region}, MinDiskSize: s.MinDiskSize,
		ResourceID: s.Volume, ResourceType: tagVolume, Tags: s.tags(),
	}
	if !c.now.Before(s.Sized) {
		w.SizeGigabytes = usedShare * float64(s.MinDiskSize)
	}
	return w
}

// snapshotsOf are a volume's snapshots, the oldest first.
func (p *project) snapshotsOf(volume string) []*volumeSnapshot {
	return slices.DeleteFunc(byAge(p.VolumeSnapshots), func(s *volumeSnapshot) bool { return s.Volume != volume })
}

// listVolumeSnapshots works as long as the volume is there.
func listVolumeSnapshots(c *call) (any, error) {
	v, err := c.volume()
	if err != nil {
		return nil, err
	}
	return list(c, "snapshots", visible(c, c.p.snapshotsOf(v.ID)), func(s *volumeSnapshot) any { return c.wireVolumeSnapshot(s) })
}

// createVolumeSnapshot is synchronous. A call too soon after another is refused
// before anything else is looked at, even that the name is taken (which of the
// two the real API checks first isn't known).
func createVolumeSnapshot(c *call) (any, error) {
	v, err := c.volume()
	if err != nil {
		return nil, err
	}
	var request struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if interval := c.s.options.SnapshotInterval; interval > 0 && c.now.Before(v.Latest.Add(interval)) {
		return nil, snapshotTooSoon()
	}
	existing := c.p.snapshotsOf(v.ID)
	switch {
	case request.Name == "":
		return nil, unprocessable("name can't be blank")
	case slices.ContainsFunc(existing, func(s *volumeSnapshot) bool { return s.Name == request.Name }):
		return nil, conflict("failed to create snapshot: a snapshot with the name already exists")
	case len(existing) >= snapshotsPerVolume:
		return nil, unprocessable("failed to create snapshot: a volume can have at most %d snapshots", snapshotsPerVolume)
	}
	if err := checkTags(request.Tags); err != nil {
		return nil, err
	}
	v.Latest = c.now
	s := &volumeSnapshot{
		object: c.newObject(request.Tags), ID: newUUID(), Name: request.Name, Volume: v.ID, Region: v.Region, MinDiskSize: v.Size,
		// The answer to the creation never knows the size.
		Sized:          c.now.Add(max(1, c.s.options.Boot/4)),
		FilesystemType: v.FilesystemType, FilesystemLabel: v.FilesystemLabel,
	}
	c.p.VolumeSnapshots[s.ID] = s
	return map[string]any{"snapshot": c.wireVolumeSnapshot(s)}, nil
}

// volumeSnapshot finds the path's volume snapshot.
func (c *call) volumeSnapshot() (*volumeSnapshot, error) {
	s := c.p.VolumeSnapshots[c.id()]
	if s == nil || c.missing(&s.object) {
		return nil, notFound()
	}
	return s, nil
}

func getVolumeSnapshot(c *call) (any, error) {
	s, err := c.volumeSnapshot()
	if err != nil {
		return nil, err
	}
	return map[string]any{"snapshot": c.wireVolumeSnapshot(s)}, nil
}

func deleteVolumeSnapshot(c *call) (any, error) {
	s, err := c.volumeSnapshot()
	if err != nil {
		return nil, err
	}
	return nil, c.p.deleteVolumeSnapshot(s.ID)
}

// listSnapshots lists those of Droplets, then those of volumes; the filter by
// region is godo's.
func listSnapshots(c *call) (any, error) {
	kind, region := c.query.Get("resource_type"), c.query.Get("region")
	if kind != "" && kind != tagDroplet && kind != tagVolume {
		return nil, badRequest("invalid resource_type")
	}
	all := []wireSnapshot{}
	if kind != tagVolume {
		for _, i := range visible(c, c.p.dropletSnapshots(0)) {
			all = append(all, i.snapshotWire())
		}
	}
	if kind != tagDroplet {
		for _, s := range visible(c, byAge(c.p.VolumeSnapshots)) {
			all = append(all, c.wireVolumeSnapshot(s))
		}
	}
	all = slices.DeleteFunc(all, func(s wireSnapshot) bool { return region != "" && !slices.Contains(s.Regions, region) })
	return list(c, "snapshots", all, func(s wireSnapshot) any { return s })
}

// dropletSnapshot finds the path's image, if that is a snapshot.
func (c *call) dropletSnapshot() (*image, error) {
	i := c.imageByID(c.number(0))
	switch {
	case i == nil:
		return nil, notFound()
	case i.Type != typeSnapshot:
		return nil, badRequest("the resource is not a snapshot")
	}
	return i, nil
}

func getSnapshot(c *call) (any, error) {
	if c.p.VolumeSnapshots[c.id()] != nil {
		return getVolumeSnapshot(c)
	}
	i, err := c.dropletSnapshot()
	if err != nil {
		return nil, err
	}
	return map[string]any{"snapshot": i.snapshotWire()}, nil
}

func deleteSnapshot(c *call) (any, error) {
	if c.p.VolumeSnapshots[c.id()] != nil {
		return deleteVolumeSnapshot(c)
	}
	i, err := c.dropletSnapshot()
	if err != nil {
		return nil, err
	}
	delete(c.p.Images, i.ID)
	return nil, nil
}
