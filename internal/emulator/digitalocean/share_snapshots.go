// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import "slices"

// shareSnapshot is a snapshot of a share. Its status has the words of a share's;
// names are not known to be unique.
type shareSnapshot struct {
	object
	ID   string `json:"id"`
	Name string `json:"name"`
	// SizeGiB is the share's size at that time.
	SizeGiB int    `json:"size_gib"`
	Region  string `json:"region"`
	Status  string `json:"status"`
	Share   string `json:"share"`
}

type wireShareSnapshot struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	SizeGiB   int    `json:"size_gib"`
	Region    string `json:"region"`
	Status    string `json:"status"`
	CreatedAt string `json:"created_at"`
	ShareID   string `json:"share_id"`
}

func (s *shareSnapshot) wire() wireShareSnapshot {
	return wireShareSnapshot{
		ID: s.ID, Name: s.Name, SizeGiB: s.SizeGiB, Region: s.Region, Status: s.Status, CreatedAt: stamp(s.Created), ShareID: s.Share,
	}
}

// newShareSnapshot is a snapshot whose making has just begun.
func (c *call) newShareSnapshot(s *share, name string) *shareSnapshot {
	snapshot := &shareSnapshot{
		object: c.newObject(nil), ID: newUUID(), Name: name, SizeGiB: s.SizeGiB, Region: s.Region, Status: shareCreating, Share: s.ID,
	}
	c.p.ShareSnapshots[snapshot.ID] = snapshot
	return snapshot
}

// shareSnapshotsOf are a share's snapshots that did not fail.
func (p *project) shareSnapshotsOf(share string) []*shareSnapshot {
	return slices.DeleteFunc(byAge(p.ShareSnapshots), func(s *shareSnapshot) bool { return s.Share != share || s.Status == shareFailed })
}

func listShareSnapshots(c *call) (any, error) {
	share, region := c.query.Get("share_id"), c.query.Get("region")
	all := slices.DeleteFunc(visible(c, byAge(c.p.ShareSnapshots)), func(s *shareSnapshot) bool {
		return share != "" && s.Share != share || region != "" && s.Region != region
	})
	return listPaged(c, "snapshots", all, func(s *shareSnapshot) any { return s.wire() })
}

// shareSnapshot finds the path's snapshot.
func (c *call) shareSnapshot() (*shareSnapshot, error) {
	s := c.p.ShareSnapshots[c.id()]
	if s == nil || c.missing(&s.object) {
		return nil, notFound()
	}
	return s, nil
}

func getShareSnapshot(c *call) (any, error) {
	s, err := c.shareSnapshot()
	if err != nil {
		return nil, err
	}
	return map[string]any{"snapshot": s.wire()}, nil
}

func deleteShareSnapshot(c *call) (any, error) {
	s, err := c.shareSnapshot()
	if err != nil {
		return nil, err
	}
	delete(c.p.ShareSnapshots, s.ID)
	return nil, nil
}
