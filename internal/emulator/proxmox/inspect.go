// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// managedTag is the tag by which this provider knows its VMs.
const managedTag = "better-compute"

// VM is what a test may want to know of a guest, the API's answers aside.
type VM struct {
	ID       int
	Project  string
	Node     string
	Name     string
	LXC      bool
	Template bool
	Running  bool
	Pool     string
	Tags     []string
	// Config are the options in force, Pending those that wait for a start.
	Config, Pending map[string]string
	// UserData is what the last start gave to cloud-init, from a snippet.
	UserData string
	// HA is the state that the HA manager is asked to keep.
	HA string
}

// VMs returns the guests of all projects as they are now, by their VMIDs:
// templates and containers too.
func (s *Service) VMs() []VM {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []VM
	for project, p := range s.current() {
		for _, g := range p.VMs {
			all = append(all, VM{
				ID: g.ID, Project: project, Node: g.Node, Name: g.name(), LXC: g.LXC, Template: g.isTemplate(), Running: g.Running,
				Pool: g.Pool, Tags: splitList(g.option("tags")), Config: maps.Clone(g.Config), Pending: maps.Clone(g.Pending),
				UserData: g.UserData, HA: g.HA,
			})
		}
	}
	slices.SortFunc(all, func(a, b VM) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Project, b.Project)) })
	return all
}

// Machines returns what VMs does, without templates and containers.
func (s *Service) Machines() []VM {
	return slices.DeleteFunc(s.VMs(), func(vm VM) bool { return vm.Template || vm.LXC })
}

