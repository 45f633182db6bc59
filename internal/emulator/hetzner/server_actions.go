// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"slices"
)

// serverActions are the POSTs below /servers/{id}/actions/.
func serverActions() map[string]func(*call) (any, error) {
	return map[string]func(*call) (any, error){
		"poweron":             powerOn,
		"poweroff":            powerOff,
		"shutdown":            shutdown,
		"reboot":              reboot,
		"reset":               reset,
		"rebuild":             rebuild,
		"change_type":         changeType,
		"change_protection":   changeProtection,
		"enable_backup":       enableBackup,
		"disable_backup":      disableBackup,
		"attach_to_network":   attachToNetwork,
		"detach_from_network": detachFromNetwork,
		"change_alias_ips":    changeAliasIPs,
		"create_image":        createImage,

		"add_to_placement_group":      addToPlacementGroup,
		"remove_from_placement_group": removeFromPlacementGroup,
	}
}

func (c *call) acted(a *action) (any, error) {
	return map[string]any{"action": a.wire(c.now)}, nil
}

// powerOn of a running server succeeds and changes nothing. A server without any
// network interface can't be powered on (description of unassigning primary IPs; the
// code is not known).
func powerOn(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	if v.IPv4 == 0 && v.IPv6 == 0 && len(v.Private) == 0 {
		return nil, invalid("server requires at least one network interface to be powered on")
	}
	takes, e := c.s.options.Boot, effect{While: statusStarting, Then: statusRunning}
	if v.Status == statusRunning {
		takes, e = 0, effect{Then: statusRunning}
	}
	return c.acted(c.act("start_server", v.ID, nil, takes, e))
}

func powerOff(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	takes, e := c.s.options.Boot/4, effect{While: statusStopping, Then: statusOff}
	if v.Status == statusOff {
		takes, e = 0, effect{}
	}
	return c.acted(c.act("stop_server", v.ID, nil, takes, e))
}

// shutdown sends the guest an ACPI request: the action says only that it was
// sent, and the guest stops some time later, or never.
func shutdown(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	boot := c.s.options.Boot
	e := effect{}
	if v.Status == statusRunning && !c.s.options.IgnoreShutdown {
		e.Halt = max(1, boot/2)
	}
	return c.acted(c.act("shutdown_server", v.ID, nil, boot/8, e))
}

// reboot sends ACPI too: a server that is off stays off.
func reboot(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	return c.acted(c.act("reboot_server", v.ID, nil, c.s.options.Boot, effect{}))
}

func reset(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	return c.acted(c.act("reset_server", v.ID, nil, c.s.options.Boot, effect{While: statusStarting, Then: statusRunning}))
}

// rebuild overwrites the disk; without user data the old is used again.
func rebuild(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		Image    idOrName `json:"image"`
		UserData *string  `json:"user_data"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	if request.Image == "" {
		problems.add("image", "must not be empty")
	}
	if request.UserData != nil && len(*request.UserData) > maxUserData {
		problems.add("user_data", "must have at most %d bytes", maxUserData)
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if v.Protected {
		return nil, refused(http.StatusLocked, "protected", "server is rebuild protected")
	}
	serverType := c.s.catalog.typeByID(v.ServerType)
	image, err := c.imageFor(request.Image, serverType)
	if err != nil {
		return nil, err
	}
	a := c.act("rebuild_server", v.ID, nil, c.s.options.Boot, effect{
		While: statusRebuilding, Then: statusRunning, Image: image.ID, UserData: request.UserData,
	}, wireResource{image.ID, "image"})
	// The keys of the creation are put on the new disk, so no password is made.
	return map[string]any{"action": a.wire(c.now), "root_password": nil}, nil
}

// changeType needs a server that is off, and starts it again.
func changeType(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		ServerType  idOrName `json:"server_type"`
		UpgradeDisk *bool    `json:"upgrade_disk"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	if request.ServerType == "" {
		problems.add("server_type", "must not be empty")
	}
	if request.UpgradeDisk == nil {
		problems.add("upgrade_disk", "must not be empty")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	wanted, ok := c.s.catalog.findType(request.ServerType)
	if !ok {
		return nil, invalid("server type '%s' not found", request.ServerType)
	}
	old := c.s.catalog.typeByID(v.ServerType)
	if v.Status != statusOff {
		return nil, notStopped()
	}
	offered := slices.ContainsFunc(wanted.Locations, func(at wireTypeLocation) bool {
		return at.ID == v.Location && at.Deprecation == nil
	})
	if !offered || wanted.Disk < v.PrimaryDisk || wanted.Architecture != old.Architecture || wanted.StorageType != old.StorageType {
		return nil, refused(http.StatusUnprocessableEntity, "invalid_server_type", "server type does not fit the server")
	}
	if !c.s.catalog.inStock(wanted.ID, v.Location) {
		return nil, unavailable()
	}
	e := effect{While: statusMigrating, Then: statusRunning, ServerType: wanted.ID}
	if *request.UpgradeDisk {
		e.Disk = wanted.Disk
	}
	return c.acted(c.act("change_server_type", v.ID, nil, c.s.options.Boot, e))
}

// changeProtection takes both protections, which must be the same.
func changeProtection(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		Delete  *bool `json:"delete"`
		Rebuild *bool `json:"rebuild"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	wish := wireServerProtection{Delete: v.Protected, Rebuild: v.Protected}
	if request.Delete != nil {
		wish.Delete = *request.Delete
	}
	if request.Rebuild != nil {
		wish.Rebuild = *request.Rebuild
	}
	if wish.Delete != wish.Rebuild {
		var problems fields
		problems.add("delete", "must have the same value as rebuild")
		problems.add("rebuild", "must have the same value as delete")
		return nil, problems.err()
	}
	a := c.act("change_protection", v.ID, nil, 0, effect{})
	if a.Fails == nil {
		v.Protected = wish.Delete
	}
	return c.acted(a)
}

func enableBackup(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	a := c.act("enable_backup", v.ID, nil, 0, effect{})
	if a.Fails == nil {
		v.BackupWindow = "22-02"
	}
	return c.acted(a)
}

// disableBackup deletes the server's backups with it.
func disableBackup(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	a := c.act("disable_backup", v.ID, nil, 0, effect{})
	if a.Fails == nil {
		v.BackupWindow = ""
		for id, image := range c.p.Images {
			if image.BoundTo == v.ID {
				delete(c.p.Images, id)
			}
		}
	}
	return c.acted(a)
}

func attachToNetwork(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request joinRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	zone := c.s.catalog.locationByID(v.Location).NetworkZone
	joined := *v
	if err := c.join(&joined, request, zone); err != nil {
		return nil, err
	}
	a := c.act("attach_to_network", v.ID, nil, 0, effect{}, wireResource{request.Network, "network"})
	if a.Fails == nil {
		v.Private = joined.Private
	}
	return c.acted(a)
}

func detachFromNetwork(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		Network int64 `json:"network"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	attached := func(net wirePrivateNet) bool { return net.Network == request.Network }
	// What is answered about a network that isn't attached is not known.
	if !slices.ContainsFunc(v.Private, attached) {
		return nil, invalid("server is not attached to the network")
	}
	a := c.act("detach_from_network", v.ID, nil, 0, effect{}, wireResource{request.Network, "network"})
	if a.Fails == nil {
		v.Private = slices.DeleteFunc(slices.Clone(v.Private), attached)
	}
	return c.acted(a)
}
