// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

// otherParams are the parameters of calls, those in their paths left out, by method
// and path.
var otherParams = map[string][]param{
	"GET /cluster/resources": {
		{name: "type", optional: true, enum: words(`vm storage node sdn`)},
	},
	"GET /cluster/nextid": {
		{name: "vmid", kind: integer, optional: true, format: "pve-vmid", min: new(float64(100)), max: new(float64(999999999))},
	},
	"GET /nodes/{node}/storage": {
		{name: "content", optional: true, format: "pve-storage-content-list"},
		{name: "enabled", kind: boolean, optional: true},
		{name: "format", kind: boolean, optional: true},
		{name: "storage", optional: true, format: "pve-storage-id"},
		{name: "target", optional: true, format: "pve-node"},
	},
	"GET /nodes/{node}/storage/{storage}/content": {
		{name: "content", optional: true, format: "pve-storage-content"},
		{name: "vmid", kind: integer, optional: true, format: "pve-vmid", min: new(float64(100)), max: new(float64(999999999))},
	},
	"DELETE /nodes/{node}/storage/{storage}/content/{volume}": {
		{name: "delay", kind: integer, optional: true, min: new(float64(1)), max: new(float64(30))},
	},
	"GET /nodes/{node}/tasks": {
		{name: "errors", kind: boolean, optional: true},
		{name: "limit", kind: integer, optional: true, min: new(float64(0))},
		{name: "since", kind: integer, optional: true},
		{name: "source", optional: true, enum: words(`archive active all`)},
		{name: "start", kind: integer, optional: true, min: new(float64(0))},
		{name: "statusfilter", optional: true, format: "pve-task-status-type-list"},
		{name: "typefilter", optional: true},
		{name: "until", kind: integer, optional: true},
		{name: "userfilter", optional: true},
		{name: "vmid", kind: integer, optional: true, format: "pve-vmid", min: new(float64(100)), max: new(float64(999999999))},
	},
	"GET /nodes/{node}/tasks/{upid}/log": {
		{name: "download", kind: boolean, optional: true},
		{name: "limit", kind: integer, optional: true, min: new(float64(0))},
		{name: "start", kind: integer, optional: true, min: new(float64(0))},
	},
	"GET /pools": {
		{name: "poolid", optional: true, format: "pve-poolid"},
		{name: "type", optional: true, enum: words(`qemu lxc storage`)},
	},
	"GET /pools/{poolid}": {
		{name: "type", optional: true, enum: words(`qemu lxc storage`)},
	},
	"GET /access/permissions": {
		{name: "path", optional: true},
		{name: "userid", optional: true, pattern: `(?^:^(?^:[^\s:/]+)\@(?^:[A-Za-z][A-Za-z0-9\.\-_]+)(?:!(?^:[A-Za-z][A-Za-z0-9\.\-_]+))?$)`},
	},
	"GET /nodes/{node}/network": {
		{name: "type", optional: true, enum: words(`bridge bond eth alias vlan fabric OVSBridge OVSBond OVSPort OVSIntPort vnet any_bridge any_local_bridge include_sdn`)},
	},
	"POST /cluster/ha/resources": {
		{name: "sid", format: "pve-ha-resource-or-vm-id"},
		{name: "auto-rebalance", kind: boolean, optional: true},
		{name: "comment", optional: true, maxLength: 4096},
		{name: "failback", kind: boolean, optional: true},
		{name: "group", optional: true, format: "pve-configid"},
		{name: "max_relocate", kind: integer, optional: true, min: new(float64(0))},
		{name: "max_restart", kind: integer, optional: true, min: new(float64(0))},
		{name: "state", optional: true, enum: words(`started stopped enabled disabled ignored`)},
		{name: "type", optional: true, enum: words(`ct vm`)},
	},
	"DELETE /cluster/ha/resources/{sid}": {
		{name: "purge", kind: boolean, optional: true},
	},
	"GET /cluster/ha/resources": {
		{name: "type", optional: true, enum: words(`ct vm`)},
	},
}
