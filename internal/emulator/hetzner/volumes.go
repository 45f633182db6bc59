// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

const (
	// minVolumeSize and maxVolumeSize are the sizes that POST /volumes takes, in GB.
	minVolumeSize = 10
	maxVolumeSize = 10240
	// volumesPerServer is how many volumes a server takes (the limit that
	// Hetzner's own CSI driver reports to Kubernetes).
	volumesPerServer = 16
)

// The words of a volume's status.
const (
	volumeCreating  = "creating"
	volumeAvailable = "available"
)

// volumeName is the rule in the description of POST /volumes: 64 characters at most.
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,62}[a-zA-Z0-9])?$`)

// volume is a volume's record.
type volume struct {
	object
	Status   string `json:"status"`
	Location int64  `json:"location"`
	// Size is in GB.
	Size int `json:"size"`
	// Format is the filesystem it was made with; empty for none.
	Format string `json:"format"`
	// Server is the server it is attached to; 0 for none.
	Server    int64 `json:"server"`
	Protected bool  `json:"protected"`
}

type wireVolume struct {
	ID          int64             `json:"id"`
	Created     string            `json:"created"`
	Name        string            `json:"name"`
	Server      *int64            `json:"server"`
	Location    wireLocation      `json:"location"`
	Size        int               `json:"size"`
	LinuxDevice string            `json:"linux_device"`
	Protection  wireProtection    `json:"protection"`
	Labels      map[string]string `json:"labels"`
	Status      string            `json:"status"`
	Format      *string           `json:"format"`
}

func (c *call) wireVolume(v *volume) wireVolume {
	w := wireVolume{
		ID:          v.ID,
		Created:     stamp(v.Created),
		Name:        v.Name,
		Location:    c.s.catalog.locationByID(v.Location),
		Size:        v.Size,
		LinuxDevice: fmt.Sprintf("/dev/disk/by-id/scsi-0HC_Volume_%d", v.ID),
		Protection:  wireProtection{Delete: v.Protected},
		Labels:      v.Labels,
		Status:      v.Status,
	}
	if v.Server != 0 {
		w.Server = new(v.Server)
	}
	if v.Format != "" {
		w.Format = new(v.Format)
	}
	return w
}

// volumesOf are the ids of the volumes that are attached to a server.
func (p *project) volumesOf(server int64) []int64 {
	ids := []int64{}
	for _, v := range byID(p.Volumes) {
		if v.Server == server {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

func checkVolumeName(problems *fields, name string) {
	if !volumeName.MatchString(name) {
		problems.add("name", "must have 1 to 64 letters, digits, dashes, underscores and dots, and begin and end with a letter or digit")
	}
}

func listVolumes(c *call) (any, error) {
	for _, status := range c.query["status"] {
		if status != volumeCreating && status != volumeAvailable {
			var problems fields
			problems.add("status", "'%s' is not a status", status)
			return nil, problems.err()
		}
	}
	all := rows(c.p.Volumes, func(v *volume) any { return c.wireVolume(v) })
	all = c.oneOf("status", all, func(r row) string { return c.p.Volumes[r.ID].Status })
	return c.list("volumes", all, "id", "name", "created")
}

func getVolume(c *call) (any, error) {
	v, err := get(c, "volume", c.p.Volumes)
	if err != nil {
		return nil, err
	}
	return map[string]any{"volume": c.wireVolume(v)}, nil
}

func createVolume(c *call) (any, error) {
	var request struct {
		Name      string            `json:"name"`
		Size      int               `json:"size"`
		Location  idOrName          `json:"location"`
		Server    int64             `json:"server"`
		Format    *string           `json:"format"`
		Automount bool              `json:"automount"`
		Labels    map[string]string `json:"labels"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	checkVolumeName(&problems, request.Name)
	if request.Size < minVolumeSize || request.Size > maxVolumeSize {
		problems.add("size", "must be between %d and %d", minVolumeSize, maxVolumeSize)
	}
	switch {
	case request.Location == "" && request.Server == 0:
		problems.add("location", "either location or server must be given")
	case request.Location != "" && request.Server != 0:
		problems.add("location", "location and server exclude each other")
	}
	if request.Automount && request.Server == 0 {
		problems.add("automount", "needs a server")
	}
	if request.Format != nil && !slices.Contains([]string{"ext4", "xfs"}, *request.Format) {
		problems.add("format", "must be ext4 or xfs")
	}
	checkLabels(&problems, request.Labels)
	if err := problems.err(); err != nil {
		return nil, err
	}

	v := &volume{Status: volumeCreating, Size: request.Size}
	if request.Format != nil {
		v.Format = *request.Format
	}
	var host *server
	if request.Server != 0 {
		var err error
		if host, err = c.host(request.Server); err != nil {
			return nil, err
		}
		v.Location = host.Location
	} else {
		location, found := c.s.catalog.findLocation(request.Location)
		if !found {
			return nil, invalid("location '%s' not found", request.Location)
		}
		v.Location = location.ID
	}
	if nameTaken(c.p.Volumes)(request.Name) {
		return nil, notUnique("volume", "name")
	}

	if limit := c.s.options.VolumeLimit; limit > 0 && len(c.p.Volumes) >= limit {
		return nil, overLimit("volume_limit", "volume limit exceeded")
	}

	// From here on nothing can be refused.
	v.object = c.newObject(request.Name, request.Labels)
	c.p.Volumes[v.ID] = v
	var resources []wireResource
	if host != nil {
		resources = append(resources, wireResource{host.ID, "server"})
	}
	resources = append(resources, wireResource{v.ID, "volume"})
	create := c.act("create_volume", 0, nil, c.s.options.Boot/4, effect{Volume: &volumeEffect{ID: v.ID, Create: true}}, resources...)
	next := []wireAction{}
	if host != nil {
		next = append(next, c.attachTo(host, v, create).wire(c.now))
	}
	return map[string]any{"volume": c.wireVolume(v), "action": create.wire(c.now), "next_actions": next}, nil
}

// updateVolume works on locked volumes too, as that of servers does.
func updateVolume(c *call) (any, error) {
	v, err := get(c, "volume", c.p.Volumes)
	if err != nil {
		return nil, err
	}
	if err := c.update("volume", &v.object, nameTaken(c.p.Volumes), checkVolumeName); err != nil {
		return nil, err
	}
	return map[string]any{"volume": c.wireVolume(v)}, nil
}

func deleteVolume(c *call) (any, error) {
	v, err := c.unlockedVolume()
	if err != nil {
		return nil, err
	}
	switch {
	case v.Protected:
		return nil, refused(http.StatusLocked, "protected", "volume is delete protected")
	case v.Server != 0:
		return nil, serviceError("volume with ID '%d' is still attached to a server", v.ID)
	}
	c.p.removeVolume(v.ID)
	return noContent(nil)
}

// removeVolume takes a volume away, and ends what works on it.
func (p *project) removeVolume(id int64) {
	delete(p.Volumes, id)
	p.Open = slices.DeleteFunc(p.Open, func(a *action) bool {
		if a.worksOn(id) {
			a.Done = true
		}
		return a.Done
	})
}
