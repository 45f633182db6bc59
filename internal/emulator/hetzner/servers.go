// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"slices"
)

// server is a server's record; its JSON is put together when it is asked for.
type server struct {
	object
	Status      string `json:"status"`
	ServerType  int64  `json:"server_type"`
	Location    int64  `json:"location"`
	Image       int64  `json:"image"`
	PrimaryDisk int    `json:"primary_disk"`
	Protected   bool   `json:"protected"`
	// BackupWindow is empty when backups are off.
	BackupWindow string `json:"backup_window"`
	// IPv4 and IPv6 are primary IPs; 0: none.
	IPv4           int64            `json:"ipv4"`
	IPv6           int64            `json:"ipv6"`
	Private        []wirePrivateNet `json:"private"`
	Firewalls      []int64          `json:"firewalls"`
	PlacementGroup int64            `json:"placement_group"`
	UserData       string           `json:"user_data"`
	SSHKeys        []int64          `json:"ssh_keys"`
}

func (c *call) wireServer(v *server) wireServer {
	w := wireServer{
		ID:              v.ID,
		Name:            v.Name,
		Status:          v.Status,
		Created:         stamp(v.Created),
		PublicNet:       wirePublicNet{FloatingIPs: []int64{}, Firewalls: []wireAppliedFirewall{}},
		PrivateNet:      append([]wirePrivateNet{}, v.Private...),
		ServerType:      c.s.catalog.typeByID(v.ServerType),
		Location:        c.s.catalog.locationByID(v.Location),
		Locked:          c.p.locked(v.ID),
		Protection:      wireServerProtection{Delete: v.Protected, Rebuild: v.Protected},
		Labels:          v.Labels,
		Volumes:         c.p.volumesOf(v.ID),
		LoadBalancers:   []int64{},
		PrimaryDiskSize: v.PrimaryDisk,
	}
	for _, price := range w.ServerType.Prices {
		if price.Location == w.Location.Name {
			w.IncludedTraffic = price.IncludedTraffic
		}
	}
	if v.BackupWindow != "" {
		w.BackupWindow = &v.BackupWindow
	}
	// A server outlives the image it was made from.
	if image, found := c.image(v.Image); found {
		w.Image = &image
	}
	if ip := c.p.PrimaryIPs[v.IPv4]; ip != nil {
		w.PublicNet.IPv4 = &wireIPv4{ID: ip.ID, IP: ip.IP, DNSPtr: ip.pointer()}
	}
	if ip := c.p.PrimaryIPs[v.IPv6]; ip != nil {
		w.PublicNet.IPv6 = &wireIPv6{ID: ip.ID, IP: ip.IP, DNSPtr: []wireDNSPtr{}}
	}
	for _, id := range c.p.firewallsOf(v) {
		w.PublicNet.Firewalls = append(w.PublicNet.Firewalls, wireAppliedFirewall{ID: id, Status: c.p.firewallStatus(v, id)})
	}
	if group := c.p.PlacementGroups[v.PlacementGroup]; group != nil {
		w.PlacementGroup = new(c.wirePlacementGroup(group))
	}
	return w
}

func listServers(c *call) (any, error) {
	all := rows(c.p.Servers, func(v *server) any { return c.wireServer(v) })
	for _, status := range c.query["status"] {
		if !slices.Contains(serverStatuses(), status) {
			var problems fields
			problems.add("status", "'%s' is not a status", status)
			return nil, problems.err()
		}
	}
	all = c.oneOf("status", all, func(r row) string { return c.p.Servers[r.ID].Status })
	return c.list("servers", all, "id", "name", "created")
}

func serverStatuses() []string {
	return []string{statusRunning, statusInitializing, statusStarting, statusStopping, statusOff,
		statusDeleting, statusMigrating, statusRebuilding, "unknown"}
}

func getServer(c *call) (any, error) {
	v, err := get(c, "server", c.p.Servers)
	if err != nil {
		return nil, err
	}
	return map[string]any{"server": c.wireServer(v)}, nil
}

// updateServer works on locked servers too: it changes no machine.
func updateServer(c *call) (any, error) {
	v, err := get(c, "server", c.p.Servers)
	if err != nil {
		return nil, err
	}
	if err := c.update("server", &v.object, nameTaken(c.p.Servers), checkHostname); err != nil {
		return nil, err
	}
	return map[string]any{"server": c.wireServer(v)}, nil
}

// deleteServer begins the deletion: the server is there, and its name taken,
// until the action is done.
func deleteServer(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	if v.Protected {
		return nil, refused(http.StatusLocked, "protected", "server is delete protected")
	}
	a := c.act("delete_server", v.ID, nil, c.s.options.DeleteTime, effect{While: statusDeleting, Delete: true})
	return map[string]any{"action": a.wire(c.now)}, nil
}

// unlocked finds the path's server if no action works on it.
func (c *call) unlocked() (*server, error) {
	v, err := get(c, "server", c.p.Servers)
	if err != nil {
		return nil, err
	}
	if c.p.locked(v.ID) {
		return nil, locked("server")
	}
	return v, nil
}

// remove takes a server away with what belongs to it alone: its backups and
// the primary IPs that were made with it. Its volumes stay, detached.
func (p *project) remove(v *server) {
	delete(p.Servers, v.ID)
	for _, id := range p.volumesOf(v.ID) {
		p.Volumes[id].Server = 0
	}
	for _, id := range []int64{v.IPv4, v.IPv6} {
		if ip := p.PrimaryIPs[id]; ip != nil {
			ip.Assignee = 0
			if ip.AutoDelete {
				delete(p.PrimaryIPs, id)
			}
		}
	}
	for id, image := range p.Images {
		if image.BoundTo == v.ID {
			delete(p.Images, id)
		}
	}
	// Actions that wait for their turn on it have nothing left to do.
	for _, a := range p.Open {
		if a.Server == v.ID {
			a.Done = true
		}
	}
	p.Open = slices.DeleteFunc(p.Open, func(a *action) bool { return a.Server == v.ID })
}
