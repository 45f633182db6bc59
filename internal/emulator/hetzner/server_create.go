// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
)

const (
	// maxUserData is the API's limit in bytes.
	maxUserData = 32 << 10
	// spreadLimit is how many servers a spread placement group takes.
	spreadLimit = 10
)

// createRequest is the body of POST /servers.
type createRequest struct {
	Name             string            `json:"name"`
	ServerType       idOrName          `json:"server_type"`
	Image            idOrName          `json:"image"`
	Location         idOrName          `json:"location"`
	SSHKeys          []idOrName        `json:"ssh_keys"`
	UserData         string            `json:"user_data"`
	Labels           map[string]string `json:"labels"`
	StartAfterCreate *bool             `json:"start_after_create"`
	Volumes          []int64           `json:"volumes"`
	Automount        bool              `json:"automount"`
	Networks         []int64           `json:"networks"`
	Firewalls        []struct {
		Firewall int64 `json:"firewall"`
	} `json:"firewalls"`
	PlacementGroup int64 `json:"placement_group"`
	PublicNet      *struct {
		EnableIPv4 *bool `json:"enable_ipv4"`
		EnableIPv6 *bool `json:"enable_ipv6"`
		IPv4       int64 `json:"ipv4"`
		IPv6       int64 `json:"ipv6"`
	} `json:"public_net"`
}

func createServer(c *call) (any, error) {
	var request createRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if err := request.check(); err != nil {
		return nil, err
	}
	v, err := c.plan(&request)
	if err != nil {
		return nil, err
	}
	if limit := c.s.options.ServerLimit; limit > 0 && len(c.p.Servers) >= limit {
		return nil, overLimit("server_limit", "server limit exceeded")
	}
	if !c.s.catalog.inStock(v.ServerType, v.Location) {
		return nil, unavailable()
	}

	// From here on nothing can be refused.
	v.object = c.newObject(request.Name, request.Labels)
	c.p.Servers[v.ID] = v
	c.assignAddresses(v, &request)

	boot := c.s.options.Boot
	create := c.act("create_server", v.ID, nil, boot/4, effect{While: statusInitializing, Then: statusOff, Failed: statusOff})
	next := []wireAction{}
	if request.StartAfterCreate == nil || *request.StartAfterCreate {
		// The status goes from initializing to starting without showing off.
		create.Effect.Then = statusStarting
		start := c.act("start_server", v.ID, create, boot-boot/4, effect{While: statusStarting, Then: statusRunning, Failed: statusOff})
		next = append(next, start.wire(c.now))
	}
	for _, id := range request.Volumes {
		next = append(next, c.attachTo(v, c.p.Volumes[id], create).wire(c.now))
	}
	var password *string
	if len(request.SSHKeys) == 0 {
		password = new(rand.Text()[:16])
	}
	return map[string]any{
		"server":        c.wireServer(v),
		"action":        create.wire(c.now),
		"next_actions":  next,
		"root_password": password,
	}, nil
}

// check reports all that is wrong with a request by itself.
func (r *createRequest) check() error {
	var problems fields
	checkHostname(&problems, r.Name)
	if r.ServerType == "" {
		problems.add("server_type", "must not be empty")
	}
	if r.Image == "" {
		problems.add("image", "must not be empty")
	}
	if len(r.UserData) > maxUserData {
		problems.add("user_data", "must have at most %d bytes", maxUserData)
	}
	if r.Automount && len(r.Volumes) == 0 {
		problems.add("automount", "needs volumes")
	}
	checkLabels(&problems, r.Labels)
	return problems.err()
}

// plan resolves what a request refers to and refuses what doesn't fit together.
func (c *call) plan(request *createRequest) (*server, error) {
	serverType, ok := c.s.catalog.findType(request.ServerType)
	if !ok {
		return nil, invalid("server type '%s' not found", request.ServerType)
	}
	location, err := c.placeFor(serverType, request.Location)
	if err != nil {
		return nil, err
	}
	image, err := c.imageFor(request.Image, serverType)
	if err != nil {
		return nil, err
	}
	v := &server{
		Status:      statusInitializing,
		ServerType:  serverType.ID,
		Location:    location.ID,
		Image:       image.ID,
		PrimaryDisk: serverType.Disk,
		UserData:    request.UserData,
	}
	for _, reference := range request.SSHKeys {
		key := c.findSSHKey(reference)
		if key == nil {
			return nil, invalid("SSH key '%s' not found", reference)
		}
		v.SSHKeys = append(v.SSHKeys, key.ID)
	}
	if err := c.checkVolumes(request.Volumes, location.ID); err != nil {
		return nil, err
	}
	for _, applied := range request.Firewalls {
		if c.p.Firewalls[applied.Firewall] == nil {
			return nil, notFound("firewall", applied.Firewall)
		}
		v.Firewalls = append(v.Firewalls, applied.Firewall)
	}
	for _, id := range request.Networks {
		if err := c.join(v, joinRequest{Network: id}, location.NetworkZone); err != nil {
			return nil, err
		}
	}
	if err := c.checkGroup(request.PlacementGroup); err != nil {
		return nil, err
	}
	v.PlacementGroup = request.PlacementGroup
	if err := c.checkAddresses(request, location.ID); err != nil {
		return nil, err
	}
	if nameTaken(c.p.Servers)(request.Name) {
		return nil, notUnique("server", "name")
	}
	return v, nil
}

