// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The words of a share's status. An inactive share is attached to no VPC.
const (
	shareCreating = "CREATING"
	shareActive   = "ACTIVE"
	shareInactive = "INACTIVE"
	shareFailed   = "FAILED"
	shareDeleted  = "DELETED"
)

// shareTier is a performance tier and the sizes it takes, in GiB.
type shareTier struct {
	Tier    string `json:"tier"`
	MinSize int    `json:"min_size_gib"`
	MaxSize int    `json:"max_size_gib"`
}

// shareTiers and shareRegions are those in godo's test of GET /v2/nfs/options;
// the real ones differ between accounts.
func shareTiers() []shareTier {
	return []shareTier{{tierStandard, 50, 10240}, {tierHigh, 500, 10240}}
}

func shareRegions() []string { return []string{"atl1", "nyc2"} }

const (
	tierStandard = "standard"
	tierHigh     = "high"
	// tierPrefix is before a tier's name, in capitals, in answers: requests and
	// answers word it differently (terraform-provider-digitalocean#1551).
	tierPrefix = "PERFORMANCE_TIER_"
)

// share is an NFS share's record.
type share struct {
	object
	ID      string `json:"id"`
	Name    string `json:"name"`
	SizeGiB int    `json:"size_gib"`
	Region  string `json:"region"`
	Status  string `json:"status"`
	// VPCs are the ids of those that it is attached to. Nothing is known of
	// Droplets: all in a VPC can mount it.
	VPCs []string `json:"vpcs"`
	Tier string   `json:"tier"`
	// Host is its address, shown once it was active, as the path is.
	Host       string `json:"host"`
	ManagerURN string `json:"manager_urn"`
}

type wireShare struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	SizeGiB         int      `json:"size_gib"`
	Region          string   `json:"region"`
	Status          string   `json:"status"`
	CreatedAt       string   `json:"created_at"`
	VPCIDs          []string `json:"vpc_ids"`
	PerformanceTier string   `json:"performance_tier"`
	MountPath       string   `json:"mount_path"`
	Host            string   `json:"host"`
	AccessPoints    []any    `json:"access_points"`
	ManagerURN      string   `json:"manager_urn,omitempty"`
}

func shareRoutes() []route {
	return []route{
		{"GET", "/nfs", http.StatusOK, listShares},
		{"POST", "/nfs", http.StatusCreated, createShare},
		{"GET", "/nfs/options", http.StatusOK, getShareOptions},
		{"GET", "/nfs/snapshots", http.StatusOK, listShareSnapshots},
		{"GET", "/nfs/snapshots/{id}", http.StatusOK, getShareSnapshot},
		{"DELETE", "/nfs/snapshots/{id}", http.StatusNoContent, deleteShareSnapshot},
		{"GET", "/nfs/actions/{id}", http.StatusOK, getShareAction},
		{"GET", "/nfs/{id}", http.StatusOK, getShare},
		{"DELETE", "/nfs/{id}", http.StatusOK, deleteShare},
		{"POST", "/nfs/{id}/actions", http.StatusCreated, actOnShare},
	}
}

func (s *share) wire() wireShare {
	w := wireShare{
		ID: s.ID, Name: s.Name, SizeGiB: s.SizeGiB, Region: s.Region, Status: s.Status, CreatedAt: stamp(s.Created),
		VPCIDs: append([]string{}, s.VPCs...), PerformanceTier: tierPrefix + strings.ToUpper(s.Tier),
		AccessPoints: []any{}, ManagerURN: s.ManagerURN,
	}
	if s.Status == shareActive || s.Status == shareInactive {
		w.Host, w.MountPath = s.Host, "/123456/"+s.ID
	}
	return w
}

func getShareOptions(*call) (any, error) {
	return map[string]any{"performance_tiers": shareTiers(), "supported_regions": shareRegions()}, nil
}

// share finds the path's share. The query's region is only kept for
// compatibility and changes nothing.
func (c *call) share() (*share, error) {
	s := c.p.Shares[c.id()]
	if s == nil || c.missing(&s.object) {
		return nil, notFound()
	}
	return s, nil
}

// listPaged answers a list of shares or their snapshots: it has no links, only
// the numbers of the page.
func listPaged[T any](c *call, key string, records []T, wire func(T) any) (any, error) {
	page, perPage, err := c.page()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		key:    pageOf(records, page, perPage, wire),
		"meta": map[string]any{"total": len(records), "per_page": perPage, "page": page},
	}, nil
}

