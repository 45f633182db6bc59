// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"slices"
	"time"
)

// actionRequest is the body of POST /v2/droplets/{id}/actions.
type actionRequest struct {
	Type   string        `json:"type"`
	Image  text          `json:"image"`
	Size   string        `json:"size"`
	Disk   bool          `json:"disk"`
	Name   string        `json:"name"`
	Policy *backupPolicy `json:"backup_policy"`
}

// step checks an action on a Droplet and says what it does and how long that takes.
type step func(c *call, d *droplet, request *actionRequest) (effect, time.Duration, error)

// dropletSteps are the types of actions. Restoring backups, resetting passwords
// and changing kernels are left out.
func dropletSteps() map[string]step {
	return map[string]step{
		"power_on":             powerOn,
		"power_off":            powerOff,
		"power_cycle":          powerCycle,
		"reboot":               reboot,
		"shutdown":             shutdown,
		"rebuild":              rebuild,
		"resize":               resize,
		"rename":               rename,
		"snapshot":             snapshot,
		"enable_ipv6":          enableIPv6,
		"enable_backups":       enableBackups,
		"disable_backups":      disableBackups,
		"change_backup_policy": changeBackupPolicy,
	}
}

// tagTypes are those that can be asked of all Droplets with a tag at once.
func tagTypes() []string {
	return []string{"power_cycle", "power_on", "power_off", "shutdown", "enable_ipv6", "enable_backups", "disable_backups", "snapshot"}
}

func actOnDroplet(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	var request actionRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	a, takes, err := c.prepare(d, &request)
	if err != nil {
		return nil, err
	}
	return c.acted(c.start(d, &request, a, takes))
}

// actByTag acts on all Droplets with a tag, or on none if one of them refuses.
func actByTag(c *call) (any, error) {
	droplets, err := c.tagged()
	if err != nil {
		return nil, err
	}
	var request actionRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if !slices.Contains(tagTypes(), request.Type) {
		return nil, unprocessable("Invalid type")
	}
	prepared := make([]action, len(droplets))
	times := make([]time.Duration, len(droplets))
	for i, d := range droplets {
		if prepared[i], times[i], err = c.prepare(d, &request); err != nil {
			return nil, err
		}
	}
	actions := []wireAction{}
	for i, d := range droplets {
		actions = append(actions, c.wireAction(c.start(d, &request, prepared[i], times[i])))
	}
	return map[string]any{"actions": actions}, nil
}

// prepare refuses an action, or says what to start.
func (c *call) prepare(d *droplet, request *actionRequest) (action, time.Duration, error) {
	step := dropletSteps()[request.Type]
	if step == nil {
		return action{}, 0, unprocessable("Invalid type")
	}
	if err := c.beginEvent(d); err != nil {
		return action{}, 0, err
	}
	e, takes, err := step(c, d, request)
	return dropletAction(request.Type, d, e), takes, err
}

// start begins a prepared action. The snapshot that one makes has its record,
// and so its id, from the start.
func (c *call) start(d *droplet, request *actionRequest, a action, takes time.Duration) *action {
	if request.Type == "snapshot" {
		a.Effect.Snapshot = c.newSnapshot(d, request.Name)
	}
	return c.newAction(a, takes)
}

// The parts of Options.Boot that actions take.
func (c *call) quarter() time.Duration { return c.s.options.Boot / 4 }

func (c *call) eighth() time.Duration { return c.s.options.Boot / 8 }

func powerOn(c *call, d *droplet, _ *actionRequest) (effect, time.Duration, error) {
	if d.Status == statusActive {
		return effect{}, 0, unprocessable("Droplet is already powered on.")
	}
	return effect{Status: statusActive}, c.s.options.Boot, nil
}

func powerOff(c *call, d *droplet, _ *actionRequest) (effect, time.Duration, error) {
	if d.Status == statusOff {
		return effect{}, 0, unprocessable("Droplet is already powered off.")
	}
	return effect{Status: statusOff}, c.quarter(), nil
}

func powerCycle(c *call, _ *droplet, _ *actionRequest) (effect, time.Duration, error) {
	return effect{Status: statusActive}, c.s.options.Boot, nil
}

func reboot(c *call, d *droplet, _ *actionRequest) (effect, time.Duration, error) {
	if d.Status == statusOff {
		return effect{}, 0, unprocessable("Droplet is currently off. Please power it on to run this event.")
	}
	return effect{}, c.s.options.Boot, nil
}

// shutdown asks the guest: the action says only that it was asked, and the guest
// stops some time later, or never.
func shutdown(c *call, d *droplet, _ *actionRequest) (effect, time.Duration, error) {
	if d.Status == statusOff {
		return effect{}, 0, unprocessable("Droplet is already powered off.")
	}
	e := effect{}
	if !c.s.options.IgnoreShutdown {
		e.Halt = max(1, c.s.options.Boot/2)
	}
	return e, c.quarter(), nil
}

