// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"slices"
)

// volumeEffect is what an action does to the volume or share that it is about.
type volumeEffect struct {
	// Attach and Detach are the Droplets that a volume is attached to and
	// detached from.
	Attach int64 `json:"attach,omitempty"`
	Detach int64 `json:"detach,omitempty"`
	// Size is the size in GiB that a volume or share grows to.
	Size int `json:"size,omitempty"`
	// Create and Delete are the making and the end of a share.
	Create bool `json:"create,omitempty"`
	Delete bool `json:"delete,omitempty"`
	// AddVPC and RemoveVPC are VPCs that a share is attached to and detached from.
	AddVPC    string `json:"add_vpc,omitempty"`
	RemoveVPC string `json:"remove_vpc,omitempty"`
	Tier      string `json:"tier,omitempty"`
	// Snapshot is the share snapshot that is being made.
	Snapshot string `json:"snapshot,omitempty"`
}

// finishVolume carries out a volume action's effect.
func (p *project) finishVolume(a *action) {
	if s := p.Shares[a.Volume]; s != nil {
		p.finishShare(s, a)
	}
	v, e := p.Volumes[a.Volume], a.Effect.Volume
	if v == nil || a.Failed {
		return
	}
	switch {
	case e.Attach != 0 && p.Droplets[e.Attach] != nil:
		v.Droplet = e.Attach
	case e.Detach != 0 && v.Droplet == e.Detach:
		v.Droplet = 0
	case e.Size > v.Size:
		v.Size = e.Size
	}
}

// taken tells whether a volume is attached, or about to be.
func (p *project) taken(v *volume) bool {
	return v.Droplet != 0 || slices.ContainsFunc(p.Open, func(a *action) bool {
		return a.Volume == v.ID && a.Effect.Volume != nil && a.Effect.Volume.Attach != 0 && !a.Failed
	})
}

func alreadyAttached() error { return unprocessable("This volume is already attached") }

func otherRegion() error {
	return unprocessable("The volume and the Droplet must be in the same region")
}

// volumeRequest is the body of an action, by the volume's id or name.
type volumeRequest struct {
	Type       string   `json:"type"`
	VolumeName string   `json:"volume_name"`
	Droplet    int64    `json:"droplet_id"`
	Region     string   `json:"region"`
	Size       int      `json:"size_gigabytes"`
	Tags       []string `json:"tags"`
}

func actOnVolume(c *call) (any, error) {
	v, err := c.volume()
	if err != nil {
		return nil, err
	}
	var request volumeRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Region != "" && request.Region != v.Region {
		return nil, unprocessable("The volume is in another region")
	}
	switch request.Type {
	case "attach":
		return c.attach(v, &request)
	case "detach":
		return c.detach(v, &request)
	case "resize":
		return c.resize(v, &request)
	}
	return nil, unprocessable("type must be attach, detach or resize")
}

// actOnNamedVolume needs the region too; there is no resize by name.
func actOnNamedVolume(c *call) (any, error) {
	var request volumeRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Type != "attach" && request.Type != "detach" {
		return nil, unprocessable("type must be attach or detach")
	}
	v := c.p.volumeNamed(request.VolumeName, request.Region)
	if v == nil || c.missing(&v.object) {
		return nil, notFound()
	}
	if request.Type == "attach" {
		return c.attach(v, &request)
	}
	return c.detach(v, &request)
}

// attach is an event of the Droplet, as detach is.
func (c *call) attach(v *volume, request *volumeRequest) (any, error) {
	d := c.p.Droplets[request.Droplet]
	if d == nil || c.missing(&d.object) {
		return nil, notFound()
	}
	switch {
	case c.p.taken(v):
		return nil, alreadyAttached()
	case d.Region != v.Region:
		return nil, otherRegion()
	case len(c.p.volumesOf(d.ID)) >= volumesPerDroplet:
		return nil, unprocessable("cannot attach more volumes to the Droplet")
	}
	if err := checkTags(request.Tags); err != nil {
		return nil, err
	}
	if err := c.beginEvent(d); err != nil {
		return nil, err
	}
	for _, name := range request.Tags {
		c.p.addTag(&v.object, c.p.ensureTag(name))
	}
	return c.actOn(v, "attach_volume", d.ID, volumeEffect{Attach: d.ID})
}

// detach needs the Droplet: without one there is no such attachment (godo#136).
func (c *call) detach(v *volume, request *volumeRequest) (any, error) {
	if v.Droplet == 0 || v.Droplet != request.Droplet {
		return nil, unprocessable("Attachment not found")
	}
	if d := c.p.Droplets[v.Droplet]; d != nil {
		if err := c.beginEvent(d); err != nil {
			return nil, err
		}
	}
	return c.actOn(v, "detach_volume", v.Droplet, volumeEffect{Detach: v.Droplet})
}

// resize concerns the volume alone, attached or not (whether it is an event of
// the Droplet isn't known).
func (c *call) resize(v *volume, request *volumeRequest) (any, error) {
	switch {
	case request.Size > maxVolumeSize:
		return nil, unprocessable("size_gigabytes must be at most %d", maxVolumeSize)
	case request.Size <= v.Size:
		return nil, unprocessable("size_gigabytes must be larger than the current size of %d", v.Size)
	}
	return c.actOn(v, "resize", 0, volumeEffect{Size: request.Size})
}

// actOn begins an action on a volume; a Droplet makes it an event of that.
func (c *call) actOn(v *volume, what string, droplet int64, e volumeEffect) (any, error) {
	return c.acted(c.newAction(action{
		Type: what, ResourceType: tagVolume, Region: v.Region, Droplet: droplet, Volume: v.ID, Effect: effect{Volume: &e},
	}, c.s.options.Boot/8))
}

func (c *call) ofVolume(a *action) bool { return a.Volume == c.id() }

func listVolumeActions(c *call) (any, error) {
	if _, err := c.volume(); err != nil {
		return nil, err
	}
	return c.answerActions(c.ofVolume)
}

func getVolumeAction(c *call) (any, error) {
	if _, err := c.volume(); err != nil {
		return nil, err
	}
	return c.answerAction(c.number(1), c.ofVolume)
}
