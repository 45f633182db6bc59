// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// The words of a server's status that the emulator uses.
const (
	statusRunning      = "running"
	statusInitializing = "initializing"
	statusStarting     = "starting"
	statusStopping     = "stopping"
	statusOff          = "off"
	statusDeleting     = "deleting"
	statusMigrating    = "migrating"
	statusRebuilding   = "rebuilding"
)

// action is asynchronous work. What it does when is in its effect, so that an
// open action can be kept in the state file and finished by a later run.
type action struct {
	ID      int64     `json:"id"`
	Command string    `json:"command"`
	Started time.Time `json:"started"`
	// Begin is when its work begins; later than Started for an action that
	// waits for another one (After).
	Begin     time.Time        `json:"begin"`
	Due       time.Time        `json:"due"`
	Begun     bool             `json:"begun"`
	Done      bool             `json:"done"`
	After     int64            `json:"after,omitempty"`
	Resources []wireResource   `json:"resources"`
	Fails     *wireActionError `json:"fails,omitempty"`
	// Server is the server it works on; 0 for none.
	Server int64  `json:"server,omitempty"`
	Effect effect `json:"effect"`
	// Before is the server's status when the work began.
	Before string `json:"before,omitempty"`
	// Halt marks what is no action of the API: a guest that stops itself after
	// an ACPI request.
	Halt bool `json:"halt,omitempty"`
}

// effect is what an action does to its server.
type effect struct {
	// While and Then are the status during the work and after it; empty: the
	// status stays. On failure the status before comes back, or Failed.
	While  string `json:"while,omitempty"`
	Then   string `json:"then,omitempty"`
	Failed string `json:"failed,omitempty"`
	Delete bool   `json:"delete,omitempty"`
	// Halt is after which time from the beginning the guest stops itself.
	Halt       time.Duration `json:"halt,omitempty"`
	Image      int64         `json:"image,omitempty"`
	UserData   *string       `json:"user_data,omitempty"`
	ServerType int64         `json:"server_type,omitempty"`
	// Disk is the size that the disk grows to, in GB; 0: it stays.
	Disk int `json:"disk,omitempty"`
	// Snapshot is the image that is being made.
	Snapshot int64 `json:"snapshot,omitempty"`
	// Volume is what happens to a volume; nil for nothing.
	Volume *volumeEffect `json:"volume,omitempty"`
	// Firewall, PrimaryIP and Group are what happens to the server's: a firewall, a
	// primary IP, its placement group (0: it leaves it); nil for nothing.
	Firewall  *firewallEffect  `json:"firewall,omitempty"`
	PrimaryIP *primaryIPEffect `json:"primary_ip,omitempty"`
	Group     *int64           `json:"group,omitempty"`
}

// act begins an action on a server that takes so long; after is the action it
// waits for, nil for none.
func (c *call) act(command string, serverID int64, after *action, takes time.Duration, e effect, more ...wireResource) *action {
	a := &action{
		ID:        c.s.newID(),
		Command:   command,
		Started:   c.now,
		Begin:     c.now,
		Server:    serverID,
		Effect:    e,
		Resources: more,
	}
	if serverID != 0 {
		a.Resources = append([]wireResource{{serverID, "server"}}, more...)
	}
	if after != nil {
		a.After, a.Begin = after.ID, after.Due
	}
	a.Due = a.Begin.Add(takes)
	if _, ok := emulator.FaultFor(c.r.Context(), emulator.KindFailAction); ok {
		a.Fails = &wireActionError{Code: "action_failed", Message: "Action failed"}
	}
	c.p.Actions[a.ID] = a
	c.p.Open = append(c.p.Open, a)
	if after == nil {
		c.p.begin(a)
	}
	return a
}

// advance does everything that is due by now, in the order of the times.
func (p *project) advance(now time.Time) {
	for {
		var next *action
		var at time.Time
		for _, a := range p.Open {
			due := a.Due
			if !a.Begun {
				due = a.Begin
			}
			if next == nil || due.Before(at) {
				next, at = a, due
			}
		}
		if next == nil || at.After(now) {
			return
		}
		if next.Begun {
			p.finish(next)
		} else {
			p.begin(next)
		}
	}
}

func (p *project) begin(a *action) {
	a.Begun = true
	server := p.Servers[a.Server]
	if server == nil {
		return
	}
	a.Before = server.Status
	if before := p.Actions[a.After]; before != nil && before.Fails != nil {
		a.Fails = &wireActionError{Code: "action_failed", Message: "Action failed"}
		a.Effect.Failed = server.Status
		return
	}
	if a.Effect.While != "" {
		server.Status = a.Effect.While
	}
	if a.Effect.Halt > 0 && a.Fails == nil {
		p.Open = append(p.Open, &action{
			Begun: true, Halt: true, Server: a.Server,
			Due: a.Begin.Add(a.Effect.Halt), Effect: effect{Then: statusOff},
		})
	}
}

