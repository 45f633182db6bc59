// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// managedLabel marks what this provider made. The emulator knows it for the
// control API's "managed" alone.
const managedLabel = "better-compute.io/managed"

// Server is what a test may want to know of a server, the API's answers aside.
type Server struct {
	ID         int64
	Project    string
	Name       string
	Status     string
	ServerType string
	Location   string
	// Image is the id of the image.
	Image    int64
	Labels   map[string]string
	UserData string
	// SSHKeys are the ids of the keys it was created with.
	SSHKeys   []int64
	Protected bool
	Backups   bool
	Locked    bool
	// Firewalls are ids, those of label selectors included.
	Firewalls []int64
	// PlacementGroup, IPv4 and IPv6 are ids; 0: none.
	PlacementGroup int64
	IPv4, IPv6     int64
	// Networks are the private addresses, aliases after the first, by network.
	Networks map[int64][]string
	// Disk is the size of the disk in GB, which may be smaller than the type's.
	Disk int
}

// Servers returns all servers of all projects as they are now, by their ids.
func (s *Service) Servers() []Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	var servers []Server
	for name, p := range s.current() {
		for _, v := range p.Servers {
			servers = append(servers, Server{
				ID:         v.ID,
				Project:    name,
				Name:       v.Name,
				Status:     v.Status,
				ServerType: s.catalog.typeByID(v.ServerType).Name,
				Location:   s.catalog.locationByID(v.Location).Name,
				Image:      v.Image,
				Labels:     maps.Clone(v.Labels),
				UserData:   v.UserData,
				SSHKeys:    slices.Clone(v.SSHKeys),
				Protected:  v.Protected,
				Backups:    v.BackupWindow != "",
				Locked:     p.locked(v.ID),

				Firewalls:      p.firewallsOf(v),
				PlacementGroup: v.PlacementGroup,
				IPv4:           v.IPv4,
				IPv6:           v.IPv6,
				Networks:       v.addresses(),
				Disk:           v.PrimaryDisk,
			})
		}
	}
	slices.SortFunc(servers, func(a, b Server) int { return int(a.ID - b.ID) })
	return servers
}

func (v *server) addresses() map[int64][]string {
	out := map[int64][]string{}
	for _, n := range v.Private {
		out[n.Network] = append([]string{n.IP}, n.AliasIPs...)
	}
	return out
}

// Objects lists what exists, for the control API.
func (s *Service) Objects() emulator.Objects {
	objects := emulator.Objects{
		Machines: []emulator.Object{}, Volumes: []emulator.Object{}, Snapshots: []emulator.Object{},
	}
	for _, v := range s.Servers() {
		objects.Machines = append(objects.Machines, emulator.Object{
			ID: strconv.FormatInt(v.ID, 10), Name: v.Name, State: v.Status, Managed: v.Labels[managedLabel] == "true",
		})
	}
	for _, v := range s.Volumes() {
		objects.Volumes = append(objects.Volumes, emulator.Object{
			ID: strconv.FormatInt(v.ID, 10), Name: v.Name, State: v.Status, Managed: v.Labels[managedLabel] == "true",
		})
	}
	return objects
}

// current brings all projects to the present. Its caller holds mu.
func (s *Service) current() map[string]*project {
	now := time.Now()
	for _, p := range s.store.Projects {
		p.advance(now)
	}
	return s.store.Projects
}

// change does something to a server behind the API's back, without a call and
// without an action. It reports whether there is such a server.
func (s *Service) change(id int64, do func(p *project, v *server)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.current() {
		if v := p.Servers[id]; v != nil {
			do(p, v)
			return true
		}
	}
	return false
}

// SetPower turns a server on or off at once, as someone at the console might.
// It reports whether there is such a server, as the functions below do.
func (s *Service) SetPower(id int64, on bool) bool {
	return s.change(id, func(p *project, v *server) {
		p.Open = slices.DeleteFunc(p.Open, func(a *action) bool { return a.Halt && a.Server == id })
		v.Status = statusOff
		if on {
			v.Status = statusRunning
		}
	})
}

// SetStatus gives a server a status, e.g. "unknown" or "migrating".
func (s *Service) SetStatus(id int64, status string) bool {
	return s.change(id, func(_ *project, v *server) { v.Status = status })
}

// SetLabels replaces a server's labels; nil takes all away.
func (s *Service) SetLabels(id int64, labels map[string]string) bool {
	return s.change(id, func(_ *project, v *server) {
		v.Labels = maps.Clone(labels)
		if v.Labels == nil {
			v.Labels = map[string]string{}
		}
	})
}

// SetName renames a server.
func (s *Service) SetName(id int64, name string) bool {
	return s.change(id, func(_ *project, v *server) { v.Name = name })
}

// Delete removes a server at once.
func (s *Service) Delete(id int64) bool {
	return s.change(id, func(p *project, v *server) { p.remove(v) })
}

// SetStock puts a server type into or out of stock in a location. It reports
// whether the type is offered there.
func (s *Service) SetStock(serverType, location string, available bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.catalog.types {
		for j := range s.catalog.types[i].Locations {
			at := &s.catalog.types[i].Locations[j]
			if s.catalog.types[i].Name == serverType && at.Name == location {
				at.Available = available
				return true
			}
		}
	}
	return false
}

// Withdraw takes a server type out of the catalog, as after its end; servers
// keep it. It reports whether there was one.
func (s *Service) Withdraw(serverType string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found := s.catalog.findType(idOrName(serverType))
	if found {
		s.catalog.withdrawn[t.ID] = true
	}
	return found
}
