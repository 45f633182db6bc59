// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

// guestParams are the parameters of calls, those in their paths left out, by method
// and path.
var guestParams = map[string][]param{
	"GET /nodes/{node}/qemu": {
		{name: "full", kind: boolean, optional: true},
	},
	"DELETE /nodes/{node}/qemu/{vmid}": {
		{name: "destroy-unreferenced-disks", kind: boolean, optional: true},
		{name: "purge", kind: boolean, optional: true},
		{name: "skiplock", kind: boolean, optional: true},
	},
	"POST /nodes/{node}/qemu/{vmid}/clone": {
		{name: "bwlimit", kind: integer, optional: true, min: new(float64(0))},
		{name: "description", optional: true},
		{name: "format", optional: true, enum: words(`raw qcow2 vmdk`)},
		{name: "full", kind: boolean, optional: true},
		{name: "name", optional: true, format: "dns-name"},
		{name: "newid", kind: integer, format: "pve-vmid", min: new(float64(100)), max: new(float64(999999999))},
		{name: "pool", optional: true, format: "pve-poolid"},
		{name: "snapname", optional: true, format: "pve-configid", maxLength: 40},
		{name: "storage", optional: true, format: "pve-storage-id"},
		{name: "target", optional: true, format: "pve-node"},
	},
	"GET /nodes/{node}/qemu/{vmid}/config": {
		{name: "current", kind: boolean, optional: true},
		{name: "snapshot", optional: true, format: "pve-configid", maxLength: 40},
	},
	"PUT /nodes/{node}/qemu/{vmid}/resize": {
		{name: "digest", optional: true, maxLength: 40},
		{name: "disk", enum: drives},
		{name: "size", pattern: `\+?\d+(\.\d+)?[KMGT]?`},
		{name: "skiplock", kind: boolean, optional: true},
	},
	"POST /nodes/{node}/qemu/{vmid}/status/start": {
		{name: "force-cpu", optional: true},
		{name: "machine", optional: true, format: "properties"},
		{name: "migratedfrom", optional: true, format: "pve-node"},
		{name: "migration_network", optional: true, format: "CIDR"},
		{name: "migration_type", optional: true, enum: words(`secure insecure`)},
		{name: "nets-host-mtu", optional: true, pattern: `net\d+=\d+(,net\d+=\d+)*`},
		{name: "skiplock", kind: boolean, optional: true},
		{name: "stateuri", optional: true, maxLength: 128},
		{name: "targetstorage", optional: true, format: "storage-pair-list"},
		{name: "timeout", kind: integer, optional: true, min: new(float64(0))},
		{name: "with-conntrack-state", kind: boolean, optional: true},
	},
	"POST /nodes/{node}/qemu/{vmid}/status/stop": {
		{name: "keepActive", kind: boolean, optional: true},
		{name: "migratedfrom", optional: true, format: "pve-node"},
		{name: "overrule-shutdown", kind: boolean, optional: true},
		{name: "skiplock", kind: boolean, optional: true},
		{name: "timeout", kind: integer, optional: true, min: new(float64(0))},
	},
	"POST /nodes/{node}/qemu/{vmid}/status/shutdown": {
		{name: "forceStop", kind: boolean, optional: true},
		{name: "keepActive", kind: boolean, optional: true},
		{name: "skiplock", kind: boolean, optional: true},
		{name: "timeout", kind: integer, optional: true, min: new(float64(0))},
	},
	"POST /nodes/{node}/qemu/{vmid}/status/reset": {
		{name: "skiplock", kind: boolean, optional: true},
	},
	"POST /nodes/{node}/qemu/{vmid}/status/reboot": {
		{name: "timeout", kind: integer, optional: true, min: new(float64(0))},
	},
	"POST /nodes/{node}/qemu/{vmid}/template": {
		{name: "disk", optional: true, enum: drives},
	},
	"GET /nodes/{node}/qemu/{vmid}/cloudinit/dump": {
		{name: "type", enum: words(`user network meta`)},
	},
	"POST /nodes/{node}/qemu/{vmid}/migrate": {
		{name: "bwlimit", kind: integer, optional: true, min: new(float64(0))},
		{name: "force", kind: boolean, optional: true},
		{name: "migration_network", optional: true, format: "CIDR"},
		{name: "migration_type", optional: true, enum: words(`secure insecure`)},
		{name: "online", kind: boolean, optional: true},
		{name: "target", format: "pve-node"},
		{name: "targetstorage", optional: true, format: "storage-pair-list"},
		{name: "with-conntrack-state", kind: boolean, optional: true},
		{name: "with-local-disks", kind: boolean, optional: true},
	},
}
