// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The words of a Droplet's status. "archive" is never seen.
const (
	statusNew    = "new"
	statusActive = "active"
	statusOff    = "off"
)

// droplet is a Droplet's record; its JSON is put together when it is asked for.
type droplet struct {
	object
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Size   string `json:"size"`
	Region string `json:"region"`
	Image  int64  `json:"image"`
	// Disk is in GB; it may be smaller than the size's after a resize.
	Disk int    `json:"disk"`
	VPC  string `json:"vpc"`
	// Public, Private and IPv6 are addresses; empty: it has none.
	Public     string `json:"public"`
	Private    string `json:"private"`
	PrivateNet string `json:"private_net"`
	PrivateGW  string `json:"private_gateway"`
	IPv6       string `json:"ipv6"`
	Backups    bool   `json:"backups"`
	// Policy is nil when none was chosen.
	Policy     *backupPolicy `json:"policy,omitempty"`
	Monitoring bool          `json:"monitoring"`
	Agent      bool          `json:"agent"`
	UserData   string        `json:"user_data"`
	SSHKeys    []int64       `json:"ssh_keys"`
}

func dropletRoutes() []route {
	return []route{
		{"GET", "/droplets", http.StatusOK, listDroplets},
		{"POST", "/droplets", http.StatusAccepted, createDroplets},
		{"DELETE", "/droplets", http.StatusNoContent, deleteByTag},
		{"GET", "/droplets/{id}", http.StatusOK, getDroplet},
		{"DELETE", "/droplets/{id}", http.StatusNoContent, deleteDroplet},
		{"GET", "/droplets/{id}/snapshots", http.StatusOK, listDropletSnapshots},
		{"GET", "/droplets/{id}/actions", http.StatusOK, listDropletActions},
		{"POST", "/droplets/{id}/actions", http.StatusCreated, actOnDroplet},
		{"GET", "/droplets/{id}/actions/{id}", http.StatusOK, getDropletAction},
		{"POST", "/droplets/actions", http.StatusCreated, actByTag},
	}
}

func (c *call) wireDroplet(d *droplet) wireDroplet {
	size, _ := c.s.catalog.findSize(d.Size)
	w := wireDroplet{
		ID: d.ID, Name: d.Name, Memory: size.Memory, VCPUs: size.VCPUs, Disk: d.Disk,
		DiskInfo:  slices.Clone(size.DiskInfo),
		Locked:    c.p.locked(d.ID),
		Status:    d.Status,
		CreatedAt: stamp(d.Created),
		Features:  d.features(),
		BackupIDs: []int64{}, SnapshotIDs: []int64{},
		VolumeIDs: c.p.volumesOf(d.ID),
		Size:      size, SizeSlug: d.Size, GPU: size.GPU,
		Networks: wireNetworks{V4: []wireNetworkV4{}, V6: []wireNetworkV6{}},
		Region:   c.s.catalog.region(d.Region),
		Tags:     d.tags(),
		VPCUUID:  d.VPC,

		NextBackupWindow: d.window(c.now),
	}
	if len(w.DiskInfo) > 0 {
		w.DiskInfo[0].Size.Amount = d.Disk
	}
	for _, i := range c.p.dropletSnapshots(d.ID) {
		w.SnapshotIDs = append(w.SnapshotIDs, i.ID)
	}
	// A Droplet outlives the image it was made from.
	w.Image = wireImage{
		ID: d.Image, Regions: []string{}, Tags: []string{}, Type: "base", Distribution: "Unknown",
		Status: "deleted", CreatedAt: stamp(d.Created),
	}
	if i := c.imageByID(d.Image); i != nil {
		w.Image = i.wire()
	}
	// Addresses show once the Droplet was placed.
	if d.Status != statusNew {
		w.Networks = d.networks()
	}
	return w
}

func (d *droplet) features() []string {
	features := []string{}
	for _, f := range []struct {
		has  bool
		word string
	}{
		{d.Backups, "backups"}, {d.IPv6 != "", "ipv6"}, {d.Monitoring, "monitoring"}, {d.Agent, "droplet_agent"},
		{d.Private != "", "private_networking"},
	} {
		if f.has {
			features = append(features, f.word)
		}
	}
	return features
}

// networks are the addresses: the private one comes first, since clients must
// not rely on the order.
func (d *droplet) networks() wireNetworks {
	w := wireNetworks{V4: []wireNetworkV4{}, V6: []wireNetworkV6{}}
	if d.Private != "" {
		w.V4 = append(w.V4, wireNetworkV4{IPAddress: d.Private, Netmask: d.PrivateNet, Gateway: d.PrivateGW, Type: "private"})
	}
	if d.Public != "" {
		netmask, gateway := "255.255.255.0", dotted(documentation+1)
		if !strings.HasPrefix(d.Public, "203.0.113.") {
			netmask, gateway = "255.254.0.0", dotted(benchmark+1)
		}
		w.V4 = append(w.V4, wireNetworkV4{IPAddress: d.Public, Netmask: netmask, Gateway: gateway, Type: "public"})
	}
	if d.IPv6 != "" {
		gateway := d.IPv6
		if address, err := netip.ParseAddr(d.IPv6); err == nil {
			gateway = address.Prev().String()
		}
		w.V6 = append(w.V6, wireNetworkV6{IPAddress: d.IPv6, Netmask: 64, Gateway: gateway, Type: "public"})
	}
	return w
}

const (
	// documentation is 203.0.113.0 (RFC 5737), benchmark 198.18.0.0 (RFC 2544):
	// addresses that are nobody's.
	documentation = 203<<24 | 113<<8
	benchmark     = 198<<24 | 18<<16
	// documentationHosts and benchmarkHosts are how many each has for Droplets.
	documentationHosts = 253
	benchmarkHosts     = 1<<17 - 3
)