// placeFor finds a location where the type is offered; without a wish any one
// where it is in stock.
func (c *call) placeFor(serverType wireServerType, wish idOrName) (wireLocation, error) {
	if wish == "" {
		for _, at := range serverType.Locations {
			if c.s.catalog.inStock(serverType.ID, at.ID) && !past(at.Deprecation, c.now) {
				return c.s.catalog.locationByID(at.ID), nil
			}
		}
		return wireLocation{}, unavailable()
	}
	location, ok := c.s.catalog.findLocation(wish)
	if !ok {
		return wireLocation{}, invalid("location '%s' not found", wish)
	}
	offered := slices.ContainsFunc(serverType.Locations, func(at wireTypeLocation) bool {
		return at.ID == location.ID && !past(at.Deprecation, c.now)
	})
	if !offered {
		return wireLocation{}, invalid("unsupported location for server type")
	}
	return location, nil
}

// imageFor finds an image that runs on the type. A name means the image of the
// type's architecture; an id is what it is.
func (c *call) imageFor(reference idOrName, serverType wireServerType) (wireImage, error) {
	var named *wireImage
	for _, image := range c.images() {
		name := ""
		if image.Name != nil {
			name = *image.Name
		}
		if !reference.is(image.ID, name) {
			continue
		}
		named = &image
		if image.Architecture == serverType.Architecture {
			break
		}
	}
	switch {
	case named == nil:
		return wireImage{}, invalid("image '%s' not found", reference)
	case named.Architecture != serverType.Architecture:
		return wireImage{}, invalid("image architecture '%s' does not fit server type '%s' (%s)", named.Architecture, serverType.Name, serverType.Architecture)
	case named.Status != "available":
		return wireImage{}, invalid("image '%s' is not available", reference)
	case named.DiskSize > float64(serverType.Disk):
		return wireImage{}, invalid("image disk is bigger than server type disk")
	}
	return *named, nil
}

// checkGroup reports a placement group that can't take another server.
func (c *call) checkGroup(id int64) error {
	if id == 0 {
		return nil
	}
	group := c.p.PlacementGroups[id]
	if group == nil {
		return notFound("placement group", id)
	}
	if len(c.members(group)) >= spreadLimit {
		return refused(http.StatusUnprocessableEntity, "placement_error", "placement group has reached its limit of %d servers", spreadLimit)
	}
	return nil
}

// families are the request's wishes for IPv4 and IPv6.
func (r *createRequest) families() (ipv4, ipv6 bool) {
	if r.PublicNet == nil {
		return true, true
	}
	enabled := func(wish *bool) bool { return wish == nil || *wish }
	return enabled(r.PublicNet.EnableIPv4), enabled(r.PublicNet.EnableIPv6)
}

// checkAddresses reports given primary IPs that can't be used.
func (c *call) checkAddresses(request *createRequest, location int64) error {
	if request.PublicNet == nil {
		return nil
	}
	ipv4, ipv6 := request.families()
	for _, wish := range []struct {
		id      int64
		family  string
		enabled bool
	}{{request.PublicNet.IPv4, "ipv4", ipv4}, {request.PublicNet.IPv6, "ipv6", ipv6}} {
		if wish.id == 0 {
			continue
		}
		ip := c.p.PrimaryIPs[wish.id]
		switch {
		case !wish.enabled:
			return invalid("a primary IP was given, but %s is not enabled", wish.family)
		case ip == nil:
			return notFound("primary IP", wish.id)
		case ip.Type != wish.family:
			return refused(http.StatusPreconditionFailed, "primary_ip_version_mismatch", "primary IP has the wrong version")
		case ip.Assignee != 0:
			return refused(http.StatusUnprocessableEntity, "primary_ip_assigned", "primary IP is already assigned")
		case ip.Location != location:
			return refused(http.StatusUnprocessableEntity, "primary_ip_datacenter_mismatch", "primary IP is in a different location")
		}
	}
	return nil
}

// assignAddresses gives a new server the primary IPs it asked for, or new ones.
func (c *call) assignAddresses(v *server, request *createRequest) {
	ipv4, ipv6 := request.families()
	given4, given6 := int64(0), int64(0)
	if request.PublicNet != nil {
		given4, given6 = request.PublicNet.IPv4, request.PublicNet.IPv6
	}
	assign := func(enabled bool, given int64, family string) int64 {
		if !enabled {
			return 0
		}
		ip := c.p.PrimaryIPs[given]
		if ip == nil {
			ip = c.newPrimaryIP("", family, v.Location, nil)
			ip.Name = "primary_ip-" + strings.TrimPrefix(family, "ip") + "-" + v.Name
			ip.AutoDelete = true
		}
		ip.Assignee = v.ID
		return ip.ID
	}
	v.IPv4 = assign(ipv4, given4, "ipv4")
	v.IPv6 = assign(ipv6, given6, "ipv6")
}
