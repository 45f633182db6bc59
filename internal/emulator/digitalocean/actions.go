// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// action is asynchronous work: an event. What it does when is in its effect, so
// that an open action can be kept in the state file and finished by a later run.
type action struct {
	ID      int64     `json:"id"`
	Type    string    `json:"type"`
	Started time.Time `json:"started"`
	// Due is when the action is completed, Settle when its effect shows: the
	// real API too is sometimes late with that (droplet_kit#50).
	Due    time.Time `json:"due"`
	Settle time.Time `json:"settle"`
	Done   bool      `json:"done"`
	// Failed lets it end errored and without effect.
	Failed bool `json:"failed,omitempty"`
	// ResourceType is what it is about: droplet, volume, image or a share's word.
	ResourceType string `json:"resource_type"`
	// ResourceID is the number of what it is about; 0 is null in the API, as for
	// volumes, whose ids are no numbers.
	ResourceID int64  `json:"resource_id,omitempty"`
	Region     string `json:"region"`
	// Droplet is the one whose event it is; 0: none. Until the action is done
	// the Droplet is locked.
	Droplet int64 `json:"droplet,omitempty"`
	// Volume is the volume or share it is about; empty: none.
	Volume string `json:"volume,omitempty"`
	Effect effect `json:"effect"`
	// Halt marks what is no action of the API: a guest that stops itself after
	// it was asked to.
	Halt bool `json:"halt,omitempty"`
}

// effect is what an action does when it settles.
type effect struct {
	// Status is the Droplet's from then on; empty: it stays.
	Status string `json:"status,omitempty"`
	// Delete removes the Droplet; DeleteFailed does it if the action failed.
	Delete       bool `json:"delete,omitempty"`
	DeleteFailed bool `json:"delete_failed,omitempty"`
	// Halt is after which time the guest stops itself.
	Halt  time.Duration `json:"halt,omitempty"`
	Image int64         `json:"image,omitempty"`
	Name  string        `json:"name,omitempty"`
	Size  string        `json:"size,omitempty"`
	// Disk is the size that the disk grows to, in GB; 0: it stays.
	Disk int  `json:"disk,omitempty"`
	IPv6 bool `json:"ipv6,omitempty"`
	// Backups switches them; nil: they stay as they are. Policy goes with it.
	Backups *bool         `json:"backups,omitempty"`
	Policy  *backupPolicy `json:"policy,omitempty"`
	// Snapshot is the image that is being made.
	Snapshot int64 `json:"snapshot,omitempty"`
	// Destroy is the Droplet whose destruction with associated resources this is.
	Destroy int64 `json:"destroy,omitempty"`
	// Volume is what happens to volumes and shares; nil: nothing.
	Volume *volumeEffect `json:"volume,omitempty"`
}

// beginEvent refuses a call that needs an event of a Droplet which has one
// already.
func (c *call) beginEvent(d *droplet) error {
	if c.p.locked(d.ID) {
		return pendingEvent()
	}
	return nil
}

// newAction begins an action that takes so long. The caller gives its type,
// what it is about and its effect; a fault may let it fail.
func (c *call) newAction(a action, takes time.Duration) *action {
	a.ID = next(&c.s.store.NextAction)
	a.Started = c.now
	a.Due = c.now.Add(takes)
	a.Settle = a.Due.Add(c.s.options.StatusLag)
	_, a.Failed = c.fault(emulator.KindFailAction)
	if a.Effect.Status != "" && !a.Failed {
		c.p.endHalt(a.Droplet)
	}
	c.p.Actions[a.ID] = &a
	c.p.Open = append(c.p.Open, &a)
	// What takes no time is done before the answer.
	c.s.advance(c.p, c.now)
	return &a
}