func listShares(c *call) (any, error) {
	name, region := c.query.Get("name"), c.query.Get("region")
	all := slices.DeleteFunc(visible(c, byAge(c.p.Shares)), func(s *share) bool {
		return name != "" && s.Name != name || region != "" && s.Region != region
	})
	return listPaged(c, "shares", all, func(s *share) any { return s.wire() })
}

func getShare(c *call) (any, error) {
	s, err := c.share()
	if err != nil {
		return nil, err
	}
	return map[string]any{"share": s.wire()}, nil
}

// createShare begins the making of a share. Names are not unique.
func createShare(c *call) (any, error) {
	var request struct {
		Name       string   `json:"name"`
		SizeGiB    int      `json:"size_gib"`
		Region     string   `json:"region"`
		VPCIDs     []string `json:"vpc_ids"`
		Tier       string   `json:"performance_tier"`
		ManagerURN string   `json:"manager_urn"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Tier == "" {
		request.Tier = tierStandard
	}
	switch {
	case !storageName.MatchString(request.Name):
		return nil, badRequest("The value for 'name' must have at most 64 lower-case letters, digits and dashes and begin with a letter.")
	case !slices.Contains(shareRegions(), request.Region):
		return nil, badRequest("The value for 'region' must be one of %s.", strings.Join(shareRegions(), ", "))
	case len(request.VPCIDs) == 0:
		return nil, badRequest("The value for 'vpc_ids' must not be empty.")
	}
	if err := checkShareSize(request.Tier, request.SizeGiB); err != nil {
		return nil, err
	}
	for _, id := range request.VPCIDs {
		if err := c.checkShareVPC(id, request.Region); err != nil {
			return nil, err
		}
	}
	slices.Sort(request.VPCIDs)
	n := next(&c.p.NextShare)
	s := &share{
		object: c.newObject(nil), ID: newUUID(), Name: request.Name, SizeGiB: request.SizeGiB, Region: request.Region,
		Status: shareCreating, VPCs: slices.Compact(request.VPCIDs), Tier: request.Tier, ManagerURN: request.ManagerURN,
		Host: fmt.Sprintf("10.128.%d.%d", 32+n/250%200, 2+n%250),
	}
	c.p.Shares[s.ID] = s
	answer := map[string]any{"share": s.wire()}
	c.actOnIt(s, "CREATE_SHARE", c.s.options.Boot/2, volumeEffect{Create: true})
	return answer, nil
}

// checkShareSize reports a size that a tier doesn't take.
func checkShareSize(tier string, size int) error {
	tiers := shareTiers()
	i := slices.IndexFunc(tiers, func(t shareTier) bool { return t.Tier == tier })
	switch {
	case i < 0:
		return badRequest("The value for 'performance_tier' must be standard or high.")
	case size < tiers[i].MinSize:
		return badRequest("The value for 'size_gib' must be greater than or equal to %dGib.", tiers[i].MinSize)
	case size > tiers[i].MaxSize:
		return badRequest("The value for 'size_gib' must be less than or equal to %dGib.", tiers[i].MaxSize)
	}
	return nil
}

// checkShareVPC reports a VPC that a share in the region can't be attached to.
func (c *call) checkShareVPC(id, region string) error {
	v := c.findVPC(id)
	switch {
	case v == nil:
		return badRequest("The VPC '%s' does not exist.", id)
	case v.Region != region:
		return badRequest("The VPC '%s' is not in the region of the share.", id)
	}
	return nil
}

// deleteShare answers with the share and the action, as in godo's tests; the
// description has an older answer without a body. The share is gone at once.
func deleteShare(c *call) (any, error) {
	s, err := c.share()
	if err != nil {
		return nil, err
	}
	if c.query.Get("delete_snapshots") != "true" && len(c.p.shareSnapshotsOf(s.ID)) > 0 {
		return nil, refused(http.StatusPreconditionFailed, "precondition_failed", "The share has active snapshots.")
	}
	a := c.actOnIt(s, "DELETE_SHARE", 0, volumeEffect{Delete: true})
	w := s.wire()
	w.Status = shareDeleted
	return map[string]any{"share": w, "action": c.wireShareAction(a)}, nil
}

// removeShare takes a share away with its snapshots.
func (p *project) removeShare(s *share) {
	maps.DeleteFunc(p.ShareSnapshots, func(_ string, snapshot *shareSnapshot) bool { return snapshot.Share == s.ID })
	delete(p.Shares, s.ID)
}
