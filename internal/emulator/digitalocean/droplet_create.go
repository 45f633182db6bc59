// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"regexp"
	"slices"
)

const (
	// maxUserData is the API's limit in bytes.
	maxUserData = 64 << 10
	// maxNames is how many Droplets a request can make.
	maxNames = 10
)

// createRequest is the body of POST /v2/droplets. Whatever is null or empty is
// as if it weren't there.
type createRequest struct {
	Name             string        `json:"name"`
	Names            []string      `json:"names"`
	Region           string        `json:"region"`
	Size             string        `json:"size"`
	Image            text          `json:"image"`
	SSHKeys          []text        `json:"ssh_keys"`
	Backups          bool          `json:"backups"`
	BackupPolicy     *backupPolicy `json:"backup_policy"`
	IPv6             bool          `json:"ipv6"`
	Monitoring       bool          `json:"monitoring"`
	Tags             []string      `json:"tags"`
	UserData         string        `json:"user_data"`
	Volumes          []volumeRef   `json:"volumes"`
	VPC              string        `json:"vpc_uuid"`
	WithDropletAgent *bool         `json:"with_droplet_agent"`
	PublicNetworking *bool         `json:"public_networking"`
}

// public tells whether the Droplet is to have a public address.
func (r *createRequest) public() bool { return r.PublicNetworking == nil || *r.PublicNetworking }

// createDroplets makes one Droplet of "name", or several of "names". Names need
// not be unique.
func createDroplets(c *call) (any, error) {
	var request createRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	names := request.Names
	if len(names) == 0 {
		names = []string{request.Name}
	}
	if err := request.check(names); err != nil {
		return nil, err
	}
	planned, err := c.plan(&request)
	if err != nil {
		return nil, err
	}
	if limit := c.s.options.DropletLimit; limit > 0 && len(c.p.Droplets)+len(names) > limit {
		return nil, unprocessable("creating this/these droplet(s) will exceed your droplet limit")
	}

	// From here on nothing can be refused.
	droplets, links := []wireDroplet{}, []wireLinkedAction{}
	for _, name := range names {
		d := *planned
		d.object = c.newObject(request.Tags)
		d.ID, d.Name = next(&c.s.store.NextDroplet), name
		c.assign(&d, &request)
		c.p.Droplets[d.ID] = &d
		for _, id := range request.Volumes {
			c.p.attachNow(string(id), d.ID)
		}
		// A Droplet that can't be placed is removed again (seen in the issues of
		// the vendor's provider, 1486).
		a := c.newAction(dropletAction("create", &d, effect{Status: statusActive, DeleteFailed: true}), c.s.options.Boot)
		droplets = append(droplets, c.wireDroplet(&d))
		links = append(links, wireLinkedAction{ID: a.ID, Rel: "create", Href: fmt.Sprintf("https://%s%s/actions/%d", c.r.Host, c.s.BasePath(), a.ID)})
	}
	answer := map[string]any{"links": map[string]any{"actions": links}}
	if len(request.Names) > 0 {
		answer["droplets"] = droplets
	} else {
		answer["droplet"] = droplets[0]
	}
	return answer, nil
}

var dropletName = regexp.MustCompile(`^[a-zA-Z0-9]?[a-z0-9A-Z.\-]*[a-z0-9A-Z]$`)

func checkDropletName(name string) error {
	switch {
	case name == "":
		return unprocessable("Name can't be blank")
	case len(name) > 255 || !dropletName.MatchString(name):
		return unprocessable("Only valid hostname characters are allowed. (a-z, A-Z, 0-9, . and -)")
	}
	return nil
}

// check refuses what is wrong with a request by itself.
func (r *createRequest) check(names []string) error {
	for _, name := range names {
		if err := checkDropletName(name); err != nil {
			return err
		}
	}
	switch {
	case r.Name != "" && len(r.Names) > 0:
		return unprocessable("name and names can't both be given")
	case len(names) > maxNames:
		return unprocessable("names can have at most %d entries", maxNames)
	case len(names) > 1 && len(r.Volumes) > 0:
		return unprocessable("volumes can't be attached to several Droplets")
	case len(r.Volumes) > volumesPerDroplet:
		return unprocessable("cannot attach more volumes to the Droplet")
	case len(r.UserData) > maxUserData:
		return unprocessable("User data is too long (maximum is %d bytes)", maxUserData)
	case !r.public() && r.IPv6:
		return unprocessable("IPv6 can't be enabled without public networking")
	case r.BackupPolicy != nil && !r.Backups:
		return unprocessable("backup_policy needs backups to be enabled")
	}
	if err := r.BackupPolicy.check(); err != nil {
		return err
	}
	return checkTags(r.Tags)
}

// plan resolves what a request refers to and refuses what doesn't fit together.
func (c *call) plan(request *createRequest) (*droplet, error) {
	size, ok := c.s.catalog.findSize(request.Size)
	if !ok || !size.Available {
		return nil, unprocessable("You specified an invalid size for Droplet creation.")
	}
	region, err := c.s.catalog.place(request.Region, size)
	if err != nil {
		return nil, err
	}
	image, err := c.imageFor(request.Image, region.Slug, size.Disk)
	if err != nil {
		return nil, err
	}
	keys, err := c.findKeys(request.SSHKeys)
	if err != nil {
		return nil, err
	}
	if request.VPC != "" {
		switch v := c.findVPC(request.VPC); {
		case v == nil:
			return nil, unprocessable("VPC not found")
		case v.Region != region.Slug:
			return nil, unprocessable("VPC is not in the same region as the Droplet")
		}
	}
	for _, id := range request.Volumes {
		if err := c.attachable(string(id), region.Slug); err != nil {
			return nil, err
		}
	}
	return &droplet{
		Status: statusNew, Size: size.Slug, Region: region.Slug, Image: image.ID, Disk: size.Disk, VPC: request.VPC,
		Backups: request.Backups, Policy: request.BackupPolicy, Monitoring: request.Monitoring,
		// Without a wish the agent is installed where it can be.
		Agent:    request.WithDropletAgent == nil || *request.WithDropletAgent,
		UserData: request.UserData, SSHKeys: keys,
	}, nil
}

// imageFor finds an image that fits a region and a disk of so many GB.
func (c *call) imageFor(reference text, region string, disk int) (*image, error) {
	i := c.findImage(string(reference))
	switch {
	case reference == "" || i == nil || i.Status != imageAvailable:
		return nil, unprocessable("You specified an invalid image for Droplet creation.")
	case !slices.Contains(i.Regions, region):
		return nil, unprocessable("Image is not available in this region.")
	case i.MinDisk > disk:
		return nil, unprocessable("The image requires a disk of at least %d GB.", i.MinDisk)
	}
	return i, nil
}

// assign gives a new Droplet its addresses.
func (c *call) assign(d *droplet, request *createRequest) {
	v := c.p.VPCs[d.VPC]
	if v == nil {
		v = c.s.defaultVPC(c.p, d.Region, object{Created: c.now})
		d.VPC = v.ID
	}
	d.Private, d.PrivateNet, d.PrivateGW = v.newHost()
	if request.public() {
		d.Public = c.s.newPublic()
	}
	if request.IPv6 {
		c.s.addIPv6(d)
	}
}
