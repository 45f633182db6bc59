// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The words of an image's status that the emulator uses. A snapshot is
// "pending" while it is made.
const (
	imageAvailable = "available"
	imagePending   = "pending"
	imageRetired   = "retired"
)

// image is a public image or a project's snapshot.
type image struct {
	object
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Distribution string `json:"distribution"`
	// Slug is empty for snapshots and retired images: null in the API.
	Slug    string   `json:"slug"`
	Public  bool     `json:"public"`
	Regions []string `json:"regions"`
	// Type is base or snapshot.
	Type string `json:"type"`
	// Application marks an image of the marketplace, for the filter by type.
	Application bool    `json:"application"`
	MinDisk     int     `json:"min_disk"`
	Size        float64 `json:"size"`
	Status      string  `json:"status"`
	// Droplet is the one a snapshot was made of.
	Droplet int64 `json:"droplet,omitempty"`
}

func imageRoutes() []route {
	return []route{
		{"GET", "/images", http.StatusOK, listImages},
		{"GET", "/images/{id}", http.StatusOK, getImage},
		{"PUT", "/images/{id}", http.StatusOK, updateImage},
		{"DELETE", "/images/{id}", http.StatusNoContent, deleteImage},
		{"GET", "/images/{id}/actions", http.StatusOK, listImageActions},
		{"GET", "/images/{id}/actions/{id}", http.StatusOK, getImageAction},
	}
}

// publicImages are a choice of what there is in 2026.
func publicImages(now time.Time) []*image {
	var all []*image
	add := func(id int64, slug, distribution, name string, minDisk int) *image {
		i := &image{
			object: object{Created: now.AddDate(0, -2, 0)}, ID: id, Slug: slug, Distribution: distribution, Name: name,
			Public: true, Regions: slices.Clone(everywhere), Type: "base", MinDisk: minDisk, Size: float64(minDisk) / 10, Status: imageAvailable,
		}
		all = append(all, i)
		return i
	}
	add(155133621, "ubuntu-22-04-x64", "Ubuntu", "22.04 (LTS) x64", 7)
	add(195932981, "ubuntu-24-04-x64", "Ubuntu", "24.04 (LTS) x64", 7)
	add(207560911, "ubuntu-25-10-x64", "Ubuntu", "25.10 x64", 7)
	add(136681983, "debian-12-x64", "Debian", "12 x64", 7)
	add(203040811, "debian-13-x64", "Debian", "13 x64", 7)
	add(126895361, "rockylinux-9-x64", "Rocky Linux", "9 x64", 10)
	add(200373541, "rockylinux-10-x64", "Rocky Linux", "10 x64", 10)
	add(190461421, "centos-stream-9-x64", "CentOS", "Stream 9 x64", 10)
	add(206721331, "fedora-42-x64", "Fedora", "42 x64", 15)
	add(181001331, "docker-20-04", "Ubuntu", "Docker on Ubuntu 22.04", 25).Application = true
	add(202317421, "gpu-h100x1-base", "Ubuntu", "NVIDIA AI/ML Ready (H100)", 100)
	old := add(112929454, "", "Ubuntu", "18.04 (LTS) x64", 7)
	old.Status = imageRetired
	return all
}

