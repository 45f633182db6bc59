// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

const (
	// maxVolumeSize is the largest volume, in GiB; the smallest has 1.
	maxVolumeSize = 16384
	// volumesPerDroplet is the limit since August 2024; before it was 7.
	volumesPerDroplet = 15
	// volumeCents and snapshotCents are prices per GiB and month.
	volumeCents   = 10
	snapshotCents = 6
)

// storageName is the rule for names of volumes and shares: at most 64 lower-case
// letters, digits and dashes, beginning with a letter.
var storageName = regexp.MustCompile(`^[a-z][-a-z0-9]{0,63}$`)

// labelLimits are the filesystems that a volume can be made with, and how many
// characters a label has there at most.
var labelLimits = map[string]int{"": 16, "ext4": 16, "xfs": 12}

// volume is a block volume's record.
type volume struct {
	object
	ID          string `json:"id"`
	Name        string `json:"name"`
	Region      string `json:"region"`
	Description string `json:"description"`
	// Size is in GiB.
	Size            int    `json:"size"`
	FilesystemType  string `json:"filesystem_type"`
	FilesystemLabel string `json:"filesystem_label"`
	// Droplet is the one it is attached to; 0: none.
	Droplet int64 `json:"droplet"`
	// Latest is when its last snapshot was made; that may be deleted since.
	Latest time.Time `json:"latest"`
}

type wireVolume struct {
	ID              string     `json:"id"`
	Region          wireRegion `json:"region"`
	DropletIDs      []int64    `json:"droplet_ids"`
	Name            string     `json:"name"`
	Description     string     `json:"description"`
	SizeGigabytes   int        `json:"size_gigabytes"`
	CreatedAt       string     `json:"created_at"`
	FilesystemType  string     `json:"filesystem_type"`
	FilesystemLabel string     `json:"filesystem_label"`
	Tags            []string   `json:"tags"`
}

func blockRoutes() []route {
	return []route{
		{"GET", "/volumes", http.StatusOK, listVolumes},
		{"POST", "/volumes", http.StatusCreated, createVolume},
		{"DELETE", "/volumes", http.StatusNoContent, deleteVolumeByName},
		{"POST", "/volumes/actions", http.StatusAccepted, actOnNamedVolume},
		{"GET", "/volumes/{id}", http.StatusOK, getVolume},
		{"DELETE", "/volumes/{id}", http.StatusNoContent, deleteVolume},
		{"GET", "/volumes/{id}/actions", http.StatusOK, listVolumeActions},
		{"POST", "/volumes/{id}/actions", http.StatusAccepted, actOnVolume},
		{"GET", "/volumes/{id}/actions/{id}", http.StatusOK, getVolumeAction},
	}
}

func (c *call) wireVolume(v *volume) wireVolume {
	w := wireVolume{
		ID:              v.ID,
		Region:          c.s.catalog.region(v.Region),
		DropletIDs:      []int64{},
		Name:            v.Name,
		Description:     v.Description,
		SizeGigabytes:   v.Size,
		CreatedAt:       stamp(v.Created),
		FilesystemType:  v.FilesystemType,
		FilesystemLabel: v.FilesystemLabel,
		Tags:            v.tags(),
	}
	if v.Droplet != 0 {
		w.DropletIDs = append(w.DropletIDs, v.Droplet)
	}
	return w
}

// monthly is a price per month in dollars, as text.
func monthly(size, cents int) string {
	return fmt.Sprintf("%d.%02d", size*cents/100, size*cents%100)
}

// volume finds the path's volume.
func (c *call) volume() (*volume, error) {
	v := c.p.Volumes[c.id()]
	if v == nil || c.missing(&v.object) {
		return nil, notFound()
	}
	return v, nil
}

// volumeNamed finds a volume by its name and region, which together are unique;
// nil: there is none.
func (p *project) volumeNamed(name, region string) *volume {
	for _, v := range p.Volumes {
		if v.Name == name && v.Region == region {
			return v
		}
	}
	return nil
}

