// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// Droplet is what a test may want to know of a Droplet, the API's answers aside.
type Droplet struct {
	ID      int64
	Project string
	Name    string
	Status  string
	Size    string
	Region  string
	// Image is the id of the image.
	Image    int64
	VPC      string
	Tags     []string
	UserData string
	// SSHKeys are the ids of the keys it was created with.
	SSHKeys []int64
	// Volumes are the ids of those that are attached.
	Volumes []string
	Backups bool
	// Policy is the plan, weekday and hour of its backups, as "weekly SUN 20";
	// empty: it has no backups.
	Policy string
	IPv6   bool
	// Disk is in GB.
	Disk   int
	Locked bool
}

// Droplets returns all Droplets of all projects as they are now, by their ids.
func (s *Service) Droplets() []Droplet {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Droplet
	for name, p := range s.current() {
		for _, d := range p.Droplets {
			all = append(all, Droplet{
				ID: d.ID, Project: name, Name: d.Name, Status: d.Status, Size: d.Size, Region: d.Region, Image: d.Image, VPC: d.VPC,
				Tags: d.tags(), UserData: d.UserData, SSHKeys: slices.Clone(d.SSHKeys), Volumes: p.volumesOf(d.ID),
				Backups: d.Backups, Policy: d.policyText(), IPv6: d.IPv6 != "", Disk: d.Disk, Locked: p.locked(d.ID),
			})
		}
	}
	slices.SortFunc(all, func(a, b Droplet) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Tags returns the names of all tags of all projects, sorted: those too that
// nothing has any more.
func (s *Service) Tags() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, p := range s.store.Projects {
		for _, t := range p.Tags {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Objects lists what exists, for the control API. Snapshots of Droplets are
// images, and not among them.
func (s *Service) Objects() emulator.Objects {
	objects := emulator.Objects{
		Machines: []emulator.Object{}, Volumes: []emulator.Object{}, Snapshots: []emulator.Object{},
	}
	for _, d := range s.Droplets() {
		objects.Machines = append(objects.Machines, emulator.Object{
			ID: formatID(d.ID), Name: d.Name, State: d.Status, Managed: slices.Contains(d.Tags, managedTag),
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range byID(s.current()) {
		p.volumeRows(&objects)
	}
	return objects
}

// current brings all projects to the present. Its caller holds mu.
func (s *Service) current() map[string]*project {
	now := time.Now()
	for _, p := range s.store.Projects {
		s.advance(p, now)
	}
	return s.store.Projects
}

// alter does something to a Droplet behind the API's back, without a call and
// without an action. It reports whether there is such a Droplet.
func (s *Service) alter(id int64, do func(p *project, d *droplet)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.current() {
		if d := p.Droplets[id]; d != nil {
			do(p, d)
			return true
		}
	}
	return false
}

// SetPower turns a Droplet on or off at once, as someone at the console might.
// It reports whether there is such a Droplet, as the functions below do.
func (s *Service) SetPower(id int64, on bool) bool {
	return s.alter(id, func(p *project, d *droplet) {
		p.endHalt(id)
		d.Status = statusOff
		if on {
			d.Status = statusActive
		}
	})
}

// SetStatus gives a Droplet a status, e.g. "archive".
func (s *Service) SetStatus(id int64, status string) bool {
	return s.alter(id, func(_ *project, d *droplet) { d.Status = status })
}

// SetTags replaces a Droplet's tags; nil takes all away. The tags are made if
// they don't exist.
func (s *Service) SetTags(id int64, tags []string) bool {
	return s.alter(id, func(p *project, d *droplet) {
		d.Tags = nil
		for _, name := range tags {
			p.addTag(&d.object, p.ensureTag(name))
		}
	})
}

// SetName renames a Droplet.
func (s *Service) SetName(id int64, name string) bool {
	return s.alter(id, func(_ *project, d *droplet) { d.Name = name })
}

// Resize gives a Droplet another size, whose disk it gets if that is larger.
func (s *Service) Resize(id int64, size string) bool {
	return s.alter(id, func(_ *project, d *droplet) {
		known, _ := s.catalog.findSize(size)
		d.Size, d.Disk = size, max(d.Disk, known.Disk)
	})
}

// Delete removes a Droplet at once. Its volumes are kept and detached.
func (s *Service) Delete(id int64) bool {
	return s.alter(id, func(p *project, d *droplet) { p.remove(d) })
}

// BeginEvent locks a Droplet for so long, as an event that someone else began.
func (s *Service) BeginEvent(id int64, takes time.Duration) bool {
	return s.alter(id, func(p *project, d *droplet) {
		now := time.Now()
		a := dropletAction("reboot", d, effect{})
		a.ID = next(&s.store.NextAction)
		a.Started, a.Due, a.Settle = now, now.Add(takes), now.Add(takes)
		p.Actions[a.ID] = &a
		p.Open = append(p.Open, &a)
	})
}

// AddVPC makes a VPC in the project that tokens see when none are separated, and
// returns its id.
func (s *Service) AddVPC(name, region string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &vpc{object: object{Created: time.Now()}, ID: newUUID(), Name: name, Region: region, IPRange: s.newRange(), NextHost: firstHost}
	s.project(emulator.DefaultProject).VPCs[v.ID] = v
	return v.ID
}

// Image is a public image for [Service.AddImage].
type Image struct {
	Slug         string
	Name         string
	Distribution string
	// MinDisk is the least disk that a Droplet needs for it, in GB.
	MinDisk int
}

// AddImage adds a public image, in all regions, and returns its id. An image
// that has the slug loses it: so vendors bring out new versions.
func (s *Service) AddImage(add Image) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.catalog.images {
		if i.Slug == add.Slug {
			i.Slug, i.Status = "", imageRetired
		}
	}
	i := &image{
		object: object{Created: time.Now()}, ID: next(&s.store.NextImage), Name: add.Name, Distribution: add.Distribution, Slug: add.Slug,
		Public: true, Regions: slices.Clone(everywhere), Type: "base", MinDisk: add.MinDisk, Size: float64(add.MinDisk) / 10, Status: imageAvailable,
	}
	s.catalog.images = append(s.catalog.images, i)
	return i.ID
}

// RetireImage takes a public image out of the lists, and its slug from it;
// Droplets keep it. It reports whether there was one.
func (s *Service) RetireImage(slug string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.catalog.images {
		if i.Slug == slug && slug != "" {
			i.Slug, i.Status = "", imageRetired
			return true
		}
	}
	return false
}

// SetSize offers a size in the regions, or with none nowhere: then it is
// unavailable. Droplets keep it. It reports whether there is such a size.
func (s *Service) SetSize(slug string, regions ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.catalog.sizes {
		size := &s.catalog.sizes[i]
		if size.Slug != slug {
			continue
		}
		size.Available, size.Regions = len(regions) > 0, append([]string{}, regions...)
		for j := range s.catalog.regions {
			r := &s.catalog.regions[j]
			r.Sizes = slices.DeleteFunc(slices.Clone(r.Sizes), func(other string) bool { return other == slug })
			if slices.Contains(regions, r.Slug) {
				r.Sizes = append(r.Sizes, slug)
			}
		}
		return true
	}
	return false
}

// SetRegion opens or closes a region for new things. It reports whether there is one.
func (s *Service) SetRegion(slug string, available bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.catalog.regions {
		if s.catalog.regions[i].Slug == slug {
			s.catalog.regions[i].Available = available
			return true
		}
	}
	return false
}
