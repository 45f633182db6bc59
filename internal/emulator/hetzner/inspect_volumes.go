// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"cmp"
	"maps"
	"slices"
)

// Volume is what a test may want to know of a volume, the API's answers aside.
type Volume struct {
	ID       int64
	Project  string
	Name     string
	Status   string
	Location string
	// Size is in GB.
	Size int
	// Format is the filesystem; empty for none.
	Format string
	// Server is the id of the server it is attached to; 0 for none.
	Server    int64
	Labels    map[string]string
	Protected bool
	Locked    bool
}

// Volumes returns all volumes of all projects as they are now, by their ids.
func (s *Service) Volumes() []Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	var volumes []Volume
	for name, p := range s.current() {
		for _, v := range p.Volumes {
			volumes = append(volumes, Volume{
				ID:        v.ID,
				Project:   name,
				Name:      v.Name,
				Status:    v.Status,
				Location:  s.catalog.locationByID(v.Location).Name,
				Size:      v.Size,
				Format:    v.Format,
				Server:    v.Server,
				Labels:    maps.Clone(v.Labels),
				Protected: v.Protected,
				Locked:    p.volumeLocked(v.ID),
			})
		}
	}
	slices.SortFunc(volumes, func(a, b Volume) int { return cmp.Compare(a.ID, b.ID) })
	return volumes
}

// changeVolume does something to a volume behind the API's back. It reports
// whether there is such a volume.
func (s *Service) changeVolume(id int64, do func(p *project, v *volume)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.current() {
		if v := p.Volumes[id]; v != nil {
			do(p, v)
			return true
		}
	}
	return false
}

// DeleteVolume removes a volume at once, attached or not. It reports whether
// there is such a volume, as the functions below do.
func (s *Service) DeleteVolume(id int64) bool {
	return s.changeVolume(id, func(p *project, _ *volume) { p.removeVolume(id) })
}

// AttachVolume attaches a volume to a server at once, wherever it was before; 0
// detaches it. No rule is checked.
func (s *Service) AttachVolume(id, server int64) bool {
	return s.changeVolume(id, func(_ *project, v *volume) { v.Server = server })
}

// SetVolumeSize changes a volume's size, in GB; it may shrink.
func (s *Service) SetVolumeSize(id int64, size int) bool {
	return s.changeVolume(id, func(_ *project, v *volume) { v.Size = size })
}

// SetVolumeName renames a volume.
func (s *Service) SetVolumeName(id int64, name string) bool {
	return s.changeVolume(id, func(_ *project, v *volume) { v.Name = name })
}

// SetVolumeLabels replaces a volume's labels; nil takes all away.
func (s *Service) SetVolumeLabels(id int64, labels map[string]string) bool {
	return s.changeVolume(id, func(_ *project, v *volume) {
		v.Labels = maps.Clone(labels)
		if v.Labels == nil {
			v.Labels = map[string]string{}
		}
	})
}

// SetVolumeProtection switches a volume's deletion protection.
func (s *Service) SetVolumeProtection(id int64, protected bool) bool {
	return s.changeVolume(id, func(_ *project, v *volume) { v.Protected = protected })
}
