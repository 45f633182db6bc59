// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// image is a project's own image: a snapshot or a backup.
type image struct {
	object
	Type         string  `json:"type"`
	Status       string  `json:"status"`
	Description  string  `json:"description"`
	Architecture string  `json:"architecture"`
	DiskSize     float64 `json:"disk_size"`
	// FromID and FromName are the server it was made from; 0 for none.
	FromID   int64  `json:"from_id"`
	FromName string `json:"from_name"`
	// BoundTo is the server that a backup belongs to.
	BoundTo  int64  `json:"bound_to"`
	OSFlavor string `json:"os_flavor"`
}

// systemImages are Hetzner's own. A name means an image of each architecture.
func systemImages(now time.Time) []wireImage {
	day := now.UTC().Truncate(24 * time.Hour)
	ended := day.AddDate(0, 0, -20)
	systems := []struct {
		x86, arm                     int64
		name, flavor, version, title string
		app, deprecated              bool
	}{
		{15512617, 103908070, "ubuntu-20.04", "ubuntu", "20.04", "Ubuntu 20.04", false, true},
		{67794396, 103908130, "ubuntu-22.04", "ubuntu", "22.04", "Ubuntu 22.04", false, false},
		{161547269, 161547270, "ubuntu-24.04", "ubuntu", "24.04", "Ubuntu 24.04", false, false},
		{114690387, 114690389, "debian-12", "debian", "12", "Debian 12", false, false},
		{310557660, 310557661, "debian-13", "debian", "13", "Debian 13", false, false},
		{45778092, 103908167, "rocky-9", "rocky", "9", "Rocky Linux 9", false, false},
		{67953164, 103908168, "alma-9", "alma", "9", "AlmaLinux 9", false, false},
		{232895309, 232895310, "fedora-42", "fedora", "42", "Fedora 42", false, false},
		{40093140, 105888141, "docker-ce", "ubuntu", "24.04", "Docker CE", true, false},
	}
	var images []wireImage
	for _, s := range systems {
		for _, architecture := range []string{"x86", "arm"} {
			i := wireImage{
				ID: s.x86, Type: "system", Status: "available", Name: &s.name, Description: s.title,
				DiskSize: 5, Created: stamp(day.AddDate(-1, 0, 0)), OSFlavor: s.flavor, OSVersion: &s.version,
				RapidDeploy: true, Labels: map[string]string{}, Architecture: architecture,
			}
			if architecture == "arm" {
				i.ID = s.arm
			}
			if s.app {
				i.Type, i.RapidDeploy = "app", false
			}
			if s.deprecated {
				i.Deprecated = new(stamp(ended))
				i.Deprecation = &wireDeprecation{Announced: stamp(ended), UnavailableAfter: stamp(ended.AddDate(0, 3, 0))}
			}
			images = append(images, i)
		}
	}
	return images
}

func snapshotImage(s Snapshot) *image {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	return &image{
		object:       object{ID: s.ID, Created: time.Now(), Labels: labels},
		Type:         "snapshot",
		Status:       "available",
		Description:  s.Description,
		Architecture: s.Architecture,
		DiskSize:     float64(s.DiskSize),
		OSFlavor:     "unknown",
	}
}

func (i *image) wire() wireImage {
	w := wireImage{
		ID:           i.ID,
		Type:         i.Type,
		Status:       i.Status,
		Description:  i.Description,
		DiskSize:     i.DiskSize,
		Created:      stamp(i.Created),
		OSFlavor:     i.OSFlavor,
		Labels:       i.Labels,
		Architecture: i.Architecture,
	}
	if i.Status == "available" {
		w.ImageSize = new(2.3)
	}
	if i.FromID != 0 {
		w.CreatedFrom = &wireCreatedFrom{ID: i.FromID, Name: i.FromName}
	}
	if i.BoundTo != 0 {
		w.BoundTo = new(i.BoundTo)
	}
	return w
}

// images are all the project sees.
func (c *call) images() []wireImage {
	all := slices.Clone(c.s.catalog.images)
	for _, own := range byID(c.p.Images) {
		all = append(all, own.wire())
	}
	return all
}

func (c *call) image(id int64) (wireImage, bool) {
	images := c.images()
	i := slices.IndexFunc(images, func(image wireImage) bool { return image.ID == id })
	if i < 0 {
		return wireImage{}, false
	}
	return images[i], true
}

