// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// The resource types of actions on shares.
const (
	resourceShare    = "SHARE"
	resourceSnapshot = "SNAPSHOT"
)

// wireShareAction is an action as the paths below /v2/nfs have it. The id is text
// there, but a number, because doctl reads it as one and then asks
// /v2/actions/{id}, where the same action is in the common form.
type wireShareAction struct {
	ID           string     `json:"id"`
	Status       string     `json:"status"`
	Type         string     `json:"type"`
	StartedAt    string     `json:"started_at"`
	CompletedAt  *string    `json:"completed_at,omitempty"`
	ResourceID   string     `json:"resource_id"`
	ResourceType string     `json:"resource_type"`
	Region       wireRegion `json:"region"`
	RegionSlug   string     `json:"region_slug"`
}

func (c *call) wireShareAction(a *action) wireShareAction {
	common := c.wireAction(a)
	w := wireShareAction{
		ID: strconv.FormatInt(a.ID, 10), Status: "IN_PROGRESS", Type: a.Type, StartedAt: common.StartedAt, CompletedAt: common.CompletedAt,
		ResourceID: a.Volume, ResourceType: a.ResourceType, Region: common.Region, RegionSlug: a.Region,
	}
	if a.ResourceType == resourceSnapshot {
		w.ResourceID = a.Effect.Volume.Snapshot
	}
	if a.Done {
		w.Status = "COMPLETED"
		if a.Failed {
			w.Status = "ACTION_FAILED"
		}
	}
	return w
}

// finishShare carries out an action's effect on a share.
func (p *project) finishShare(s *share, a *action) {
	e := a.Effect.Volume
	if e.Create && a.Failed {
		s.Status = shareFailed
	}
	if snapshot := p.ShareSnapshots[e.Snapshot]; snapshot != nil {
		snapshot.Status = shareActive
		if a.Failed {
			snapshot.Status = shareFailed
		}
	}
	if a.Failed {
		return
	}
	switch {
	case e.Delete:
		p.removeShare(s)
	case e.Size > s.SizeGiB:
		s.SizeGiB = e.Size
	case e.Tier != "":
		s.Tier = e.Tier
	}
	if e.RemoveVPC != "" {
		s.VPCs = slices.DeleteFunc(s.VPCs, func(id string) bool { return id == e.RemoveVPC })
	}
	if e.AddVPC != "" && !slices.Contains(s.VPCs, e.AddVPC) {
		s.VPCs = append(s.VPCs, e.AddVPC)
	}
	if e.Create || e.AddVPC != "" || e.RemoveVPC != "" {
		s.Status = shareActive
		if len(s.VPCs) == 0 {
			s.Status = shareInactive
		}
	}
}

// actOnIt begins an action on a share.
func (c *call) actOnIt(s *share, what string, takes time.Duration, e volumeEffect) *action {
	a := action{Type: what, ResourceType: resourceShare, Region: s.Region, Volume: s.ID, Effect: effect{Volume: &e}}
	if e.Snapshot != "" {
		a.ResourceType = resourceSnapshot
	}
	return c.newAction(a, takes)
}

// shareParams are the parameters of all actions.
type shareParams struct {
	SizeGiB int    `json:"size_gib"`
	Name    string `json:"name"`
	VPC     string `json:"vpc_id"`
	OldVPC  string `json:"old_vpc_id"`
	NewVPC  string `json:"new_vpc_id"`
	Tier    string `json:"performance_tier"`
}

// actOnShare takes the region of older clients, and the empty one of newer.
func actOnShare(c *call) (any, error) {
	s, err := c.share()
	if err != nil {
		return nil, err
	}
	var request struct {
		Type   string          `json:"type"`
		Params json.RawMessage `json:"params"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var params shareParams
	if len(request.Params) > 0 {
		if err := json.Unmarshal(request.Params, &params); err != nil {
			return nil, badRequest("The value for 'params' is invalid.")
		}
	}
	if s.Status != shareActive && s.Status != shareInactive {
		return nil, badRequest("The share is not active.")
	}
	what, e, err := c.shareEffect(s, request.Type, params)
	if err != nil {
		return nil, err
	}
	if request.Type == "snapshot" {
		e.Snapshot = c.newShareSnapshot(s, params.Name).ID
	}
	return map[string]any{"action": c.wireShareAction(c.actOnIt(s, what, c.s.options.Boot/4, e))}, nil
}

// shareEffect finds what a request asks for, and refuses what can't be. Of the
// refusals the real words are known for the tier only.
func (c *call) shareEffect(s *share, what string, params shareParams) (command string, e volumeEffect, err error) {
	attached := func(id string) bool { return slices.Contains(s.VPCs, id) }
	switch what {
	case "resize":
		if params.SizeGiB <= s.SizeGiB {
			return "", e, badRequest("The value for 'size_gib' must be greater than the current size.")
		}
		return "RESIZE_SHARE", volumeEffect{Size: params.SizeGiB}, checkShareSize(s.Tier, params.SizeGiB)
	case "snapshot":
		if params.Name == "" {
			return "", e, badRequest("The value for 'name' must not be empty.")
		}
		return "CREATE_SNAPSHOT", e, nil
	case "attach":
		if attached(params.VPC) {
			return "", e, badRequest("The share is already attached to the VPC.")
		}
		return "ATTACH_SHARE", volumeEffect{AddVPC: params.VPC}, c.checkShareVPC(params.VPC, s.Region)
	case "detach":
		if !attached(params.VPC) {
			return "", e, badRequest("The share is not attached to the VPC.")
		}
		return "DETACH_SHARE", volumeEffect{RemoveVPC: params.VPC}, nil
	case "reassign":
		if !attached(params.OldVPC) || attached(params.NewVPC) {
			return "", e, badRequest("The share must be attached to the old VPC and not to the new one.")
		}
		return "REASSIGN_SHARE", volumeEffect{RemoveVPC: params.OldVPC, AddVPC: params.NewVPC}, c.checkShareVPC(params.NewVPC, s.Region)
	case "switch_performance_tier":
		switch {
		case params.Tier == s.Tier:
			return "", e, badRequest("share is already in the requested performance tier")
		case s.Tier == tierHigh:
			return "", e, badRequest("The performance tier can't be lowered.")
		}
		return "SWITCH_PERFORMANCE_TIER", volumeEffect{Tier: params.Tier}, checkShareSize(params.Tier, s.SizeGiB)
	}
	return "", e, badRequest("The value for 'type' is invalid.")
}

// getShareAction finds actions on shares that are gone, too.
func getShareAction(c *call) (any, error) {
	a := c.p.Actions[c.number(0)]
	if a == nil || a.ResourceType != resourceShare && a.ResourceType != resourceSnapshot {
		return nil, notFound()
	}
	return map[string]any{"action": c.wireShareAction(a)}, nil
}
