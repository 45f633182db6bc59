// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"maps"
	"slices"
)

// Volume is what a test may want to know of a block volume, the API's answers
// aside.
type Volume struct {
	ID      string
	Project string
	Name    string
	Region  string
	// Size is in GiB.
	Size           int
	FilesystemType string
	Description    string
	// Droplet is the id of the one it is attached to; 0: none.
	Droplet int64
	Tags    []string
}

// VolumeSnapshot is the same for a snapshot of a volume.
type VolumeSnapshot struct {
	ID      string
	Project string
	Name    string
	// Volume is the id of the volume, which may be gone.
	Volume string
	Region string
	// MinDiskSize is the size of a volume made from it, in GiB.
	MinDiskSize int
	Tags        []string
}

// Share is the same for an NFS share.
type Share struct {
	ID      string
	Project string
	Name    string
	Region  string
	// SizeGiB is its size in GiB.
	SizeGiB int
	Status  string
	// VPCs are the ids of those it is attached to.
	VPCs []string
	// Tier is standard or high.
	Tier string
}

// ShareSnapshot is the same for a snapshot of a share.
type ShareSnapshot struct {
	ID      string
	Project string
	Name    string
	Share   string
	SizeGiB int
	Status  string
}

// inspectVolumes calls for every project as it is now, in the order of their names.
func (s *Service) inspectVolumes(do func(name string, p *project)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.current()
	for _, name := range slices.Sorted(maps.Keys(current)) {
		do(name, current[name])
	}
}

// Volumes returns all block volumes, the oldest of each project first.
func (s *Service) Volumes() []Volume {
	var all []Volume
	s.inspectVolumes(func(name string, p *project) {
		for _, v := range byAge(p.Volumes) {
			all = append(all, Volume{
				ID: v.ID, Project: name, Name: v.Name, Region: v.Region, Size: v.Size, FilesystemType: v.FilesystemType,
				Description: v.Description, Droplet: v.Droplet, Tags: v.tags(),
			})
		}
	})
	return all
}

// VolumeSnapshots returns all snapshots of volumes, the oldest first.
func (s *Service) VolumeSnapshots() []VolumeSnapshot {
	var all []VolumeSnapshot
	s.inspectVolumes(func(name string, p *project) {
		for _, v := range byAge(p.VolumeSnapshots) {
			all = append(all, VolumeSnapshot{
				ID: v.ID, Project: name, Name: v.Name, Volume: v.Volume, Region: v.Region, MinDiskSize: v.MinDiskSize, Tags: v.tags(),
			})
		}
	})
	return all
}

// Shares returns all NFS shares, the oldest first.
func (s *Service) Shares() []Share {
	var all []Share
	s.inspectVolumes(func(name string, p *project) {
		for _, v := range byAge(p.Shares) {
			all = append(all, Share{
				ID: v.ID, Project: name, Name: v.Name, Region: v.Region, SizeGiB: v.SizeGiB, Status: v.Status,
				VPCs: slices.Clone(v.VPCs), Tier: v.Tier,
			})
		}
	})
	return all
}

// ShareSnapshots returns all snapshots of shares, the oldest first.
func (s *Service) ShareSnapshots() []ShareSnapshot {
	var all []ShareSnapshot
	s.inspectVolumes(func(name string, p *project) {
		for _, v := range byAge(p.ShareSnapshots) {
			all = append(all, ShareSnapshot{ID: v.ID, Project: name, Name: v.Name, Share: v.Share, SizeGiB: v.SizeGiB, Status: v.Status})
		}
	})
	return all
}

// changeRecord does something to the record with an id behind the API's back. It
// reports whether there is one.
func changeRecord[T any](s *Service, of func(*project) map[string]T, id string, do func(*project, T)) bool {
	found := false
	s.inspectVolumes(func(_ string, p *project) {
		if record, ok := of(p)[id]; ok {
			do(p, record)
			found = true
		}
	})
	return found
}

func (s *Service) changeVolume(id string, do func(*project, *volume)) bool {
	return changeRecord(s, func(p *project) map[string]*volume { return p.Volumes }, id, do)
}

func (s *Service) changeShare(id string, do func(*project, *share)) bool {
	return changeRecord(s, func(p *project) map[string]*share { return p.Shares }, id, do)
}

// DeleteVolume removes a volume at once, attached or not. It reports whether
// there is such a volume, as the functions below do for theirs.
func (s *Service) DeleteVolume(id string) bool {
	return s.changeVolume(id, func(p *project, _ *volume) { delete(p.Volumes, id) })
}

// AttachVolume attaches a volume to a Droplet at once, wherever it was before; 0
// detaches it. No rule is checked.
func (s *Service) AttachVolume(id string, droplet int64) bool {
	return s.changeVolume(id, func(_ *project, v *volume) { v.Droplet = droplet })
}

// SetVolumeSize changes a volume's size, in GiB; it may shrink.
func (s *Service) SetVolumeSize(id string, size int) bool {
	return s.changeVolume(id, func(_ *project, v *volume) { v.Size = size })
}

// SetVolumeTags replaces a volume's tags.
func (s *Service) SetVolumeTags(id string, tags ...string) bool {
	return s.changeVolume(id, func(p *project, v *volume) { p.retag(&v.object, tags) })
}

// DeleteVolumeSnapshot removes a snapshot of a volume at once.
func (s *Service) DeleteVolumeSnapshot(id string) bool {
	of := func(p *project) map[string]*volumeSnapshot { return p.VolumeSnapshots }
	return changeRecord(s, of, id, func(p *project, _ *volumeSnapshot) { delete(p.VolumeSnapshots, id) })
}

// SetVolumeSnapshotTags replaces the tags of a snapshot of a volume.
func (s *Service) SetVolumeSnapshotTags(id string, tags ...string) bool {
	of := func(p *project) map[string]*volumeSnapshot { return p.VolumeSnapshots }
	return changeRecord(s, of, id, func(p *project, v *volumeSnapshot) { p.retag(&v.object, tags) })
}

// retag replaces an object's tags, which are made if they don't exist.
func (p *project) retag(o *object, tags []string) {
	o.Tags = nil
	for _, name := range tags {
		p.addTag(o, p.ensureTag(name))
	}
}

// DeleteShare removes a share at once, and its snapshots.
func (s *Service) DeleteShare(id string) bool {
	return s.changeShare(id, func(p *project, v *share) { p.removeShare(v) })
}

// SetShareStatus gives a share a status in the vendor's words, e.g. "FAILED".
func (s *Service) SetShareStatus(id, status string) bool {
	return s.changeShare(id, func(_ *project, v *share) { v.Status = status })
}

// SetShareSize changes a share's size, in GiB; it may shrink.
func (s *Service) SetShareSize(id string, size int) bool {
	return s.changeShare(id, func(_ *project, v *share) { v.SizeGiB = size })
}

// SetShareVPCs attaches a share to these VPCs and no others, whatever they are.
func (s *Service) SetShareVPCs(id string, vpcs ...string) bool {
	return s.changeShare(id, func(_ *project, v *share) {
		v.VPCs, v.Status = slices.Clone(vpcs), shareActive
		if len(vpcs) == 0 {
			v.Status = shareInactive
		}
	})
}

// DeleteShareSnapshot removes a snapshot of a share at once.
func (s *Service) DeleteShareSnapshot(id string) bool {
	of := func(p *project) map[string]*shareSnapshot { return p.ShareSnapshots }
	return changeRecord(s, of, id, func(p *project, _ *shareSnapshot) { delete(p.ShareSnapshots, id) })
}
