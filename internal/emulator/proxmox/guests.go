// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/rand"
	"fmt"
	"strconv"
)

func guestRoutes() []route {
	const vm = "/nodes/{node}/qemu/{vmid}"
	return []route{
		{method: "GET", path: "/nodes/{node}/qemu", handle: listGuests(false)},
		{method: "GET", path: "/nodes/{node}/lxc", handle: listGuests(true)},
		{method: "DELETE", path: vm, allow: needVM("VM.Allocate"), handle: destroy},
		{method: "POST", path: vm + "/clone", allow: mayClone, handle: clone},
		{method: "GET", path: vm + "/config", allow: needVM("VM.Audit"), handle: getConfig},
		{method: "PUT", path: vm + "/config", allow: mayConfigure, handle: changeConfig(false)},
		{method: "POST", path: vm + "/config", allow: mayConfigure, handle: changeConfig(true)},
		{method: "GET", path: vm + "/pending", allow: needVM("VM.Audit"), handle: getPending},
		{method: "PUT", path: vm + "/resize", allow: needVM("VM.Config.Disk"), handle: resize},
		{method: "GET", path: vm + "/status/current", allow: needVM("VM.Audit"), handle: currentStatus},
		{method: "POST", path: vm + "/status/start", allow: needVM("VM.PowerMgmt"), handle: power("qmstart", "hastart")},
		{method: "POST", path: vm + "/status/stop", allow: needVM("VM.PowerMgmt"), handle: power("qmstop", "hastop")},
		{method: "POST", path: vm + "/status/shutdown", allow: needVM("VM.PowerMgmt"), handle: power("qmshutdown", "hastop")},
		{method: "POST", path: vm + "/status/reset", allow: needVM("VM.PowerMgmt"), handle: power("qmreset", "")},
		{method: "POST", path: vm + "/status/reboot", allow: needVM("VM.PowerMgmt"), handle: power("qmreboot", "")},
		{method: "POST", path: vm + "/template", allow: needVM("VM.Allocate"), handle: makeTemplate},
		{method: "GET", path: vm + "/cloudinit", allow: needVM("VM.Audit"), handle: pendingCloudInit},
		{method: "PUT", path: vm + "/cloudinit", allow: needVM("VM.Config.Cloudinit"), handle: regenerate},
		{method: "GET", path: vm + "/cloudinit/dump", allow: needVM("VM.Audit"), handle: dumpCloudInit},
		{method: "POST", path: vm + "/migrate", allow: needVM("VM.Migrate"), handle: migrate},
		{method: "GET", path: vm + "/agent/network-get-interfaces", allow: mayAskAgent, handle: agentInterfaces},
		{method: "GET", path: vm + "/agent/get-osinfo", allow: mayAskAgent, handle: agentSystem},
	}
}

// mayConfigure wants any of the privileges to change a VM; what each option needs
// is looked at later.
func mayConfigure(c *call) error {
	return c.needAny("/vms/"+c.ids["vmid"], words(`VM.Config.Disk VM.Config.CDROM VM.Config.CPU VM.Config.Memory
		VM.Config.Network VM.Config.HWType VM.Config.Options VM.Config.Cloudinit`)...)
}

// hidden tells whether a fault keeps a VM out of lists.
func (c *call) hidden(g *guest) bool {
	if c.now.Before(g.HiddenUntil) {
		return true
	}
	rule, ok := c.fault("hide-from-lists")
	return ok && g.Created.After(c.now.Add(-duration(rule.Delay)))
}

func listGuests(containers bool) func(*call) (any, error) {
	return func(c *call) (any, error) {
		rows := []map[string]any{}
		for _, g := range byID(c.p.VMs) {
			if g.Node == c.node() && g.LXC == containers && !c.hidden(g) && c.may(vmPath(g.ID), "VM.Audit") {
				rows = append(rows, c.statusRow(g))
			}
		}
		return rows, nil
	}
}

// statusRow is a VM as the node it runs on knows it.
func (c *call) statusRow(g *guest) map[string]any {
	row := map[string]any{
		"vmid": g.ID, "name": g.name(), "status": g.status(), "cpus": g.cpus(), "maxmem": g.memory(), "maxdisk": g.disk(),
		"uptime": 0, "cpu": 0, "mem": 0, "netin": 0, "netout": 0, "diskread": 0, "diskwrite": 0,
	}
	if g.Running {
		uptime := int(c.now.Sub(g.Started).Seconds())
		row["uptime"], row["cpu"], row["mem"] = uptime, 0.01, g.memory()/2
		row["netin"], row["netout"], row["diskread"], row["diskwrite"] = uptime*1000, uptime*1000, uptime*4096, uptime*4096
		row["pid"] = g.PID
	}
	for _, name := range []string{"tags", "lock"} {
		if value := g.option(name); value != "" {
			row[name] = value
		}
	}
	if g.isTemplate() {
		row["template"] = 1
	}
	return row
}

func currentStatus(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	row := c.statusRow(g)
	row["qmpstatus"] = g.status()
	ha := map[string]any{"managed": 0}
	if g.HA != "" {
		ha = map[string]any{"managed": 1, "state": g.HA}
	}
	row["ha"] = ha
	if agentEnabled(g) {
		row["agent"] = 1
	}
	return row, nil
}

func (g *guest) number(name string, byDefault int) int {
	if n, err := strconv.Atoi(g.option(name)); err == nil {
		return n
	}
	return byDefault
}

func (g *guest) cpus() int { return g.number("sockets", 1) * g.number("cores", 1) }

// memory is in bytes.
func (g *guest) memory() int64 { return int64(g.number("memory", 512)) << 20 }

// disk is the size of the boot disk, in bytes.
func (g *guest) disk() int64 {
	for _, key := range driveKeys(g.Config) {
		if d := parseDrive(g.Config[key]); !d.isCDROM() {
			return sizeOf(d.get("size"))
		}
	}
	return sizeOf(lookup(g.option("rootfs"), "volume", "size"))
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