func listImages(c *call) (any, error) {
	deprecated := c.query.Get("include_deprecated") == "true"
	byRow := map[int64]wireImage{}
	var all []row
	for _, image := range c.images() {
		if image.Deprecated != nil && !deprecated {
			continue
		}
		byRow[image.ID] = image
		r := row{object: object{ID: image.ID, Labels: image.Labels}, wire: func() any { return image }}
		if image.Name != nil {
			r.Name = *image.Name
		}
		if own := c.p.Images[image.ID]; own != nil {
			r.object = own.object
		} else if created, err := time.Parse(time.RFC3339, image.Created); err == nil {
			r.Created = created
		}
		all = append(all, r)
	}
	all = c.oneOf("type", all, func(r row) string { return byRow[r.ID].Type })
	all = c.oneOf("status", all, func(r row) string { return byRow[r.ID].Status })
	all = c.oneOf("architecture", all, func(r row) string { return byRow[r.ID].Architecture })
	all = c.oneOf("bound_to", all, func(r row) string {
		if bound := byRow[r.ID].BoundTo; bound != nil {
			return strconv.FormatInt(*bound, 10)
		}
		return ""
	})
	return c.list("images", all, "id", "name", "created")
}

func getImage(c *call) (any, error) {
	image, found := c.image(c.id())
	if !found {
		return nil, notFound("image", c.id())
	}
	return map[string]any{"image": image}, nil
}

// ownImage finds an image that the project may change.
func (c *call) ownImage() (*image, error) {
	if own := c.p.Images[c.id()]; own != nil {
		return own, nil
	}
	if _, found := c.image(c.id()); found {
		return nil, refused(http.StatusForbidden, "forbidden", "only snapshots and backups can be changed")
	}
	return nil, notFound("image", c.id())
}

func updateImage(c *call) (any, error) {
	own, err := c.ownImage()
	if err != nil {
		return nil, err
	}
	var request struct {
		Description *string            `json:"description"`
		Type        *string            `json:"type"`
		Labels      *map[string]string `json:"labels"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	if request.Labels != nil {
		checkLabels(&problems, *request.Labels)
	}
	if request.Type != nil && *request.Type != "snapshot" {
		problems.add("type", "must be snapshot")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if request.Description != nil {
		own.Description = *request.Description
	}
	if request.Type != nil {
		own.Type, own.BoundTo = "snapshot", 0
	}
	if request.Labels != nil {
		own.Labels = *request.Labels
	}
	return map[string]any{"image": own.wire()}, nil
}

func deleteImage(c *call) (any, error) {
	own, err := c.ownImage()
	if err != nil {
		return nil, err
	}
	delete(c.p.Images, own.ID)
	return noContent(nil)
}

func createImage(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		Description string            `json:"description"`
		Type        string            `json:"type"`
		Labels      map[string]string `json:"labels"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Type == "" {
		request.Type = "snapshot"
	}
	var problems fields
	checkLabels(&problems, request.Labels)
	if !slices.Contains([]string{"snapshot", "backup"}, request.Type) {
		problems.add("type", "must be snapshot or backup")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if request.Type == "backup" && v.BackupWindow == "" {
		return nil, invalid("backups are not enabled for this server")
	}
	made := &image{
		object:       c.newObject("", request.Labels),
		Type:         request.Type,
		Status:       "creating",
		Description:  request.Description,
		Architecture: c.s.catalog.typeByID(v.ServerType).Architecture,
		DiskSize:     float64(v.PrimaryDisk),
		FromID:       v.ID,
		FromName:     v.Name,
		OSFlavor:     "unknown",
	}
	if source, found := c.image(v.Image); found {
		made.OSFlavor = source.OSFlavor
		if made.Description == "" {
			made.Description = strings.TrimSpace(source.Description + " " + v.Name)
		}
	}
	if request.Type == "backup" {
		made.BoundTo = v.ID
	}
	c.p.Images[made.ID] = made
	a := c.act("create_image", v.ID, nil, c.s.options.Boot, effect{Snapshot: made.ID}, wireResource{made.ID, "image"})
	return map[string]any{"image": made.wire(), "action": a.wire(c.now)}, nil
}