func (p *project) finish(a *action) {
	a.Done = true
	p.Open = slices.DeleteFunc(p.Open, func(other *action) bool { return other == a })
	e := a.Effect
	if image := p.Images[e.Snapshot]; image != nil {
		image.Status = "available"
		if a.Fails != nil {
			image.Status = "unavailable"
		}
	}
	if e.Volume != nil && a.Fails == nil {
		p.change(e.Volume)
	}
	server := p.Servers[a.Server]
	if server == nil {
		return
	}
	if e.Firewall != nil {
		e.Firewall.carryOut(server, a.Fails != nil)
	}
	if a.Fails != nil {
		switch {
		case e.Failed != "":
			server.Status = e.Failed
		case e.While != "":
			server.Status = a.Before
		}
		return
	}
	if e.Delete {
		p.remove(server)
		return
	}
	if e.Then != "" {
		// Whatever sets the power ends a guest's own stopping.
		p.Open = slices.DeleteFunc(p.Open, func(other *action) bool { return other.Halt && other.Server == a.Server })
		server.Status = e.Then
	}
	if e.Image != 0 {
		server.Image = e.Image
	}
	if e.UserData != nil {
		server.UserData = *e.UserData
	}
	if e.ServerType != 0 {
		server.ServerType = e.ServerType
	}
	if e.Disk != 0 {
		server.PrimaryDisk = e.Disk
	}
	if e.PrimaryIP != nil {
		p.carryOut(e.PrimaryIP)
	}
	if e.Group != nil {
		server.PlacementGroup = *e.Group
	}
}

// locked tells whether an action works on the server.
func (p *project) locked(server int64) bool {
	return slices.ContainsFunc(p.Open, func(a *action) bool { return a.Server == server && !a.Halt })
}

// wire is the action as it is now.
func (a *action) wire(now time.Time) wireAction {
	w := wireAction{
		ID:        a.ID,
		Command:   a.Command,
		Status:    "running",
		Started:   stamp(a.Started),
		Resources: a.Resources,
	}
	switch {
	case a.Done:
		w.Status, w.Progress, w.Finished, w.Error = "success", 100, new(stamp(a.Due)), a.Fails
		if a.Fails != nil {
			w.Status = "error"
		}
	case a.Begun && a.Due.After(a.Begin):
		w.Progress = min(99, int(100*now.Sub(a.Begin)/a.Due.Sub(a.Begin)))
	}
	return w
}

func (c *call) actionRows(actions []*action) []row {
	made := make([]row, len(actions))
	for i, a := range actions {
		w := a.wire(c.now)
		made[i] = row{
			object: object{ID: a.ID, Created: a.Started},
			words:  map[string]string{"command": a.Command, "status": w.Status, "started": w.Started, "progress": strconv.Itoa(1000 + w.Progress)},
			wire:   func() any { return w },
		}
		if w.Finished != nil {
			made[i].words["finished"] = *w.Finished
		}
	}
	return made
}

func (c *call) answerActions(actions []*action) (any, error) {
	rows := c.oneOf("status", c.actionRows(actions), func(r row) string { return r.words["status"] })
	return c.list("actions", rows, "id", "command", "status", "progress", "started", "finished")
}

// listActions needs ids: the list of all actions was taken out of the API in
// January 2025. Ids that don't exist are left out, as in the real one.
func listActions(c *call) (any, error) {
	if !c.query.Has("id") {
		return nil, gone(datacenterAnnouncement)
	}
	return c.listActionsOf(nil)
}

func listServerActions(c *call) (any, error) {
	return c.listActionsOf(func(a *action) bool { return a.Server != 0 })
}

// listActionsOf lists the actions whose ids are asked for, else those of a kind.
func (c *call) listActionsOf(kind func(*action) bool) (any, error) {
	actions := byID(c.p.Actions)
	if wanted := c.query["id"]; len(wanted) > 0 {
		var problems fields
		for _, text := range wanted {
			if _, err := strconv.ParseInt(text, 10, 64); err != nil {
				problems.add("id", "'%s' is not a number", text)
			}
		}
		if err := problems.err(); err != nil {
			return nil, err
		}
		actions = slices.DeleteFunc(actions, func(a *action) bool { return !slices.Contains(wanted, strconv.FormatInt(a.ID, 10)) })
	} else {
		actions = slices.DeleteFunc(actions, func(a *action) bool { return !kind(a) })
	}
	return c.answerActions(actions)
}

func getAction(c *call) (any, error) {
	a, err := get(c, "action", c.p.Actions)
	if err != nil {
		return nil, err
	}
	return map[string]any{"action": a.wire(c.now)}, nil
}

func listActionsOfServer(c *call) (any, error) {
	if _, err := get(c, "server", c.p.Servers); err != nil {
		return nil, err
	}
	actions := slices.DeleteFunc(byID(c.p.Actions), func(a *action) bool { return a.Server != c.id() })
	return c.answerActions(actions)
}

func getActionOfServer(c *call) (any, error) {
	a := c.p.Actions[c.ids[1]]
	if a == nil || a.Server != c.id() {
		return nil, refused(http.StatusNotFound, "not_found", "action with ID '%d' not found", c.ids[1])
	}
	return map[string]any{"action": a.wire(c.now)}, nil
}
