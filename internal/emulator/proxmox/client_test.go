// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/luthermonson/go-proxmox"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// wait waits for a task as the client does, and fails with its error.
func wait(t *testing.T) func(*client.Task, error) {
	return func(task *client.Task, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Wait(t.Context(), time.Millisecond, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLife takes a VM from its template to its end with the client that isn't ours,
// over TLS.
func TestLife(t *testing.T) {
	s := newService(t, proxmox.Options{Boot: 40 * time.Millisecond, Lag: -1})
	c := serve(t, s)
	ctx := t.Context()
	version, err := c.Version(ctx)
	if err != nil || version.Release != "9.2" {
		t.Fatalf("version %+v %v", version, err)
	}
	node, err := c.Node(ctx, "pve1")
	if err != nil || node.CPUInfo.CPUs != 16 || node.Memory.Total != 64<<30 {
		t.Fatalf("node %+v %v", node, err)
	}
	template, err := node.VirtualMachine(ctx, 9000)
	if err != nil || template.Name != "debian-13" || !bool(template.Template) {
		t.Fatalf("template %+v %v", template, err)
	}

	newid, task, err := template.Clone(ctx, &client.VirtualMachineCloneOptions{
		NewID: 100000042, Name: "web-0", Description: "key inst_1", Full: true, Pool: "tofu", Target: "pve2", Storage: "shared",
	})
	if newid != 100000042 {
		t.Fatal(newid)
	}
	wait(t)(task, err)
	if task.Type != "qmclone" || task.ID != "9000" {
		t.Errorf("task %+v", task)
	}
	log, err := task.Log(ctx, 0, 50)
	if err != nil || log[len(log)-1] != "TASK OK" {
		t.Errorf("log %v %v", log, err)
	}

	vm := c.NodeRef("pve2").VirtualMachineRef(newid)
	err = vm.ConfigSync(ctx, client.VirtualMachineOption{Name: "cores", Value: 2}, client.VirtualMachineOption{Name: "memory", Value: 4096},
		client.VirtualMachineOption{Name: "ipconfig0", Value: "ip=192.0.2.7/24,gw=192.0.2.1"},
		client.VirtualMachineOption{Name: "sshkeys", Value: client.EncodeSSHKeys("ssh-ed25519 AAAA+/= me@example.com")},
		client.VirtualMachineOption{Name: "onboot", Value: true}, client.VirtualMachineOption{Name: "tags", Value: "Zeta;better-compute"})
	if err != nil {
		t.Fatal(err)
	}
	wait(t)(vm.ResizeDisk(ctx, "scsi0", "10G"))
	wait(t)(vm.Start(ctx))
	if err := vm.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if !vm.IsRunning() || vm.Name != "web-0" || vm.Tags != "better-compute;zeta" || vm.MaxMem != 4<<30 || vm.CPUs != 2 || vm.MaxDisk != 10<<30 {
		t.Errorf("running %+v", vm)
	}
	full, err := c.NodeRef("pve2").VirtualMachine(ctx, newid)
	if err != nil {
		t.Fatal(err)
	}
	config := full.VirtualMachineConfig
	if config.Description != "key inst_1" || config.Cores == nil || *config.Cores != 2 || int(config.Memory) != 4096 || config.SSHKeys != "ssh-ed25519%20AAAA%2B%2F%3D%20me%40example.com" || config.Digest == "" {
		t.Errorf("config %+v", config)
	}

	if err := vm.WaitForAgent(ctx, 10); err != nil {
		t.Fatal(err)
	}
	interfaces, err := vm.AgentGetNetworkIFaces(ctx)
	if err != nil || len(interfaces) != 1 || interfaces[0].Name != "eth0" {
		t.Fatalf("interfaces %+v %v", interfaces, err)
	}
	var addresses []string
	for _, a := range interfaces[0].IPAddresses {
		addresses = append(addresses, a.IPAddress)
	}
	if len(addresses) != 2 || addresses[0] != "192.0.2.7" || !strings.HasPrefix(addresses[1], "fe80::") {
		t.Errorf("addresses %v", addresses)
	}
	if mac := strings.ToUpper(interfaces[0].HardwareAddress); !strings.HasPrefix(config.Nets["net0"], "virtio="+mac+",") {
		t.Errorf("the agent has %s, the configuration %s", mac, config.Nets["net0"])
	}

	resources, err := clusterVMs(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(resources, func(r *client.ClusterResource) bool { return r.VMID == 100000042 })
	if i < 0 || resources[i].Node != "pve2" || resources[i].Pool != "tofu" || resources[i].Status != "running" {
		t.Errorf("resources %+v", resources)
	}
	wait(t)(vm.Reboot(ctx))
	wait(t)(vm.Shutdown(ctx))
	wait(t)(vm.Delete(ctx, &client.VirtualMachineDeleteOptions{Purge: true}))
	if err := vm.Ping(ctx); err == nil || !client.IsNotFound(err) {
		t.Errorf("after the end: %v", err)
	}
	if left := s.Machines(); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
	for _, id := range s.Volumes() {
		if strings.Contains(id, "100000042") {
			t.Errorf("left %s", id)
		}
	}
}

// TestChangesByTheClient changes a VM that runs with the client that isn't ours: its
// pool, what waits for its start, and what its guest is told.
func TestChangesByTheClient(t *testing.T) {
	s := newService(t, proxmox.Options{Pools: []string{"one", "two"}, Lag: -1})
	c := serve(t, s)
	ctx := t.Context()
	id, task, err := c.NodeRef("pve1").VirtualMachineRef(9000).Clone(ctx, &client.VirtualMachineCloneOptions{NewID: 101, Name: "web-0", Full: true, Pool: "one"})
	wait(t)(task, err)
	vm := c.NodeRef("pve1").VirtualMachineRef(id)
	wait(t)(vm.Start(ctx))
	pool, err := c.Pool(ctx, "two")
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Update(ctx, &client.PoolUpdateOption{VirtualMachines: "101"}); err == nil || !strings.Contains(err.Error(), "allow-move") {
		t.Errorf("moved without leave: %v", err)
	}
	if err := pool.Update(ctx, &client.PoolUpdateOption{VirtualMachines: "101", AllowMove: true}); err != nil {
		t.Fatal(err)
	}
	if pool, err = c.Pool(ctx, "two"); err != nil || len(pool.Members) != 1 || pool.Members[0].VMID != 101 {
		t.Errorf("%+v, %v", pool, err)
	}
	if err := pool.Update(ctx, &client.PoolUpdateOption{VirtualMachines: "101", Delete: true}); err != nil {
		t.Fatal(err)
	}
	if got := machine(t, s, 101).Pool; got != "" {
		t.Errorf("in the pool %q", got)
	}
	err = vm.ConfigSync(ctx, client.VirtualMachineOption{Name: "cores", Value: 2}, client.VirtualMachineOption{Name: "searchdomain", Value: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	pending, err := vm.Pending(ctx)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(*pending, func(item client.PendingConfigItem) bool { return item.Key == "cores" })
	if i < 0 || fmt.Sprint((*pending)[i].Pending) != "2" {
		t.Errorf("pending %+v", pending)
	}
	told, err := vm.CloudInitPending(ctx)
	if err != nil || len(told) != 1 || told[0].Key != "searchdomain" {
		t.Errorf("cloud-init %+v, %v", told, err)
	}
	if err := vm.CloudInitRegenerate(ctx); err != nil {
		t.Error(err)
	}
}

func clusterVMs(ctx context.Context, c *client.Client) (client.ClusterResources, error) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Resources(ctx, "vm")
}

// TestInventory reads what there is from the start.
func TestInventory(t *testing.T) {
	c := serve(t, newService(t, proxmox.Options{}))
	ctx := t.Context()
	nodes, err := c.Nodes(ctx)
	if err != nil || len(nodes) != 2 || nodes[0].Node != "pve1" || nodes[1].Status != "online" || !strings.Contains(nodes[0].SSLFingerprint, ":") {
		t.Errorf("nodes %+v %v", nodes, err)
	}
	cluster, err := c.Cluster(ctx)
	if err != nil || len(cluster.Nodes) != 2 {
		t.Errorf("cluster %+v %v", cluster, err)
	}
	all, err := cluster.Resources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range all {
		kinds[r.Type]++
	}
	if kinds["qemu"] != 4 || kinds["lxc"] != 1 || kinds["node"] != 2 || kinds["storage"] != 6 || kinds["sdn"] != 2 {
		t.Errorf("resources %v", kinds)
	}
	if id, err := cluster.NextID(ctx); err != nil || id != 100 {
		t.Errorf("next id %d %v", id, err)
	}
	for vmid, free := range map[int]bool{150: false, 9000: false, 101: true} {
		if got, err := cluster.CheckID(ctx, vmid); err != nil || got != free {
			t.Errorf("%d is free: %v %v", vmid, got, err)
		}
	}
	vms, err := c.NodeRef("pve1").VirtualMachines(ctx)
	if err != nil || len(vms) != 3 {
		t.Errorf("VMs %+v %v", vms, err)
	}
	storages, err := c.NodeRef("pve2").Storages(ctx)
	if err != nil || len(storages) != 3 || storages[0].Name != "local" || storages[0].Shared != 0 || storages[2].Shared != 1 {
		t.Errorf("storages %+v %v", storages, err)
	}
	content, err := c.NodeRef("pve2").StorageRef("shared").GetContent(ctx)
	if err != nil || len(content) != 3 || content[0].Volid != "shared:base-9000-disk-0" {
		t.Errorf("content %+v %v", content, err)
	}
	pools, err := c.Pools(ctx)
	if err != nil || len(pools) != 1 || pools[0].PoolID != "tofu" {
		t.Errorf("pools %+v %v", pools, err)
	}
	if _, err := c.Pool(ctx, "tofu"); err != nil {
		t.Error(err)
	}
	if tasks, err := cluster.Tasks(ctx); err != nil || len(tasks) != 0 {
		t.Errorf("tasks %+v %v", tasks, err)
	}
	permissions, err := c.Permissions(ctx, nil)
	if err != nil || !permissions["/vms"]["VM.Clone"] {
		t.Errorf("permissions %v %v", permissions, err)
	}
}

// TestParallelClones: of clones that meet on a VMID one wins, and all others fail
// in a way that says so.
func TestParallelClones(t *testing.T) {
	s := newService(t, proxmox.Options{Boot: 200 * time.Millisecond, ForkTime: 20 * time.Millisecond})
	c := serve(t, s)
	const ids, each = 10, 4
	var working sync.WaitGroup
	won := make([]atomic.Int32, ids)
	for i := range ids * each {
		working.Go(func() {
			_, task, err := c.NodeRef("pve1").VirtualMachineRef(9000).Clone(t.Context(), &client.VirtualMachineCloneOptions{
				NewID: 200 + i%ids, Name: fmt.Sprintf("vm-%d", i), Full: true,
			})
			if err == nil {
				err = task.Wait(t.Context(), 5*time.Millisecond, time.Minute)
			}
			switch {
			case err == nil:
				won[i%ids].Add(1)
			case !strings.Contains(err.Error(), "config file already exists") && !strings.Contains(err.Error(), "got timeout"):
				t.Errorf("clone %d: %v", i, err)
			}
		})
	}
	working.Wait()
	for i := range won {
		if n := won[i].Load(); n != 1 {
			t.Errorf("%d clones won %d", n, 200+i)
		}
	}
	if got := s.Machines(); len(got) != ids || got[0].Config["lock"] != "" {
		t.Errorf("%d machines: %+v", len(got), got)
	}
}

// TestErrorsAsTheClientSeesThem: statuses, texts and the client's own classes.
func TestErrorsAsTheClientSeesThem(t *testing.T) {
	for _, version := range []int{8, 9} {
		s := newService(t, proxmox.Options{Version: version})
		c := serve(t, s)
		err := c.NodeRef("pve1").VirtualMachineRef(4711).Ping(t.Context())
		var refused *client.APIError
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusInternalServerError || !strings.Contains(refused.Message, "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist") {
			t.Errorf("%d: missing VM: %v", version, err)
		}
		s.SetNode("pve2", false)
		if err := c.NodeRef("pve2").Status(t.Context()); !errors.Is(err, client.ErrNodeUnreachable) {
			t.Errorf("%d: node down: %v", version, err)
		}
		addFault(t, s, emulator.Rule{Kind: emulator.KindFailAction, Path: "*/clone"})
		_, task, err := c.NodeRef("pve1").VirtualMachineRef(9000).Clone(t.Context(), &client.VirtualMachineCloneOptions{NewID: 200})
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Wait(t.Context(), time.Millisecond, time.Minute); !client.IsTaskFailed(err) || !strings.Contains(err.Error(), "clone failed: ") {
			t.Errorf("%d: failed task: %v", version, err)
		}
	}
}
