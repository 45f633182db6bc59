// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"fmt"
	"maps"
)

// migrate begins the move of a VM to another node.
func migrate(c *call) (any, error) {
	target := c.params["target"]
	switch {
	case target == c.node():
		return nil, badParam("target", "target is local node.")
	case !c.s.hasNode(target):
		return nil, died("no such cluster node '%s'", target)
	}
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if g.Running && !c.flag("online") {
		return nil, died("can't migrate running VM without --online")
	}
	kind := "qmigrate"
	if g.HA != "" {
		kind = "hamigrate"
	}
	return c.begin(kind, work{VMID: g.ID, Params: maps.Clone(c.params)})
}

func migrateStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	target := w.t.Work.Params["target"]
	if w.t.Stage > 0 {
		delete(g.Config, "lock")
		w.p.move(g, target)
		return nil
	}
	if err := checkLock(g); err != nil {
		return err
	}
	if w.p.Down[target] {
		return errors.New("can't connect to destination address using public key")
	}
	for _, key := range driveKeys(g.Config) {
		d := parseDrive(g.Config[key])
		if v := w.p.volume(g.Node, d.file); v != nil && v.Node != "" && !d.isCloudInit() && w.t.Work.Params["with-local-disks"] != "1" {
			return fmt.Errorf("can't migrate local disk '%s': can't live migrate attached local disks without with-local-disks option", v.id())
		}
	}
	g.Config["lock"] = "migrate"
	return w.then(w.s.options.TaskTime)
}

// move puts a VM, and its volumes that aren't shared, on another node.
func (p *cluster) move(g *guest, node string) {
	for _, v := range p.Volumes {
		if v.VMID == g.ID && v.Node == g.Node && v.Content == "images" {
			v.Node = node
		}
	}
	g.Node = node
}
