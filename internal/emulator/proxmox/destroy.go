// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// destroy begins the destruction of a VM. Its VMID is free again when the task
// ends.
func destroy(c *call) (any, error) {
	if err := c.skipLock(); err != nil {
		return nil, err
	}
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := destroyable(g, c.params); err != nil {
		return nil, died("%s", err)
	}
	return c.begin("qmdestroy", work{VMID: g.ID, Params: maps.Clone(c.params)})
}

// destroyable are the checks of the call and, again, of the task.
func destroyable(g *guest, params map[string]string) error {
	switch {
	case g.option("protection") == "1":
		return fmt.Errorf("can't remove VM %d - protection mode enabled", g.ID)
	case g.HA != "" && params["purge"] != "1":
		return fmt.Errorf("unable to remove VM %d - used in HA resources and purge parameter not set.", g.ID) //nolint:staticcheck,revive // the vendor's words
	case g.Running:
		return fmt.Errorf("VM %d is running - destroy failed", g.ID)
	}
	return nil
}

func destroyStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	switch w.t.Stage {
	case 1:
		// Of the options only the lock is left, until the file itself goes.
		w.p.freeVolumes(g, w.t.Work.Params["destroy-unreferenced-disks"] == "1")
		g.Config = map[string]string{"lock": "destroyed"}
		g.Pending, g.Removed = map[string]string{}, map[string]bool{}
		return w.then(w.s.options.TaskTime / 2)
	case 2:
		delete(w.p.VMs, g.ID)
		return nil
	}
	if err := destroyable(g, w.t.Work.Params); err != nil {
		return err
	}
	if err := checkLock(g); err != nil {
		return err
	}
	for _, key := range driveKeys(g.Config) {
		if v := w.p.volume(g.Node, parseDrive(g.Config[key]).file); v != nil && w.p.inUse(v) {
			return fmt.Errorf("base volume '%s' is still in use by linked cloned", v.id())
		}
	}
	g.HA = ""
	return w.then(w.s.options.TaskTime / 2)
}

// freeVolumes removes the volumes that a VM's options name, or all that have its
// VMID.
func (p *cluster) freeVolumes(g *guest, all bool) {
	named := map[string]bool{}
	for key, value := range g.Config {
		if driveName.MatchString(key) || unusedName.MatchString(key) {
			named[parseDrive(value).file] = true
		}
	}
	p.Volumes = slices.DeleteFunc(p.Volumes, func(v *volume) bool {
		here := v.Node == "" || v.Node == g.Node
		return here && v.VMID == g.ID && v.Content == "images" && (all || named[v.id()])
	})
}

// resize begins the growth of a drive. All checks are the task's.
func resize(c *call) (any, error) {
	if err := c.skipLock(); err != nil {
		return nil, err
	}
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	return c.begin("resize", work{VMID: g.ID, Params: maps.Clone(c.params)})
}

func resizeStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	if err := checkLock(g); err != nil {
		return err
	}
	params := w.t.Work.Params
	if digest := params["digest"]; digest != "" && digest != g.digest() {
		return errors.New("checksum mismatch (file change by other user?)")
	}
	key := params["disk"]
	text, found := g.Config[key]
	if !found {
		return fmt.Errorf("disk '%s' does not exist", key)
	}
	d := parseDrive(text)
	if d.isCDROM() {
		return errors.New("you can't resize a cdrom")
	}
	v := w.p.volume(g.Node, d.file)
	if v == nil {
		return fmt.Errorf("volume '%s' does not exist", d.file)
	}
	size := sizeOf(strings.TrimPrefix(params["size"], "+"))
	if strings.HasPrefix(params["size"], "+") {
		size += v.Size
	}
	// Storages round up to whole KiB.
	size = (size + 1023) &^ 1023
	st, _ := w.s.storage(v.Storage)
	switch {
	case size < v.Size:
		return errors.New("shrinking disks is not supported")
	case w.t.Work.FailSpace, w.p.used(g.Node, st)+size-v.Size > st.Total:
		return full(st, g.ID)
	case w.t.Stage == 0:
		return w.then(w.s.options.TaskTime / 2)
	}
	v.Size = size
	d.set("size", formatSize(size))
	g.Config[key] = d.String()
	return nil
}

// makeTemplate begins the conversion of a VM into a template.
func makeTemplate(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := templatable(g); err != nil {
		return nil, died("%s", err)
	}
	return c.begin("qmtemplate", work{VMID: g.ID})
}

func templatable(g *guest) error {
	switch {
	case g.isTemplate():
		return errors.New("you can't convert a template to a template")
	case g.Running:
		return errors.New("you can't convert a VM to template if VM is running")
	}
	return checkLock(g)
}

func templateStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	if err := templatable(g); err != nil {
		return err
	}
	if w.t.Stage == 0 {
		return w.then(w.s.options.TaskTime / 2)
	}
	w.p.toTemplate(g)
	return nil
}

// toTemplate makes a VM a template: its disks become base volumes.
func (p *cluster) toTemplate(g *guest) {
	g.Config["template"] = "1"
	for _, key := range driveKeys(g.Config) {
		d := parseDrive(g.Config[key])
		v := p.volume(g.Node, d.file)
		if v == nil || d.isCDROM() {
			continue
		}
		v.Name = strings.Replace(v.Name, "vm-", "base-", 1)
		d.file = v.id()
		g.Config[key] = d.String()
	}
}