// advance does everything that is due by now, in the order of the times.
func (s *Service) advance(p *project, now time.Time) {
	for {
		var next *action
		var at time.Time
		for _, a := range p.Open {
			due := a.Due
			if a.Done {
				due = a.Settle
			}
			if next == nil || due.Before(at) {
				next, at = a, due
			}
		}
		if next == nil || at.After(now) {
			return
		}
		if !next.Done {
			next.Done = true
			continue
		}
		p.Open = slices.DeleteFunc(p.Open, func(a *action) bool { return a == next })
		s.settle(p, next)
	}
}

// settle carries out an action's effect.
func (s *Service) settle(p *project, a *action) {
	e := a.Effect
	if e.Volume != nil {
		p.finishVolume(a)
	}
	if e.Destroy != 0 {
		s.finishDestroy(p, a)
	}
	if image := p.Images[e.Snapshot]; image != nil {
		image.Status = imageAvailable
		if a.Failed {
			delete(p.Images, e.Snapshot)
		}
	}
	d := p.Droplets[a.Droplet]
	switch {
	case d == nil:
	case a.Failed && e.DeleteFailed, !a.Failed && e.Delete:
		p.remove(d)
	case !a.Failed:
		s.change(p, d, a)
	}
}

// change is the part of an effect that changes a Droplet.
func (s *Service) change(p *project, d *droplet, a *action) {
	e := a.Effect
	if e.Status != "" {
		p.endHalt(d.ID)
		d.Status = e.Status
	}
	if e.Halt > 0 && d.Status == statusActive {
		at := a.Started.Add(e.Halt)
		p.Open = append(p.Open, &action{Halt: true, Done: true, Droplet: d.ID, Settle: at, Effect: effect{Status: statusOff}})
	}
	if e.Image != 0 {
		d.Image = e.Image
	}
	if e.Name != "" {
		d.Name = e.Name
	}
	if e.Size != "" {
		d.Size = e.Size
	}
	if e.Disk != 0 {
		d.Disk = e.Disk
	}
	if e.IPv6 && d.IPv6 == "" {
		s.addIPv6(d)
	}
	if e.Backups != nil {
		d.Backups = *e.Backups
		d.Policy = e.Policy
	}
}

// endHalt ends a guest's own stopping, which whatever sets the power does.
func (p *project) endHalt(droplet int64) {
	p.Open = slices.DeleteFunc(p.Open, func(a *action) bool { return a.Halt && a.Droplet == droplet })
}

// locked tells whether a Droplet has an unfinished event.
func (p *project) locked(id int64) bool {
	return slices.ContainsFunc(p.Open, func(a *action) bool { return a.Droplet == id && !a.Done })
}

// wireAction is the action as it is now.
func (c *call) wireAction(a *action) wireAction {
	w := wireAction{
		ID:           a.ID,
		Status:       "in-progress",
		Type:         a.Type,
		StartedAt:    stamp(a.Started),
		ResourceType: a.ResourceType,
		Region:       c.s.catalog.region(a.Region),
		RegionSlug:   a.Region,
	}
	if a.ResourceID != 0 {
		w.ResourceID = &a.ResourceID
	}
	if a.Done {
		w.Status, w.CompletedAt = "completed", new(stamp(a.Due))
		if a.Failed {
			w.Status = "errored"
		}
	}
	return w
}

// acted answers with an action.
func (c *call) acted(a *action) (any, error) {
	return map[string]any{"action": c.wireAction(a)}, nil
}

// answerActions lists actions, the newest first.
func (c *call) answerActions(of func(*action) bool) (any, error) {
	actions := slices.DeleteFunc(byID(c.p.Actions), func(a *action) bool { return !of(a) })
	slices.Reverse(actions)
	return list(c, "actions", actions, func(a *action) any { return c.wireAction(a) })
}

// answerAction answers the action with an id if it is one of these.
func (c *call) answerAction(id int64, of func(*action) bool) (any, error) {
	a := c.p.Actions[id]
	if a == nil || !of(a) {
		return nil, notFound()
	}
	return c.acted(a)
}

func everyAction(*action) bool { return true }

func listActions(c *call) (any, error) { return c.answerActions(everyAction) }

func getAction(c *call) (any, error) { return c.answerAction(c.number(0), everyAction) }
