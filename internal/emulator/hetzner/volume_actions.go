// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"slices"
)

// volumeEffect is what an action does to a volume when it succeeds. A volume
// whose making failed stays "creating": nothing is known of the real API here.
type volumeEffect struct {
	// ID is the volume.
	ID     int64 `json:"id"`
	Create bool  `json:"create,omitempty"`
	// Attach is the server it is attached to.
	Attach int64 `json:"attach,omitempty"`
	Detach bool  `json:"detach,omitempty"`
	// Size is the size that it grows to, in GB.
	Size int `json:"size,omitempty"`
}

// change carries out an effect.
func (p *project) change(e *volumeEffect) {
	v := p.Volumes[e.ID]
	if v == nil {
		return
	}
	switch {
	case e.Create:
		v.Status = volumeAvailable
	case e.Attach != 0:
		v.Server = e.Attach
	case e.Detach:
		v.Server = 0
	case e.Size != 0:
		v.Size = e.Size
	}
}

// volumeActions are the POSTs below /volumes/{id}/actions/.
func volumeActions() map[string]func(*call) (any, error) {
	return map[string]func(*call) (any, error){
		"attach":            attachVolume,
		"detach":            detachVolume,
		"resize":            resizeVolume,
		"change_protection": changeVolumeProtection,
	}
}

// serviceError is the code under which the real API refuses what doesn't fit
// the state of a volume; the messages that go with it were seen there.
func serviceError(format string, args ...any) error {
	return refused(http.StatusUnprocessableEntity, "service_error", format, args...)
}

// worksOn tells whether an action is about a volume.
func (a *action) worksOn(volume int64) bool {
	return a.Effect.Volume != nil && a.Effect.Volume.ID == volume
}

// volumeLocked tells whether an action works on the volume.
func (p *project) volumeLocked(id int64) bool {
	return slices.ContainsFunc(p.Open, func(a *action) bool { return a.worksOn(id) })
}

// unlockedVolume finds the path's volume if no action works on it.
func (c *call) unlockedVolume() (*volume, error) {
	v, err := get(c, "volume", c.p.Volumes)
	if err != nil {
		return nil, err
	}
	if c.p.volumeLocked(v.ID) {
		return nil, locked("volume")
	}
	return v, nil
}

// host finds a server that a volume can be attached to: one that is there, not
// locked, and has room for another.
func (c *call) host(id int64) (*server, error) {
	host := c.p.Servers[id]
	switch {
	case host == nil:
		return nil, notFound("server", id)
	case c.p.locked(id):
		return nil, locked("server")
	case len(c.p.volumesOf(id)) >= volumesPerServer:
		return nil, tooManyVolumes()
	}
	return host, nil
}

// tooManyVolumes is the general code for limits; the real words aren't known.
func tooManyVolumes() error {
	return overLimit("volumes_per_server_limit", "server has reached its limit of attached volumes")
}

// attachTo begins an attachment, which locks the server too, from now on even
// if it waits for another action.
func (c *call) attachTo(host *server, v *volume, after *action) *action {
	return c.act("attach_volume", host.ID, after, c.s.options.Boot/8,
		effect{Volume: &volumeEffect{ID: v.ID, Attach: host.ID}}, wireResource{v.ID, "volume"})
}

// checkVolumes reports volumes that a new server can't have.
func (c *call) checkVolumes(ids []int64, location int64) error {
	if len(ids) > volumesPerServer {
		return tooManyVolumes()
	}
	seen := map[int64]bool{}
	for _, id := range ids {
		v := c.p.Volumes[id]
		switch {
		case v == nil:
			return notFound("volume", id)
		case seen[id]:
			return invalid("volume '%d' is given twice", id)
		case c.p.volumeLocked(id):
			return locked("volume")
		}
		if err := v.fits(location); err != nil {
			return err
		}
		seen[id] = true
	}
	return nil
}

// fits tells why a volume can't be attached to a server in a location.
func (v *volume) fits(location int64) error {
	switch {
	case v.Server != 0:
		return serviceError("volume is already attached to a server, please detach it first")
	case v.Location != location:
		return serviceError("server and volume must be in the same location")
	}
	return nil
}

func attachVolume(c *call) (any, error) {
	v, err := c.unlockedVolume()
	if err != nil {
		return nil, err
	}
	var request struct {
		Server    int64 `json:"server"`
		Automount *bool `json:"automount"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Server == 0 {
		var problems fields
		problems.add("server", "must not be empty")
		return nil, problems.err()
	}
	host, err := c.host(request.Server)
	if err != nil {
		return nil, err
	}
	if err := v.fits(host.Location); err != nil {
		return nil, err
	}
	return c.acted(c.attachTo(host, v, nil))
}

func detachVolume(c *call) (any, error) {
	v, err := c.unlockedVolume()
	switch {
	case err != nil:
		return nil, err
	case v.Server == 0:
		return nil, serviceError("volume not attached to a server")
	case c.p.locked(v.Server):
		return nil, locked("server")
	}
	return c.acted(c.act("detach_volume", v.Server, nil, c.s.options.Boot/8,
		effect{Volume: &volumeEffect{ID: v.ID, Detach: true}}, wireResource{v.ID, "volume"}))
}

// resizeVolume works whether or not the volume is attached, and concerns the
// volume alone: the description's example names no server.
func resizeVolume(c *call) (any, error) {
	v, err := c.unlockedVolume()
	if err != nil {
		return nil, err
	}
	var request struct {
		Size int `json:"size"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	switch {
	case request.Size > maxVolumeSize:
		problems.add("size", "must be at most %d", maxVolumeSize)
	case request.Size <= v.Size:
		problems.add("size", "must be greater than the current size")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return c.acted(c.act("resize_volume", 0, nil, c.s.options.Boot/8,
		effect{Volume: &volumeEffect{ID: v.ID, Size: request.Size}}, wireResource{v.ID, "volume"}))
}

func changeVolumeProtection(c *call) (any, error) {
	v, err := c.unlockedVolume()
	if err != nil {
		return nil, err
	}
	var request struct {
		Delete *bool `json:"delete"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	a := c.act("change_protection", 0, nil, 0, effect{Volume: &volumeEffect{ID: v.ID}}, wireResource{v.ID, "volume"})
	if a.Fails == nil && request.Delete != nil {
		v.Protected = *request.Delete
	}
	return c.acted(a)
}

func listVolumeActions(c *call) (any, error) {
	return c.listActionsOf(func(a *action) bool { return a.Effect.Volume != nil })
}

func listActionsOfVolume(c *call) (any, error) {
	v, err := get(c, "volume", c.p.Volumes)
	if err != nil {
		return nil, err
	}
	actions := slices.DeleteFunc(byID(c.p.Actions), func(a *action) bool { return !a.worksOn(v.ID) })
	return c.answerActions(actions)
}

func getActionOfVolume(c *call) (any, error) {
	a := c.p.Actions[c.ids[1]]
	if a == nil || !a.worksOn(c.id()) {
		return nil, notFound("action", c.ids[1])
	}
	return map[string]any{"action": a.wire(c.now)}, nil
}