func listVolumes(c *call) (any, error) {
	all := visible(c, byAge(c.p.Volumes))
	name, region := c.query.Get("name"), c.query.Get("region")
	all = slices.DeleteFunc(all, func(v *volume) bool {
		return name != "" && v.Name != name || region != "" && v.Region != region
	})
	return list(c, "volumes", all, func(v *volume) any { return c.wireVolume(v) })
}

func getVolume(c *call) (any, error) {
	v, err := c.volume()
	if err != nil {
		return nil, err
	}
	return map[string]any{"volume": c.wireVolume(v)}, nil
}

// createVolume is synchronous: the volume can be attached at once. From a
// snapshot it gets the snapshot's size and filesystem, whatever was asked for.
func createVolume(c *call) (any, error) {
	var request struct {
		Name            string   `json:"name"`
		Region          string   `json:"region"`
		Size            int      `json:"size_gigabytes"`
		Description     string   `json:"description"`
		SnapshotID      string   `json:"snapshot_id"`
		FilesystemType  string   `json:"filesystem_type"`
		FilesystemLabel string   `json:"filesystem_label"`
		Tags            []string `json:"tags"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	v := &volume{
		Name: request.Name, Region: request.Region, Description: request.Description, Size: request.Size,
		FilesystemType: request.FilesystemType, FilesystemLabel: request.FilesystemLabel,
	}
	if request.SnapshotID != "" {
		snapshot := c.p.VolumeSnapshots[request.SnapshotID]
		if snapshot == nil || c.missing(&snapshot.object) {
			return nil, notFound()
		}
		if v.Region == "" {
			v.Region = snapshot.Region
		}
		if v.Region != snapshot.Region {
			return nil, unprocessable("failed to create volume: the snapshot is in another region")
		}
		v.Size, v.FilesystemType, v.FilesystemLabel = snapshot.MinDiskSize, snapshot.FilesystemType, snapshot.FilesystemLabel
	}
	if err := c.checkVolume(v); err != nil {
		return nil, err
	}
	if err := checkTags(request.Tags); err != nil {
		return nil, err
	}
	if limit := c.s.options.VolumeLimit; limit > 0 && len(c.p.Volumes) >= limit {
		return nil, forbidden("failed to create volume: volume/snapshot capacity limit exceeded")
	}
	if c.p.volumeNamed(v.Name, v.Region) != nil {
		return nil, conflict("failed to create volume: a volume with the name already exists in the region")
	}
	v.object, v.ID = c.newObject(request.Tags), newUUID()
	c.p.Volumes[v.ID] = v
	return map[string]any{"volume": c.wireVolume(v)}, nil
}

// checkVolume reports what is wrong with a volume to be made. The real words are
// known of none of these.
func (c *call) checkVolume(v *volume) error {
	region, found := c.s.catalog.findRegion(v.Region)
	limit, known := labelLimits[v.FilesystemType]
	switch {
	case !storageName.MatchString(v.Name):
		return unprocessable("name is invalid: it must have at most 64 lower-case letters, digits and dashes and begin with a letter")
	case v.Size < 1 || v.Size > maxVolumeSize:
		return unprocessable("size_gigabytes must be between 1 and %d", maxVolumeSize)
	case !found || !region.Available:
		return unprocessable("Region is not available")
	case !region.hasFeature(featureStorage):
		return unprocessable("region %s does not support volumes", v.Region)
	case !known:
		return unprocessable("filesystem_type must be ext4 or xfs")
	case len(v.FilesystemLabel) > limit:
		return unprocessable("filesystem_label must have at most %d characters", limit)
	}
	return nil
}

func deleteVolume(c *call) (any, error) {
	v, err := c.volume()
	if err != nil {
		return nil, err
	}
	return nil, c.p.deleteVolume(v.ID)
}

func deleteVolumeByName(c *call) (any, error) {
	v := c.p.volumeNamed(c.query.Get("name"), c.query.Get("region"))
	if v == nil || c.missing(&v.object) {
		return nil, notFound()
	}
	return nil, c.p.deleteVolume(v.ID)
}
