// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Template is a template that VMs are cloned from.
type Template struct {
	VMID int
	Name string
	Node string
	// Storage is where its disk and its drive for cloud-init are.
	Storage string
	// DiskGiB is the size of its disk.
	DiskGiB int
	// Agent is the option agent, AgentInstalled whether there is one.
	Agent, AgentInstalled bool
	// NoCloudInit leaves the drive for cloud-init out.
	NoCloudInit bool
	Description string
	// Tags are as an option has them: "a;b".
	Tags string
	// Options are others that it has.
	Options map[string]string
}

// DefaultTemplates are "debian-13" (9000) on the first node and shared storage,
// with an agent; "ubuntu-24.04" on the local storage of the first two nodes (9001
// and 9002), with an agent on the second only; and "alpine-3.22" (9003), which has
// no drive for cloud-init.
func DefaultTemplates(nodes []string) []Template {
	first, second := nodes[0], nodes[len(nodes)-1]
	if len(nodes) > 1 {
		second = nodes[1]
	}
	return []Template{
		{
			VMID: 9000, Name: "debian-13", Node: first, Storage: "shared", DiskGiB: 3, Agent: true, AgentInstalled: true,
			Description: "Debian 13 (trixie), genericcloud", Tags: "debian;template",
		},
		{VMID: 9001, Name: "ubuntu-24.04", Node: first, Storage: "local-lvm", DiskGiB: 4},
		{VMID: 9002, Name: "ubuntu-24.04", Node: second, Storage: "local-lvm", DiskGiB: 4, Agent: true, AgentInstalled: true},
		{VMID: 9003, Name: "alpine-3.22", Node: first, Storage: "shared", DiskGiB: 1, NoCloudInit: true},
	}
}

// Container is an LXC container, which takes a VMID.
type Container struct {
	VMID int
	Name string
	Node string
	// Tags are as an option has them: "a;b".
	Tags string
}

// DefaultContainers are one, "dns" (150), on the first node.
func DefaultContainers(nodes []string) []Container {
	return []Container{{VMID: 150, Name: "dns", Node: nodes[0]}}
}

// addTemplate makes a template. Its caller holds mu.
func (s *Service) addTemplate(p *cluster, t Template) {
	now := time.Now()
	st, _ := s.storage(t.Storage)
	disk := s.allocate(p, t.Node, st, fmt.Sprintf("base-%d-disk-", t.VMID), t.VMID, int64(t.DiskGiB)*gib, now)
	g := &guest{ID: t.VMID, Node: t.Node, Created: now, Agent: t.AgentInstalled}
	g.Config = map[string]string{
		"name": t.Name, "template": "1", "ostype": "l26", "cores": "1", "memory": "1024", "scsihw": "virtio-scsi-single",
		"boot": "order=scsi0", "serial0": "socket", "vga": "serial0", "cpu": "x86-64-v2-AES",
		"scsi0":   fmt.Sprintf("%s,discard=on,size=%s", disk.id(), formatSize(disk.Size)),
		"net0":    "virtio=" + p.newMAC() + ",bridge=vmbr0",
		"smbios1": "uuid=" + newUUID(), "vmgenid": newUUID(),
		"meta": "creation-qemu=10.0.2,ctime=" + strconv.FormatInt(now.Unix(), 10),
	}
	if t.Agent {
		g.Config["agent"] = "enabled=1"
	}
	if !t.NoCloudInit {
		drive := s.allocate(p, t.Node, st, fmt.Sprintf("vm-%d-cloudinit", t.VMID), t.VMID, cloudInitSize, now)
		g.Config["ide2"] = drive.id() + ",media=cdrom,size=4M"
	}
	for name, value := range map[string]string{"description": t.Description, "tags": t.Tags} {
		if value != "" {
			g.Config[name] = value
		}
	}
	maps.Copy(g.Config, t.Options)
	g.complete()
	p.VMs[t.VMID] = g
}

// addContainer makes a container that runs. Its caller holds mu.
func (s *Service) addContainer(p *cluster, add Container) {
	now := time.Now()
	g := &guest{ID: add.VMID, LXC: true, Node: add.Node, Created: now, Running: true, Started: now}
	g.Config = map[string]string{"hostname": add.Name, "cores": "1", "memory": "512", "ostype": "debian"}
	if add.Tags != "" {
		g.Config["tags"] = add.Tags
	}
	g.complete()
	p.VMs[add.VMID] = g
}