// newPublic gives out a public IPv4 address.
func (s *Service) newPublic() string {
	n := next(&s.store.NextAddress)
	if n < documentationHosts {
		return dotted(documentation + firstHost + uint32(n)) //nolint:gosec // It is small.
	}
	return dotted(benchmark + firstHost + uint32((n-documentationHosts)%benchmarkHosts)) //nolint:gosec // As above.
}

// addIPv6 gives a Droplet an address of a network of its own in 2001:db8::/32,
// whose gateway is the address before it.
func (s *Service) addIPv6(d *droplet) {
	n := d.ID
	d.IPv6 = netip.AddrFrom16([16]byte{
		0x20, 0x01, 0x0d, 0xb8, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 15: firstHost,
	}).String()
}

// findDroplet finds a Droplet that the call may see; nil: there is none.
func (c *call) findDroplet(id int64) *droplet {
	d := c.p.Droplets[id]
	if d == nil || c.missing(&d.object) {
		return nil
	}
	return d
}

// droplet finds the Droplet of the path.
func (c *call) droplet() (*droplet, error) {
	d := c.findDroplet(c.number(0))
	if d == nil {
		return nil, notFound()
	}
	return d, nil
}

// listDroplets lists by ids; in which order the real API does isn't known.
func listDroplets(c *call) (any, error) {
	tagName, name, kind := c.query.Get("tag_name"), c.query.Get("name"), c.query.Get("type")
	if tagName != "" && (name != "" || kind != "") {
		return nil, badRequest("tag_name can't be combined with name or type")
	}
	if !slices.Contains([]string{"", "droplets", "gpus"}, kind) {
		return nil, badRequest("invalid type")
	}
	all := slices.DeleteFunc(visible(c, byID(c.p.Droplets)), func(d *droplet) bool {
		size, _ := c.s.catalog.findSize(d.Size)
		switch {
		case tagName != "":
			// Whether GPU Droplets are left out here too isn't known.
			return !d.hasTag(tagName)
		case name != "" && !strings.EqualFold(d.Name, name):
			return true
		default:
			return (size.GPU != nil) != (kind == "gpus")
		}
	})
	return list(c, "droplets", all, func(d *droplet) any { return c.wireDroplet(d) })
}

func getDroplet(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	return map[string]any{"droplet": c.wireDroplet(d)}, nil
}

// deleteDroplet accepts the deletion: the Droplet is there a little longer. With
// an unfinished event, another deletion too, it is refused.
func deleteDroplet(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	if err := c.beginEvent(d); err != nil {
		return nil, err
	}
	c.destroy(d)
	return nil, nil
}

// dropletAction is an action on a Droplet.
func dropletAction(kind string, d *droplet, e effect) action {
	return action{Type: kind, ResourceType: tagDroplet, ResourceID: d.ID, Droplet: d.ID, Region: d.Region, Effect: e}
}

func (c *call) destroy(d *droplet) {
	c.newAction(dropletAction("destroy", d, effect{Delete: true}), c.s.options.DeleteTime)
}

// deleteByTag deletes all Droplets with a tag, or none if one of them can't be.
func deleteByTag(c *call) (any, error) {
	droplets, err := c.tagged()
	if err != nil {
		return nil, err
	}
	for _, d := range droplets {
		if err := c.beginEvent(d); err != nil {
			return nil, err
		}
	}
	for _, d := range droplets {
		c.destroy(d)
	}
	return nil, nil
}

// tagged finds the Droplets with the query's tag, which must exist.
func (c *call) tagged() ([]*droplet, error) {
	name := c.query.Get("tag_name")
	switch {
	case name == "":
		return nil, badRequest("tag_name is missing")
	case c.p.findTag(name) == nil:
		return nil, notFound()
	}
	return slices.DeleteFunc(byID(c.p.Droplets), func(d *droplet) bool { return !d.hasTag(name) }), nil
}

// remove takes a Droplet away. Its volumes are kept and detached.
func (p *project) remove(d *droplet) {
	delete(p.Droplets, d.ID)
	p.detachAll(d.ID)
	// Nothing else is left to do for it.
	for _, a := range p.Open {
		if a.Droplet == d.ID && a.Effect.Destroy == 0 {
			a.Done = true
		}
	}
	p.Open = slices.DeleteFunc(p.Open, func(a *action) bool { return a.Droplet == d.ID && a.Effect.Destroy == 0 })
}

func listDropletSnapshots(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	return list(c, "snapshots", c.p.dropletSnapshots(d.ID), func(i *image) any {
		// Here, unlike in the list of all snapshots, the id is a number.
		w := i.wire()
		return map[string]any{
			"id": w.ID, "name": w.Name, "distribution": w.Distribution, "slug": w.Slug, "public": w.Public, "regions": w.Regions,
			"created_at": w.CreatedAt, "min_disk_size": w.MinDiskSize, "size_gigabytes": w.SizeGigabytes, "type": typeSnapshot,
		}
	})
}

// ofDroplet chooses the actions of the path's Droplet, attachments of volumes
// not among them: those are the volumes' own.
func (c *call) ofDroplet(a *action) bool {
	return a.ResourceType == tagDroplet && a.ResourceID == c.number(0)
}

func listDropletActions(c *call) (any, error) {
	if _, err := c.droplet(); err != nil {
		return nil, err
	}
	return c.answerActions(c.ofDroplet)
}

// getDropletAction works for Droplets that are gone too.
func getDropletAction(c *call) (any, error) { return c.answerAction(c.number(1), c.ofDroplet) }

func formatID(id int64) string { return strconv.FormatInt(id, 10) }