// imageByID finds an image of the project or a public one, retired or not.
func (c *call) imageByID(id int64) *image {
	if i := c.p.Images[id]; i != nil && !c.missing(&i.object) {
		return i
	}
	for _, i := range c.s.catalog.images {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// findImage finds an image by its id or slug; nil: there is none.
func (c *call) findImage(reference string) *image {
	for _, i := range c.s.catalog.images {
		if i.Slug != "" && i.Slug == reference {
			return i
		}
	}
	return c.imageByID(text(reference).number())
}

func (i *image) wire() wireImage {
	w := wireImage{
		ID: i.ID, Name: i.Name, Distribution: i.Distribution, Public: i.Public, Regions: append([]string{}, i.Regions...),
		CreatedAt: stamp(i.Created), Type: i.Type, MinDiskSize: i.MinDisk, SizeGigabytes: i.Size,
		Description: i.Name, Tags: i.tags(), Status: i.Status,
	}
	if i.Slug != "" {
		w.Slug = &i.Slug
	}
	return w
}

// snapshotWire is a Droplet's snapshot as the lists of snapshots have it.
func (i *image) snapshotWire() wireSnapshot {
	return wireSnapshot{
		ID: strconv.FormatInt(i.ID, 10), Name: i.Name, CreatedAt: stamp(i.Created), Regions: append([]string{}, i.Regions...),
		MinDiskSize: i.MinDisk, SizeGigabytes: i.Size,
		ResourceID: strconv.FormatInt(i.Droplet, 10), ResourceType: tagDroplet, Tags: i.tags(),
	}
}

// dropletSnapshots are the project's snapshots of Droplets that are finished,
// by their ids; of a Droplet, or with 0 of all.
func (p *project) dropletSnapshots(droplet int64) []*image {
	return slices.DeleteFunc(byID(p.Images), func(i *image) bool {
		return i.Type != typeSnapshot || i.Status != imageAvailable || droplet != 0 && i.Droplet != droplet
	})
}

const typeSnapshot = "snapshot"

func listImages(c *call) (any, error) {
	all := append(slices.Clone(c.s.catalog.images), byID(c.p.Images)...)
	all = slices.DeleteFunc(visible(c, all), func(i *image) bool { return i.Status == imageRetired })
	keep := func(wanted func(*image) bool) {
		all = slices.DeleteFunc(all, func(i *image) bool { return !wanted(i) })
	}
	switch c.query.Get("type") {
	case "":
	case "application":
		keep(func(i *image) bool { return i.Public && i.Application })
	case "distribution":
		keep(func(i *image) bool { return i.Public && !i.Application })
	default:
		return nil, badRequest("invalid type")
	}
	if c.query.Get("private") == "true" {
		keep(func(i *image) bool { return !i.Public })
	}
	if name := c.query.Get("tag_name"); name != "" {
		keep(func(i *image) bool { return i.hasTag(name) })
	}
	if name := c.query.Get("name"); name != "" {
		keep(func(i *image) bool { return i.Name == name })
	}
	slices.SortFunc(all, func(a, b *image) int { return cmp.Compare(a.ID, b.ID) })
	return list(c, "images", all, func(i *image) any { return i.wire() })
}

func getImage(c *call) (any, error) {
	i := c.findImage(c.id())
	if i == nil {
		return nil, notFound()
	}
	return map[string]any{"image": i.wire()}, nil
}

// ownImage finds an image that the project may change.
func (c *call) ownImage() (*image, error) {
	i := c.findImage(c.id())
	switch {
	case i == nil:
		return nil, notFound()
	case i.Public:
		return nil, forbidden("You do not have access for the attempted action.")
	}
	return i, nil
}

func updateImage(c *call) (any, error) {
	i, err := c.ownImage()
	if err != nil {
		return nil, err
	}
	var request struct {
		Name *string `json:"name"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Name != nil {
		if *request.Name == "" {
			return nil, unprocessable("Name can't be blank")
		}
		i.Name = *request.Name
	}
	return map[string]any{"image": i.wire()}, nil
}

func deleteImage(c *call) (any, error) {
	i, err := c.ownImage()
	if err != nil {
		return nil, err
	}
	delete(c.p.Images, i.ID)
	return nil, nil
}

func (c *call) ofImage(a *action) bool {
	return a.ResourceType == tagImage && a.ResourceID == c.number(0)
}

func listImageActions(c *call) (any, error) {
	if c.imageByID(c.number(0)) == nil {
		return nil, notFound()
	}
	return c.answerActions(c.ofImage)
}

func getImageAction(c *call) (any, error) { return c.answerAction(c.number(1), c.ofImage) }