// rebuild overwrites the disk. Id, addresses, volumes and user data stay.
func rebuild(c *call, d *droplet, request *actionRequest) (effect, time.Duration, error) {
	i, err := c.imageFor(request.Image, d.Region, d.Disk)
	if err != nil {
		return effect{}, 0, err
	}
	return effect{Status: statusActive, Image: i.ID}, c.s.options.Boot, nil
}

// resize needs a Droplet that is off, and leaves it off. Without "disk" only
// processors and memory change, which can be undone; a disk never gets smaller, be
// it asked to change or not. GPUs don't go ("You cannot resize from an 8 GPU Droplet to a
// single GPU Droplet", https://docs.digitalocean.com/products/droplets/details/limits);
// that they don't come to a Droplet without is the plainest thing.
func resize(c *call, d *droplet, request *actionRequest) (effect, time.Duration, error) {
	size, ok := c.s.catalog.findSize(request.Size)
	now, _ := c.s.catalog.findSize(d.Size)
	switch {
	case !ok || !size.Available:
		return effect{}, 0, unprocessable("You specified an invalid size for Droplet resize.")
	case !slices.Contains(size.Regions, d.Region):
		return effect{}, 0, unprocessable("Size is not available in this region.")
	case size.gpuCount() < now.gpuCount() || now.gpuCount() == 0 && size.gpuCount() > 0:
		return effect{}, 0, unprocessable("You specified an invalid size for Droplet resize.")
	case d.Status != statusOff:
		return effect{}, 0, unprocessable("Droplet must be powered off to run this event.")
	case size.Slug == d.Size && (!request.Disk || size.Disk == d.Disk):
		return effect{}, 0, unprocessable("Droplet already has this size.")
	case size.Disk < d.Disk:
		return effect{}, 0, unprocessable("Size can not decrease size of Droplet's disk image")
	}
	e := effect{Size: size.Slug}
	if request.Disk {
		e.Disk = size.Disk
	}
	return e, c.s.options.Boot, nil
}

// gpuCount is how many GPUs a size has.
func (s wireSize) gpuCount() int {
	if s.GPU == nil {
		return 0
	}
	return s.GPU.Count
}

// rename changes the name in the cloud, of a running Droplet too, and nothing in the
// guest.
func rename(c *call, _ *droplet, request *actionRequest) (effect, time.Duration, error) {
	return effect{Name: request.Name}, c.eighth(), checkDropletName(request.Name)
}

func snapshot(c *call, _ *droplet, request *actionRequest) (effect, time.Duration, error) {
	if request.Name == "" {
		return effect{}, 0, unprocessable("Name can't be blank")
	}
	return effect{}, c.s.options.Boot, nil
}

// newSnapshot makes the record of a snapshot that is being made.
func (c *call) newSnapshot(d *droplet, name string) int64 {
	i := &image{
		object: c.newObject(nil), ID: next(&c.s.store.NextImage), Name: name, Regions: []string{d.Region}, Type: typeSnapshot,
		MinDisk: d.Disk, Size: float64(d.Disk) / 10, Status: imagePending, Droplet: d.ID, Distribution: "Unknown",
	}
	if of := c.imageByID(d.Image); of != nil {
		i.Distribution = of.Distribution
	}
	c.p.Images[i.ID] = i
	return i.ID
}

// enableIPv6 can't be undone.
func enableIPv6(c *call, d *droplet, _ *actionRequest) (effect, time.Duration, error) {
	switch {
	case d.IPv6 != "":
		return effect{}, 0, unprocessable("IPv6 is already enabled.")
	case d.Public == "":
		return effect{}, 0, unprocessable("IPv6 can't be enabled without public networking")
	}
	return effect{IPv6: true}, c.eighth(), nil
}

func enableBackups(c *call, d *droplet, request *actionRequest) (effect, time.Duration, error) {
	if d.Backups {
		return effect{}, 0, unprocessable("Backups are already enabled.")
	}
	return effect{Backups: new(true), Policy: request.Policy}, c.eighth(), request.Policy.check()
}

func disableBackups(c *call, d *droplet, _ *actionRequest) (effect, time.Duration, error) {
	if !d.Backups {
		return effect{}, 0, unprocessable("Backups are not enabled.")
	}
	return effect{Backups: new(false)}, c.eighth(), nil
}

func changeBackupPolicy(c *call, d *droplet, request *actionRequest) (effect, time.Duration, error) {
	switch {
	case !d.Backups:
		return effect{}, 0, unprocessable("Backups are not enabled.")
	case request.Policy == nil:
		return effect{}, 0, unprocessable("backup_policy can't be blank")
	}
	return effect{Backups: new(true), Policy: request.Policy}, c.eighth(), request.Policy.check()
}
