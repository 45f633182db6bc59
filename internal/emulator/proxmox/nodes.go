// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"strings"
)

// What each node has.
const (
	nodeCPUs   = 16
	nodeMemory = 64 * gib
	nodeDisk   = 100 * gib
	// ownMemory is what a node needs for itself.
	ownMemory = 4 * gib
)

// versions are the releases that are emulated, by their major versions.
var versions = map[int]struct{ version, release, repoid, kernel string }{
	8: {"8.4.14", "8.4", "b502d23c55afcba1", "6.8.12-15-pve"},
	9: {"9.2.11", "9.2", "d0a1f5e1c2a7c1f3", "7.0.2-1-pve"},
}

func nodeRoutes() []route {
	return []route{
		{method: "GET", path: "/nodes", handle: listNodes},
		{method: "GET", path: "/nodes/{node}/status", allow: needNode("Sys.Audit"), handle: nodeStatus},
		{method: "GET", path: "/nodes/{node}/version", handle: version},
		{method: "GET", path: "/nodes/{node}/network", handle: listNetworks},
	}
}

func version(c *call) (any, error) {
	v := versions[c.s.options.Version]
	return map[string]any{"version": v.version, "release": v.release, "repoid": v.repoid}, nil
}

// memoryUsed is what the running VMs of a node have, and the node itself, in bytes.
func (p *cluster) memoryUsed(node string) int64 {
	used := int64(ownMemory)
	for _, g := range p.VMs {
		if g.Node == node && g.Running {
			used += g.memory()
		}
	}
	return min(used, nodeMemory)
}

// nodeRow is a node in lists. What it has is told with a privilege only, and while
// it is up.
func (c *call) nodeRow(node string) map[string]any {
	row := map[string]any{"node": node, "id": "node/" + node, "type": "node", "status": "online"}
	if c.p.Down[node] {
		row["status"] = "offline"
		return row
	}
	if !c.may("/nodes/"+node, "Sys.Audit") {
		return row
	}
	row["cpu"], row["maxcpu"], row["uptime"], row["level"] = 0.05, nodeCPUs, 86400, ""
	row["mem"], row["maxmem"] = c.p.memoryUsed(node), int64(nodeMemory)
	row["disk"], row["maxdisk"] = int64(nodeDisk/4), int64(nodeDisk)
	return row
}

func listNodes(c *call) (any, error) {
	rows := []any{}
	for _, node := range c.s.options.Nodes {
		row := c.nodeRow(node)
		if c.s.fingerprint != "" {
			row["ssl_fingerprint"] = c.s.fingerprint
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func nodeStatus(c *call) (any, error) {
	v := versions[c.s.options.Version]
	used := c.p.memoryUsed(c.node())
	return map[string]any{
		"cpu": 0.05, "wait": 0, "idle": 0, "uptime": 86400,
		"cpuinfo":   map[string]any{"cpus": nodeCPUs, "cores": nodeCPUs / 2, "sockets": 1, "model": "Emulated CPU", "mhz": "3000.000", "user_hz": 100, "hvm": "1", "flags": "vmx"},
		"memory":    map[string]any{"total": int64(nodeMemory), "used": used, "free": nodeMemory - used, "available": nodeMemory - used},
		"swap":      map[string]any{"total": 0, "used": 0, "free": 0},
		"rootfs":    map[string]any{"total": int64(nodeDisk), "used": int64(nodeDisk / 4), "free": int64(nodeDisk * 3 / 4), "avail": int64(nodeDisk * 3 / 4)},
		"ksm":       map[string]any{"shared": 0},
		"loadavg":   []string{"0.10", "0.08", "0.05"},
		"boot-info": map[string]any{"mode": "efi", "secureboot": 0},
		"current-kernel": map[string]any{
			"machine": "x86_64", "release": v.kernel, "sysname": "Linux", "version": "#1 SMP PREEMPT_DYNAMIC PMX " + v.kernel,
		},
		"kversion":   "Linux " + v.kernel + " #1 SMP PREEMPT_DYNAMIC",
		"pveversion": fmt.Sprintf("pve-manager/%s/%s", v.version, v.repoid),
	}, nil
}

// listNetworks lists what network cards can be on. A bridge is seen by those who may
// use or audit it.
func listNetworks(c *call) (any, error) {
	rows := []any{}
	wanted := c.params["type"]
	if wanted != "" && !strings.Contains(wanted, "bridge") {
		return rows, nil
	}
	for i, bridge := range c.s.options.Bridges {
		if path := bridgePath(bridge, ""); !c.may(path, "SDN.Use") && !c.may(path, "SDN.Audit") {
			continue
		}
		rows = append(rows, map[string]any{
			"iface": bridge, "type": "bridge", "active": 1, "autostart": 1, "priority": i + 3, "method": "manual", "method6": "manual",
			"bridge_ports": fmt.Sprintf("eno%d", i+1), "bridge_stp": "off", "bridge_fd": "0", "families": []string{"inet"},
		})
	}
	return rows, nil
}

// digits tells whether a text is a number, as VMIDs are.
func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
