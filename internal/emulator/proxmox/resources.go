// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func clusterRoutes() []route {
	audit := func(c *call) error { return c.need("/", "Sys.Audit") }
	console := func(c *call) error { return c.need("/", "Sys.Console") }
	return []route{
		{method: "GET", path: "/version", handle: version},
		{method: "GET", path: "/cluster/resources", handle: clusterResources},
		{method: "GET", path: "/cluster/nextid", handle: nextID},
		{method: "GET", path: "/cluster/status", allow: audit, handle: clusterStatus},
		{method: "GET", path: "/cluster/ha/resources", allow: audit, handle: listHA},
		{method: "POST", path: "/cluster/ha/resources", allow: console, handle: addHA},
		{method: "GET", path: "/cluster/ha/resources/{sid}", allow: audit, handle: getHA},
		{method: "DELETE", path: "/cluster/ha/resources/{sid}", allow: console, handle: removeHA},
	}
}

func clusterResources(c *call) (any, error) {
	rows := []map[string]any{}
	wanted := c.params["type"]
	if wanted == "" || wanted == "vm" {
		for _, g := range byID(c.p.VMs) {
			if !c.hidden(g) && c.may(vmPath(g.ID), "VM.Audit") {
				rows = append(rows, c.resourceRow(g))
			}
		}
	}
	for _, node := range c.s.options.Nodes {
		if wanted == "" || wanted == "node" {
			rows = append(rows, c.nodeRow(node))
		}
		if wanted == "" || wanted == "storage" {
			rows = append(rows, c.storageResources(node)...)
		}
		if (wanted == "" || wanted == "sdn") && c.may("/sdn/zones/localnetwork", "SDN.Audit") {
			rows = append(rows, map[string]any{
				"id": "sdn/" + node + "/localnetwork", "type": "sdn", "sdn": "localnetwork", "node": node, "status": "ok",
			})
		}
	}
	return rows, nil
}

// resourceRow is a VM in the list of the whole cluster. Where it is and what its
// file says of tags and locks is current; the rest is what pvestatd has last
// published, and nothing for a VM that it hasn't seen yet.
func (c *call) resourceRow(g *guest) map[string]any {
	row := map[string]any{
		"id": fmt.Sprintf("%s/%d", g.kind(), g.ID), "type": g.kind(), "vmid": g.ID, "node": g.Node, "status": "unknown",
	}
	if g.Pool != "" {
		row["pool"] = g.Pool
	}
	if g.HA != "" {
		row["hastate"] = g.HA
	}
	for _, name := range []string{"tags", "lock"} {
		if value := g.option(name); value != "" {
			row[name] = value
		}
	}
	last, any := g.seen(c.now)
	if !any {
		return row
	}
	template := 0
	if last.Template {
		template = 1
	}
	row["name"], row["template"] = last.Name, template
	if c.p.Down[g.Node] {
		return row
	}
	row["status"] = "stopped"
	row["cpu"], row["mem"], row["uptime"] = 0, int64(0), 0
	if last.Running {
		row["status"] = "running"
		row["cpu"], row["mem"], row["uptime"] = 0.01, g.memory()/2, max(0, int(c.now.Sub(g.Started).Seconds()))
	}
	row["maxcpu"], row["maxmem"], row["maxdisk"], row["disk"] = g.cpus(), g.memory(), g.disk(), 0
	row["netin"], row["netout"], row["diskread"], row["diskwrite"] = 0, 0, 0, 0
	return row
}

// The range that nextid looks in when it isn't asked about one VMID.
const (
	firstVMID = 100
	lastVMID  = 999_999
)

// nextID is a free VMID, or the refusal of one that isn't: whoever asks, and
// whatever it belongs to.
func nextID(c *call) (any, error) {
	if asked := c.params["vmid"]; asked != "" {
		if c.p.VMs[atoi(asked)] != nil {
			return nil, badParam("vmid", "VM %s already exists", asked)
		}
		return asked, nil
	}
	for id := firstVMID; id <= lastVMID; id++ {
		if c.p.VMs[id] == nil {
			return strconv.Itoa(id), nil
		}
	}
	return nil, died("unable to get any free VMID in range [%d, %d]", firstVMID, lastVMID)
}

func clusterStatus(c *call) (any, error) {
	nodes := c.s.options.Nodes
	up := 0
	for _, node := range nodes {
		if !c.p.Down[node] {
			up++
		}
	}
	quorate := 0
	if up*2 > len(nodes) || len(nodes) <= 2 {
		quorate = 1
	}
	rows := []any{map[string]any{
		"type": "cluster", "id": "cluster", "name": "emulated", "nodes": len(nodes), "quorate": quorate, "version": len(nodes),
	}}
	for i, node := range nodes {
		online, local := 1, 0
		if c.p.Down[node] {
			online = 0
		}
		if i == 0 {
			local = 1
		}
		rows = append(rows, map[string]any{
			"type": "node", "id": "node/" + node, "name": node, "nodeid": i + 1, "online": online, "local": local,
			"ip": fmt.Sprintf("127.0.0.%d", i+1), "level": "",
		})
	}
	return rows, nil
}

func haRow(g *guest) map[string]any {
	return map[string]any{
		"sid": "vm:" + strconv.Itoa(g.ID), "type": "vm", "state": g.HA, "max_relocate": 1, "max_restart": 1, "digest": g.digest(),
	}
}

func listHA(c *call) (any, error) {
	rows := []any{}
	for _, g := range byID(c.p.VMs) {
		if g.HA != "" && c.params["type"] != "ct" {
			rows = append(rows, haRow(g))
		}
	}
	return rows, nil
}

// sid is a resource's id with its type.
func sid(text string) string {
	if digits(text) {
		return "vm:" + text
	}
	return text
}

// byHA is the VM of the path, which the HA manager has.
func (c *call) byHA() (*guest, error) {
	id := sid(c.ids["sid"])
	g := c.p.VMs[atoi(strings.TrimPrefix(id, "vm:"))]
	if g == nil || g.HA == "" {
		return nil, died("no such resource '%s'", id)
	}
	return g, nil
}

func getHA(c *call) (any, error) {
	g, err := c.byHA()
	if err != nil {
		return nil, err
	}
	return haRow(g), nil
}

// addHA gives a VM to the HA manager, which starts it unless it is told otherwise.
func addHA(c *call) (any, error) {
	id := sid(c.params["sid"])
	g := c.p.VMs[atoi(strings.TrimPrefix(id, "vm:"))]
	switch {
	case g == nil || g.LXC:
		return nil, died("resource 'vm' '%s' does not exist in cluster", strings.TrimPrefix(id, "vm:"))
	case g.isTemplate():
		return nil, died("unable to add template '%s' as HA resource", id)
	case g.HA != "":
		return nil, died("resource ID '%s' already defined", id)
	}
	state := c.params["state"]
	if state == "" || state == "enabled" {
		state = "started"
	}
	g.HA = state
	if state == "started" && !g.Running {
		c.p.begin(g.Node, "qmstart", strconv.Itoa(g.ID), "root@pam", c.now.Add(c.s.options.Lag), work{VMID: g.ID})
	}
	return nil, nil
}

// removeHA takes a VM from the HA manager, and leaves it as it is.
func removeHA(c *call) (any, error) {
	g, err := c.byHA()
	if err != nil {
		return nil, err
	}
	g.HA = ""
	return nil, nil
}

// visiblePools are those that the caller may see.
func (c *call) visiblePools() []string {
	return slices.DeleteFunc(slices.Clone(c.p.Pools), func(name string) bool { return !c.may("/pool/"+name, "Pool.Audit") })
}