// Volumes returns the ids of all volumes and snippets of all projects, sorted; one
// on a node's own storage with the node before it: "pve1/local-lvm:vm-100-disk-0".
func (s *Service) Volumes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, p := range s.current() {
		for _, v := range p.Volumes {
			id := v.id()
			if v.Node != "" {
				id = v.Node + "/" + id
			}
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Task is what a test may want to know of a task.
type Task struct {
	UPID, Node, Type, ID, User string
	// Exit is the exit status; empty: it runs.
	Exit string
}

// Tasks returns the tasks of all projects in the order of their beginnings.
func (s *Service) Tasks() []Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Task
	for _, p := range byID(s.current()) {
		for _, t := range p.Tasks {
			all = append(all, Task{t.UPID, t.Node, t.Type, t.ID, t.User, t.Exit})
		}
	}
	return all
}

// Objects lists the VMs that are neither templates nor containers, for the control
// API. Disks are parts of VMs here, not volumes.
func (s *Service) Objects() emulator.Objects {
	objects := emulator.Objects{Machines: []emulator.Object{}, Volumes: []emulator.Object{}, Snapshots: []emulator.Object{}}
	for _, vm := range s.Machines() {
		state := "stopped"
		if vm.Running {
			state = "running"
		}
		objects.Machines = append(objects.Machines, emulator.Object{
			ID: strconv.Itoa(vm.ID), Name: vm.Name, State: state, Managed: slices.Contains(vm.Tags, managedTag),
		})
	}
	return objects
}

// current brings all clusters to the present. Its caller holds mu.
func (s *Service) current() map[string]*cluster {
	now := time.Now()
	for _, p := range s.store.Clusters {
		s.advance(p, now)
	}
	return s.store.Clusters
}

// alter does something to a guest behind the API's back. It reports whether there
// is such a guest.
func (s *Service) alter(vmid int, do func(p *cluster, g *guest)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.current() {
		if g := p.VMs[vmid]; g != nil {
			do(p, g)
			p.publish(time.Now(), s.options.Lag)
			return true
		}
	}
	return false
}

// SetPower turns a VM on or off at once, as someone at the console might. It
// reports whether there is such a VM, as the functions below do.
func (s *Service) SetPower(vmid int, on bool) bool {
	return s.alter(vmid, func(p *cluster, g *guest) {
		g.Running = false
		if on {
			w := &worker{s: s, p: p, at: time.Now()}
			w.run(g)
		}
	})
}

// Delete removes a VM and its disks at once.
func (s *Service) Delete(vmid int) bool {
	return s.alter(vmid, func(p *cluster, g *guest) {
		p.freeVolumes(g, true)
		delete(p.VMs, vmid)
	})
}

// PutStranger makes someone else's VM, stopped, in the place of what has the VMID
// or in an empty one, in the cluster that tokens see when none are separated.
func (s *Service) PutStranger(vmid int, node, name, description, tags string) {
	s.Delete(vmid)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.cluster(emulator.DefaultProject)
	st, _ := s.storage(s.options.Templates[0].Storage)
	disk := s.allocate(p, node, st, fmt.Sprintf("vm-%d-disk-", vmid), vmid, 8*gib, time.Now())
	g := &guest{ID: vmid, Node: node, Created: time.Now(), Config: map[string]string{
		"name": name, "cores": "2", "memory": "2048", "scsi0": disk.id() + ",size=8G", "net0": "virtio=" + p.newMAC() + ",bridge=vmbr0",
	}}
	for option, value := range map[string]string{"description": description, "tags": tags} {
		if value != "" {
			g.Config[option] = value
		}
	}
	g.complete()
	p.VMs[vmid] = g
	p.publish(time.Now(), s.options.Lag)
}

// SetOption changes an option, as it stands in the file; the empty value takes it
// away. So tags and description are changed, the protection, "lock" (as a task
// that died leaves it) and the agent.
func (s *Service) SetOption(vmid int, name, value string) bool {
	return s.alter(vmid, func(_ *cluster, g *guest) {
		g.Config[name] = value
		if value == "" {
			delete(g.Config, name)
		}
	})
}

// SetAgent installs a guest agent or removes it.
func (s *Service) SetAgent(vmid int, installed bool) bool {
	return s.alter(vmid, func(_ *cluster, g *guest) { g.Agent = installed })
}

// SetHA gives a VM to the HA manager with the state that this is to keep
// ("started", "stopped"), or with the empty state takes it from it.
func (s *Service) SetHA(vmid int, state string) bool {
	return s.alter(vmid, func(_ *cluster, g *guest) { g.HA = state })
}

// Move puts a VM and its disks on another node, as HA or someone by hand does.
func (s *Service) Move(vmid int, node string) bool {
	return s.alter(vmid, func(p *cluster, g *guest) { p.move(g, node) })
}

// HoldLock keeps the lock of a VM for so long, as a task of someone else's does.
func (s *Service) HoldLock(vmid int, takes time.Duration) bool {
	return s.alter(vmid, func(p *cluster, g *guest) {
		now := time.Now()
		t := p.begin(g.Node, "qmconfig", strconv.Itoa(vmid), "root@pam", now, work{VMID: vmid})
		t.Held = []held{{lockKey(g.Node, vmid), false}}
		t.Due = now.Add(takes)
	})
}

// SetNode lets a node of all clusters go down or come up. What runs on it stops;
// its tasks end without a status, and what they have locked stays locked.
func (s *Service) SetNode(node string, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, p := range s.store.Clusters {
		s.advance(p, now)
		if up {
			delete(p.Down, node)
			continue
		}
		p.Down[node] = true
		for _, t := range p.Tasks {
			if !t.Done && t.Node == node {
				p.finish(t, now, unexpected)
			}
		}
		for _, g := range p.VMs {
			if g.Node == node {
				g.Running = false
			}
		}
		p.publish(now, s.options.Lag)
	}
}

// AddTemplate adds a template to the cluster that tokens see when none are
// separated. Its node and storage must be the cluster's.
func (s *Service) AddTemplate(t Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.cluster(emulator.DefaultProject)
	s.addTemplate(p, t)
	p.publish(time.Now(), 0)
}

// AddSnippet puts a snippet on a storage of a node (of all, where the storage is
// shared), in the cluster that tokens see when none are separated.
func (s *Service) AddSnippet(node, storage, name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.cluster(emulator.DefaultProject)
	st, _ := s.storage(storage)
	p.removeVolume(node, storage+":snippets/"+name)
	v := s.allocate(p, node, st, "snippets/"+name, 0, int64(len(text)), time.Now())
	v.Content, v.Format, v.Text = "snippets", "snippet", text
}

// SetWarnings lets the tasks that begin from now on end with so many warnings.
func (s *Service) SetWarnings(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = n
}

// SetDenials replaces what tokens may not do.
func (s *Service) SetDenials(denials Denials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Denials = denials
}
