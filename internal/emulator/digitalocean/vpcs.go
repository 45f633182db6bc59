// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
)

// vpc is a private network of one region.
type vpc struct {
	object
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Region      string `json:"region"`
	IPRange     string `json:"ip_range"`
	Default     bool   `json:"default"`
	// NextHost numbers the addresses in it; hosts are not used again.
	NextHost int `json:"next_host"`
}

func vpcRoutes() []route {
	return []route{
		{"GET", "/vpcs", http.StatusOK, listVPCs},
		{"POST", "/vpcs", http.StatusCreated, createVPC},
		{"GET", "/vpcs/{id}", http.StatusOK, getVPC},
		{"PUT", "/vpcs/{id}", http.StatusOK, updateVPC},
		{"PATCH", "/vpcs/{id}", http.StatusOK, updateVPC},
		{"DELETE", "/vpcs/{id}", http.StatusNoContent, deleteVPC},
		{"GET", "/vpcs/{id}/members", http.StatusOK, listVPCMembers},
	}
}

// firstHost leaves the network's own addresses and the gateway out.
const firstHost = 2

// defaultVPC finds the default VPC of a region, or makes it: the real API too
// has one once something was made there.
func (s *Service) defaultVPC(p *project, region string, base object) *vpc {
	for _, v := range p.VPCs {
		if v.Default && v.Region == region {
			return v
		}
	}
	v := &vpc{object: base, ID: newUUID(), Name: "default-" + region, Region: region, Default: true, NextHost: firstHost, IPRange: s.newRange()}
	p.VPCs[v.ID] = v
	return v
}

// newRange is a private range of 4096 addresses that no other VPC has.
func (s *Service) newRange() string {
	n := next(&s.store.NextVPC)
	return fmt.Sprintf("10.%d.%d.0/20", 100+n/16%100, n%16*16)
}

// newHost gives out an address in the VPC.
func (v *vpc) newHost() (address, netmask, gateway string) {
	prefix, err := netip.ParsePrefix(v.IPRange)
	if err != nil {
		return "", "", ""
	}
	base := prefix.Masked().Addr().As4()
	first := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	// More hosts than addresses would need an error that no API describes, and
	// no test has them: they begin anew.
	size := 1 << (32 - prefix.Bits())
	host := firstHost + (next(&v.NextHost)-firstHost)%max(1, size-firstHost-1)
	mask := ^uint32(0) << (32 - prefix.Bits())
	return dotted(first + uint32(host)), dotted(mask), dotted(first + 1) //nolint:gosec // Hosts are smaller than 2^16.
}

func dotted(n uint32) string {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

func (v *vpc) wire() wireVPC {
	return wireVPC{
		ID: v.ID, URN: "do:vpc:" + v.ID, Name: v.Name, Description: v.Description, Region: v.Region,
		IPRange: v.IPRange, Default: v.Default, CreatedAt: stamp(v.Created),
	}
}

// findVPC finds a VPC; nil: there is none.
func (c *call) findVPC(id string) *vpc {
	v := c.p.VPCs[id]
	if v == nil || c.missing(&v.object) {
		return nil
	}
	return v
}

func listVPCs(c *call) (any, error) {
	return list(c, "vpcs", visible(c, byAge(c.p.VPCs)), func(v *vpc) any { return v.wire() })
}

var vpcName = regexp.MustCompile(`^[a-zA-Z0-9\-.]{1,255}$`)

func createVPC(c *call) (any, error) {
	var request struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Region      string `json:"region"`
		IPRange     string `json:"ip_range"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	region, ok := c.s.catalog.findRegion(request.Region)
	switch {
	case !vpcName.MatchString(request.Name):
		return nil, unprocessable("name is invalid")
	case !ok || !region.Available:
		return nil, unprocessable("region is invalid")
	case slices.ContainsFunc(byID(c.p.VPCs), func(v *vpc) bool { return v.Name == request.Name }):
		return nil, unprocessable("a VPC with the name %s already exists", request.Name)
	}
	if request.IPRange != "" {
		if err := c.checkRange(request.IPRange); err != nil {
			return nil, err
		}
	}
	// The first VPC of a region without one becomes its default.
	isDefault := !slices.ContainsFunc(byID(c.p.VPCs), func(v *vpc) bool { return v.Region == region.Slug })
	v := &vpc{object: c.newObject(nil), ID: newUUID(), Name: request.Name, Description: request.Description,
		Region: region.Slug, IPRange: request.IPRange, Default: isDefault, NextHost: firstHost}
	if v.IPRange == "" {
		v.IPRange = c.s.newRange()
	}
	c.p.VPCs[v.ID] = v
	return map[string]any{"vpc": v.wire()}, nil
}

// checkRange refuses what is no private range of /16 to /28, and overlaps.
func (c *call) checkRange(text string) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix != prefix.Masked() || !prefix.Addr().Is4() || !prefix.Addr().IsPrivate() ||
		prefix.Bits() < 16 || prefix.Bits() > 28 {
		return unprocessable("ip_range is invalid: it must be a private range between /16 and /28")
	}
	for _, v := range c.p.VPCs {
		if other, err := netip.ParsePrefix(v.IPRange); err == nil && other.Overlaps(prefix) {
			return unprocessable("This range/size overlaps with another VPC network in your account")
		}
	}
	return nil
}

// vpc finds the VPC of the path.
func (c *call) vpc() (*vpc, error) {
	v := c.findVPC(c.id())
	if v == nil {
		return nil, notFound()
	}
	return v, nil
}

func getVPC(c *call) (any, error) {
	v, err := c.vpc()
	if err != nil {
		return nil, err
	}
	return map[string]any{"vpc": v.wire()}, nil
}

func updateVPC(c *call) (any, error) {
	v, err := c.vpc()
	if err != nil {
		return nil, err
	}
	var request struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
		Default     *bool   `json:"default"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Name != nil {
		if !vpcName.MatchString(*request.Name) {
			return nil, unprocessable("name is invalid")
		}
		v.Name = *request.Name
	}
	if request.Description != nil {
		v.Description = *request.Description
	}
	if request.Default != nil && *request.Default {
		for _, other := range c.p.VPCs {
			if other.Region == v.Region {
				other.Default = other == v
			}
		}
	}
	return map[string]any{"vpc": v.wire()}, nil
}

func deleteVPC(c *call) (any, error) {
	v, err := c.vpc()
	switch {
	case err != nil:
		return nil, err
	case v.Default:
		return nil, forbidden("Can not delete default VPCs")
	case len(c.members(v)) > 0, c.p.hasShares(v.ID):
		return nil, conflict("Can not delete VPC with members")
	}
	delete(c.p.VPCs, v.ID)
	return nil, nil
}

// hasShares tells whether a share is attached to a VPC.
func (p *project) hasShares(id string) bool {
	return slices.ContainsFunc(byID(p.Shares), func(s *share) bool { return slices.Contains(s.VPCs, id) })
}

// members are the Droplets in a VPC.
func (c *call) members(v *vpc) []*droplet {
	return slices.DeleteFunc(byID(c.p.Droplets), func(d *droplet) bool { return d.VPC != v.ID })
}

func listVPCMembers(c *call) (any, error) {
	v, err := c.vpc()
	if err != nil {
		return nil, err
	}
	return list(c, "members", visible(c, c.members(v)), func(d *droplet) any {
		return map[string]any{"urn": fmt.Sprintf("do:droplet:%d", d.ID), "name": d.Name, "created_at": stamp(d.Created)}
	})
}
