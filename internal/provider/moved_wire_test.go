// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/digitalocean/godo"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// The addresses of the vendors' providers, from different registries and mirrors.
const (
	hcloudProvider  = "registry.terraform.io/hetznercloud/hcloud"
	oceanProvider   = "registry.opentofu.org/digitalocean/digitalocean"
	proxmoxProvider = "mirror.example/bpg/proxmox"
)

// move hands the provider the state of another one, as a core does for a moved block.
func (w *wire) move(target, provider, source, state string) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	resp, err := w.server.MoveResourceState(w.t.Context(), &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: provider, SourceTypeName: source, SourceSchemaVersion: 1,
		SourceState: &tfprotov6.RawState{JSON: []byte(state)}, TargetTypeName: target,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.TargetState == nil {
		return object{}, resp.Diagnostics
	}
	return object{w.value(target, resp.TargetState), resp.TargetPrivate}, resp.Diagnostics
}

// attributes are an object's.
func (o object) attributes(t *testing.T) map[string]tftypes.Value {
	t.Helper()
	var out map[string]tftypes.Value
	if err := o.value.As(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// take plays what follows a move: refresh, plan, apply, and a further refresh and plan
// that change nothing. known are attributes that the plan must know.
func take(t *testing.T, cloud *world, resource string, state object, config tftypes.Value, known ...string) object {
	t.Helper()
	w := cloud.wire()
	refreshed, diags := w.read(resource, state)
	if len(diags) > 0 || !refreshed.value.Equal(state.value) {
		t.Fatalf("a refresh before the taking over: %s %s\nchanged\n%s\nto\n%s", errorsOf(diags), warned(diags), state.value, refreshed.value)
	}
	planned, diags := w.plan(resource, refreshed, config)
	planned = done(t, planned, diags)
	values := planned.attributes(t)
	for _, name := range append(known, "id", "uri") {
		if v := values[name]; !v.IsFullyKnown() || v.IsNull() {
			t.Errorf("the plan doesn't know %s: %s", name, v)
		}
	}
	if values["claim"].IsKnown() {
		t.Error("the plan doesn't show a claim")
	}
	taken, diags := w.applyPlanned(t.Context(), resource, refreshed, planned, config)
	taken = done(t, taken, diags)
	after := taken.attributes(t)
	for name, v := range values {
		if v.IsFullyKnown() && !v.Equal(after[name]) {
			t.Errorf("%s was planned as %s and is %s", name, v, after[name])
		}
	}
	next := cloud.wire()
	again, diags := next.read(resource, taken)
	if len(diags) > 0 || !again.value.Equal(taken.value) {
		t.Errorf("a refresh after the taking over: %s %s\nchanged\n%s\nto\n%s", errorsOf(diags), warned(diags), taken.value, again.value)
	}
	last, diags := next.plan(resource, again, config)
	if len(diags) > 0 || !last.value.Equal(again.value) {
		t.Errorf("a further plan: %s %s\n%s\nis not\n%s", errorsOf(diags), warned(diags), last.value, again.value)
	}
	return again
}

// textValue is a string value.
func textValue(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

// vendorsServer makes a server with the vendor's client, as its provider does, and
// returns the state that it writes.
func (w *world) vendorsServer(name string) (server *hcloud.Server, state string) {
	w.t.Helper()
	api := w.api()
	made, _, err := api.Server.Create(w.t.Context(), hcloud.ServerCreateOpts{
		Name: name, ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "ubuntu-24.04"}, Location: &hcloud.Location{Name: "fsn1"},
		Labels: map[string]string{"role": "web"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	server, _, err = api.Server.GetByID(w.t.Context(), made.Server.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	six := slices.Clone(server.PublicNet.IPv6.IP)
	six[15]++
	return server, fmt.Sprintf(`{
		"allow_deprecated_images": false, "backup_window": "", "backups": false, "datacenter": null, "delete_protection": false,
		"firewall_ids": [], "id": "%d", "ignore_remote_firewall_ids": false, "image": "ubuntu-24.04", "ipv4_address": %q, "ipv6_address": %q,
		"ipv6_network": %q, "iso": null, "keep_disk": false, "labels": {"role": "web"}, "location": "fsn1", "name": %q, "network": [],
		"placement_group_id": null, "primary_disk_size": 40, "public_net": [], "rebuild_protection": false, "rescue": null,
		"server_type": "cx23", "shutdown_before_deletion": false, "ssh_keys": ["1"], "status": "running", "timeouts": null,
		"user_data": "2jmj7l5rSw0yVb/vlWAYkK/YBwk="}`,
		server.ID, server.PublicNet.IPv4.IP, six, server.PublicNet.IPv6.Network, name)
}

// vendorsVolume is [world.vendorsServer] for a volume of 20 GB, attached to a server
// unless it is nil.
func (w *world) vendorsVolume(name string, server *hcloud.Server) (volume *hcloud.Volume, state string) {
	w.t.Helper()
	opts := hcloud.VolumeCreateOpts{Name: name, Size: 20, Format: new("ext4"), Server: server}
	on := "null"
	if server == nil {
		opts.Location = &hcloud.Location{Name: "fsn1"}
	} else {
		on = strconv.FormatInt(server.ID, 10)
	}
	made, _, err := w.api().Volume.Create(w.t.Context(), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	v := made.Volume
	return v, fmt.Sprintf(`{"automount": null, "delete_protection": false, "format": "ext4", "id": "%d", "labels": {}, "linux_device": %q,
		"location": "fsn1", "name": %q, "server_id": %s, "size": 20}`, v.ID, v.LinuxDevice, name, on)
}

// vendor is the vendor's own client.
func (o *ocean) vendor() *godo.Client {
	o.t.Helper()
	client, err := godo.New(&http.Client{Transport: emulator.Transport(o.cloud)}, godo.SetBaseURL("http://emulator"),
		godo.SetRequestHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		o.t.Fatal(err)
	}
	return client
}

// vendorsDroplet makes a Droplet with the vendor's client, as its provider does, and
// returns the state that it writes.
func (o *ocean) vendorsDroplet(name string) (droplet *godo.Droplet, state string) {
	o.t.Helper()
	client := o.vendor()
	made, _, err := client.Droplets.Create(o.t.Context(), &godo.DropletCreateRequest{
		Name: name, Region: "fra1", Size: "s-1vcpu-1gb", Image: godo.DropletCreateImage{Slug: "ubuntu-24-04-x64"}, IPv6: true, Tags: []string{"role:web"},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	d, _, err := client.Droplets.Get(o.t.Context(), made.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	public, _ := d.PublicIPv4()
	private, _ := d.PrivateIPv4()
	six, _ := d.PublicIPv6()
	return d, fmt.Sprintf(`{
		"backup_policy": [], "backups": false, "created_at": %q, "disk": 25, "droplet_agent": null, "graceful_shutdown": false, "id": "%d",
		"image": "ubuntu-24-04-x64", "ipv4_address": %q, "ipv4_address_private": %q, "ipv6": true, "ipv6_address": %q, "locked": false, "memory": 1024,
		"monitoring": false, "name": %q, "price_hourly": 0.00893, "price_monthly": 6, "private_networking": true, "region": "fra1", "resize_disk": true,
		"size": "s-1vcpu-1gb", "ssh_keys": null, "status": "active", "tags": ["role:web"], "timeouts": null, "urn": "do:droplet:%d",
		"user_data": null, "vcpus": 1, "volume_ids": [], "vpc_uuid": %q}`,
		d.Created, d.ID, public, private, strings.ToLower(six), name, d.ID, d.VPCUUID)
}

func TestMovedServerIsTakenOver(t *testing.T) {
	cloud := newWorld(t)
	server, state := cloud.vendorsServer("web-0")
	w := cloud.wire()
	moved, diags := w.move(instanceType, hcloudProvider, "hcloud_server", state)
	moved = done(t, moved, diags)
	cloud.forgetCalls()
	taken := take(t, cloud, instanceType, moved, instanceConfig(w, nil), "machine_id", "ipv4", "ipv6", "address", "region")
	for name, want := range map[string]string{
		"machine_id": strconv.FormatInt(server.ID, 10), "ipv4": server.PublicNet.IPv4.IP.String(), "state": "running", "power": "on", "region": "fsn1",
	} {
		if got := taken.text(t, name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	// One call marks it, and nothing else is asked of the cloud.
	for _, call := range cloud.calls() {
		if path := fmt.Sprintf("/v1/servers/%d", server.ID); !strings.HasPrefix(call, "GET ") && call != "PUT "+path {
			t.Errorf("the call %s", call)
		}
	}
	if s := cloud.only(); s.ID != server.ID || s.Labels["better-compute.io/claim"] != taken.text(t, "claim") || s.Labels["role"] != "web" {
		t.Errorf("the server is %+v", s)
	}
}

func TestMovedDropletIsTakenOver(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	d, state := o.vendorsDroplet("web-0")
	w := o.wire()
	moved, diags := w.move(instanceType, oceanProvider, "digitalocean_droplet", state)
	moved = done(t, moved, diags)
	o.cloud.ClearCalls()
	taken := take(t, o.world, instanceType, moved, instanceConfig(w, map[string]tftypes.Value{
		"pool": textValue(oceanPoolURI), "offer": textValue("s-1vcpu-1gb"), "image": textValue("ubuntu-24-04-x64"),
	}), "machine_id", "ipv4", "ipv6", "private_ipv4", "address", "urn")
	if got := taken.text(t, "machine_id"); got != strconv.Itoa(d.ID) {
		t.Errorf("it is the machine %s", got)
	}
	for _, call := range o.changes() {
		if !strings.HasPrefix(call, "POST /v2/tags") {
			t.Errorf("the call %s", call)
		}
	}
	if all := o.cloud.Droplets(); len(all) != 1 || !slices.Contains(all[0].Tags, "role:web") || all[0].Status != "active" {
		t.Errorf("the Droplets are %+v", all)
	}
}

func TestMovedVMIsTakenOver(t *testing.T) {
	for source, state := range map[string]string{
		"proxmox_virtual_environment_vm": `{"id": "4711", "vm_id": 4711, "name": "web-0", "node_name": "pve1", "started": true, "template": false,
			"cpu": [{"cores": 1}], "memory": [{"dedicated": 2048}], "clone": [{"vm_id": 9000}],
			"network_interface_names": ["lo", "eth0", "docker0"], "ipv4_addresses": [["127.0.0.1"], ["203.0.113.7"], ["172.17.0.1"]], "ipv6_addresses": [["::1"], [], []]}`,
		"proxmox_vm_qemu": `{"id": "pve1/qemu/4711", "vmid": 4711, "name": "web-0", "target_node": "pve1", "vm_state": "running", "default_ipv4_address": "203.0.113.7"}`,
		"proxmox_vm":      `{"id": 4711, "name": "web-0", "node_name": "pve1", "template": null}`,
	} {
		t.Run(source, func(t *testing.T) {
			c := newCluster(t)
			w := c.wire()
			// A VM that is there already: made by us, and its marks taken away.
			config := instanceConfig(w, map[string]tftypes.Value{"pool": textValue(clusterPool), "offer": textValue("1c-2g"), "image": textValue("debian-13")})
			made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), config)
			vmid := done(t, made, diags).text(t, "machine_id")
			number, err := strconv.Atoi(vmid)
			if err != nil {
				t.Fatal(err)
			}
			c.pve.SetOption(number, "tags", "")
			c.pve.SetOption(number, "description", "")
			moved, diags := c.wire().move(instanceType, proxmoxProvider, source, strings.ReplaceAll(state, "4711", vmid))
			moved = done(t, moved, diags)
			if v4 := moved.text(t, "ipv4"); source != "proxmox_vm" && v4 != "203.0.113.7" {
				t.Errorf("ipv4 is %q", v4)
			}
			values := moved.attributes(t)
			for _, name := range []string{"ipv4", "address"} { // made up above: the guest has others
				values[name] = tftypes.NewValue(tftypes.String, nil)
			}
			moved.value = tftypes.NewValue(moved.value.Type(), values)
			c.pve.ClearCalls()
			taken := take(t, c.world, instanceType, moved, config, "machine_id")
			if got := taken.text(t, "machine_id"); got != vmid || taken.text(t, "state") != "running" {
				t.Errorf("taken as %s", taken.value)
			}
			for _, call := range c.pve.Calls() {
				if call.Method != http.MethodGet && !strings.HasSuffix(call.Path, "/config") && !strings.Contains(call.Path, "/agent") {
					t.Errorf("the call %s %s", call.Method, call.Path)
				}
			}
		})
	}
}

// A volume stays where it is attached: on an instance that is moved in the same apply.
func TestMovedVolumeIsTakenOver(t *testing.T) {
	cloud := newWorld(t)
	server, serverState := cloud.vendorsServer("web-0")
	volume, state := cloud.vendorsVolume("data", server)
	w := cloud.wire()
	movedInstance, diags := w.move(instanceType, hcloudProvider, "hcloud_server", serverState)
	movedInstance = done(t, movedInstance, diags)
	planned, diags := w.plan(instanceType, movedInstance, instanceConfig(w, nil))
	uri := done(t, planned, diags).text(t, "uri")
	more := onInstances(uri)
	more["size_gib"], more["filesystem"] = tftypes.NewValue(tftypes.Number, 20), textValue("ext4")
	config := volumeConfig(w, more)

	moved, diags := w.move(volumeType, hcloudProvider, "hcloud_volume", state)
	moved = done(t, moved, diags)
	if plannedVolume, diags := w.plan(volumeType, moved, config); errorsOf(diags) != "" {
		t.Fatalf("planned before the instance is taken over: %s\n%s", errorsOf(diags), plannedVolume.value)
	}
	take(t, cloud, instanceType, movedInstance, instanceConfig(w, nil))
	cloud.forgetCalls()
	taken := take(t, cloud, volumeType, moved, config, "volume_id", "device", "observed_size_gib")
	for _, call := range cloud.calls() {
		if path := fmt.Sprintf("/v1/volumes/%d", volume.ID); !strings.HasPrefix(call, "GET ") && call != "PUT "+path {
			t.Errorf("the call %s", call)
		}
	}
	if v := cloud.onlyVolume(); v.Server != server.ID || v.Labels["better-compute.io/claim"] != taken.text(t, "claim") {
		t.Errorf("the volume is %+v", v)
	}
}

// A volume on another machine than instances names is refused at plan time: nothing has
// shown that it is there.
func TestMovedVolumeIsNotTakenOffAMachine(t *testing.T) {
	cloud := newWorld(t)
	server, _ := cloud.vendorsServer("web-0")
	_, state := cloud.vendorsVolume("data", server)
	w := cloud.wire()
	moved, diags := w.move(volumeType, hcloudProvider, "hcloud_volume", state)
	moved = done(t, moved, diags)
	more := onInstances()
	more["size_gib"] = tftypes.NewValue(tftypes.Number, 20)
	_, diags = w.plan(volumeType, moved, volumeConfig(w, more))
	if problems := errorsOf(diags); !strings.HasPrefix(problems, "CONFLICT: ") || !strings.Contains(problems, strconv.FormatInt(server.ID, 10)) {
		t.Errorf("diagnostics %q", problems)
	}
	delete(more, "instances")
	take(t, cloud, volumeType, moved, volumeConfig(w, more))
	if v := cloud.onlyVolume(); v.Server != server.ID {
		t.Errorf("the volume is %+v", v)
	}
}

func TestMovedVolumeAndSnapshotAreTakenOver(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	client := o.vendor()
	v, _, err := client.Storage.CreateVolume(t.Context(), &godo.VolumeCreateRequest{Name: "data", Region: "fra1", SizeGigaBytes: 20, FilesystemType: "ext4"})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := client.Storage.CreateSnapshot(t.Context(), &godo.SnapshotCreateRequest{VolumeID: v.ID, Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	w := o.wire()
	moved, diags := w.move(volumeType, oceanProvider, "digitalocean_volume", fmt.Sprintf(`{"description": null, "droplet_ids": [], "filesystem_label": "",
		"filesystem_type": "ext4", "id": %q, "initial_filesystem_label": null, "initial_filesystem_type": "ext4", "name": "data", "region": "fra1", "size": 20,
		"snapshot_id": null, "tags": null, "urn": "do:volume:%s"}`, v.ID, v.ID))
	moved = done(t, moved, diags)
	config := volumeConfig(w, map[string]tftypes.Value{"pool": textValue(oceanPoolURI), "size_gib": tftypes.NewValue(tftypes.Number, 20), "filesystem": textValue("ext4")})
	planned, diags := w.plan(volumeType, moved, config)
	volumeURI := done(t, planned, diags).text(t, "uri")

	movedSnapshot, diags := w.move(snapshotType, oceanProvider, "digitalocean_volume_snapshot", fmt.Sprintf(
		`{"created_at": %q, "id": %q, "min_disk_size": 20, "name": "first", "regions": ["fra1"], "size": 0.4, "tags": [], "volume_id": %q}`, s.Created, s.ID, v.ID))
	movedSnapshot = done(t, movedSnapshot, diags)
	// Both before and after its volume is taken over.
	if _, diags = w.plan(snapshotType, movedSnapshot, snapshotConfig(w, volumeURI, "first")); errorsOf(diags) != "" {
		t.Fatal(errorsOf(diags))
	}
	o.changes()
	takenVolume := take(t, o.world, volumeType, moved, config, "volume_id", "device", "urn")
	taken := take(t, o.world, snapshotType, movedSnapshot, snapshotConfig(w, volumeURI, "first"), "snapshot_id", "size_gib", "created_at")
	if takenVolume.text(t, "volume_id") != v.ID || taken.text(t, "snapshot_id") != s.ID {
		t.Errorf("taken as %s and %s", takenVolume.value, taken.value)
	}
	for _, call := range o.changes() {
		if !strings.HasPrefix(call, "POST /v2/tags") {
			t.Errorf("the call %s", call)
		}
	}
	// One of another volume is refused.
	other, _, err := client.Storage.CreateVolume(t.Context(), &godo.VolumeCreateRequest{Name: "other", Region: "fra1", SizeGigaBytes: 20})
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := client.Storage.CreateSnapshot(t.Context(), &godo.SnapshotCreateRequest{VolumeID: other.ID, Name: "second"})
	if err != nil {
		t.Fatal(err)
	}
	w = o.wire()
	wrong, diags := w.move(snapshotType, oceanProvider, "digitalocean_volume_snapshot", fmt.Sprintf(`{"id": %q, "name": "second"}`, theirs.ID))
	wrong = done(t, wrong, diags)
	if _, diags = w.plan(snapshotType, wrong, snapshotConfig(w, volumeURI, "second")); !strings.HasPrefix(errorsOf(diags), "CONFLICT: ") {
		t.Errorf("diagnostics %q", errorsOf(diags))
	}
}

// What can't be moved, or can't be taken over, is refused with what is missing, before
// any call that changes something.
func TestMovedRefusals(t *testing.T) {
	for name, test := range map[string]struct{ target, provider, source, state, want string }{
		"another type":      {instanceType, "registry.terraform.io/hashicorp/aws", "aws_instance", `{"id": "i-1"}`, "hcloud_server, proxmox"},
		"another provider":  {instanceType, "registry.terraform.io/hashicorp/fake", "hcloud_server", `{"id": "1", "name": "web-0"}`, "UNSUPPORTED: A hcloud_server of the provider fake"},
		"a volume":          {instanceType, hcloudProvider, "hcloud_volume", `{"id": "1", "name": "web-0"}`, "can't be moved to a bettercompute_instance"},
		"no id":             {instanceType, hcloudProvider, "hcloud_server", `{"name": "web-0"}`, "has no id"},
		"nothing":           {volumeType, hcloudProvider, "hcloud_volume", `{}`, "has no id and no name"},
		"no JSON":           {instanceType, hcloudProvider, "hcloud_server", `id = 1`, "INVALID_STATE: The state to move from can't be read"},
		"null":              {instanceType, hcloudProvider, "hcloud_server", `null`, "INVALID_STATE: The state to move from can't be read"},
		"more than one":     {instanceType, hcloudProvider, "hcloud_server", `{"id": "1", "name": "a"} {}`, "INVALID_STATE: The state to move from can't be read"},
		"a name of theirs":  {instanceType, hcloudProvider, "hcloud_server", `{"id": "1", "name": "Web_0"}`, "Rename it with its own provider first"},
		"an id of nothing":  {instanceType, hcloudProvider, "hcloud_server", "{\"id\": \"a\\u0000b\", \"name\": \"web-0\"}", "INVALID_STATE: "},
		"a template":        {instanceType, proxmoxProvider, "proxmox_virtual_environment_vm", `{"id": "100", "name": "web-0", "template": true}`, "UNSUPPORTED: "},
		"a volume's name":   {volumeType, hcloudProvider, "hcloud_volume", `{"id": "1", "name": "Data_1"}`, "Rename it with its own provider first"},
		"a snapshot's name": {snapshotType, oceanProvider, "digitalocean_volume_snapshot", `{"id": "1", "name": "A snapshot"}`, "name that this resource can't have"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := newEverything(t).wire().move(test.target, test.provider, test.source, test.state)
			if problems := errorsOf(diags); !strings.Contains(problems, test.want) {
				t.Errorf("diagnostics %q, without %q", problems, test.want)
			}
		})
	}
}

func TestMovedMachineThatDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world, id int64)
		config map[string]tftypes.Value
		want   string
	}{
		"another name":   {config: map[string]tftypes.Value{"name": textValue("web-1")}, want: "name"},
		"another arch":   {config: map[string]tftypes.Value{"offer": textValue("cax11")}, want: "architecture"},
		"another region": {config: map[string]tftypes.Value{"region": textValue("nbg1")}, want: "region"},
		"another image":  {config: map[string]tftypes.Value{"image": textValue("debian-12")}, want: "image"},
		"deleted":        {change: func(w *world, id int64) { w.hetzner.Delete(id) }, want: "NOT_FOUND: "},
		"another pool's": {change: func(w *world, id int64) {
			w.hetzner.SetLabels(id, map[string]string{"better-compute.io/managed": "true", "better-compute.io/pool": "pool_x", "better-compute.io/idempotency-key": "inst_x"})
		}, want: "CONFLICT: "},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newWorld(t)
			server, state := cloud.vendorsServer("web-0")
			if test.change != nil {
				test.change(cloud, server.ID)
			}
			w := cloud.wire()
			moved, diags := w.move(instanceType, hcloudProvider, "hcloud_server", state)
			moved = done(t, moved, diags)
			cloud.forgetCalls()
			_, diags = w.plan(instanceType, moved, instanceConfig(w, test.config))
			if problems := errorsOf(diags); !strings.Contains(problems, test.want) {
				t.Errorf("diagnostics %q, without %q", problems, test.want)
			}
			for _, call := range cloud.calls() {
				if !strings.HasPrefix(call, "GET ") {
					t.Errorf("the call %s", call)
				}
			}
		})
	}
}

// What is in one cloud is not looked for in another, where its id may be anybody's.
func TestMovedToAnotherCloud(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	_, state := o.vendorsServer("web-0")
	w := o.wire()
	moved, diags := w.move(instanceType, hcloudProvider, "hcloud_server", state)
	moved = done(t, moved, diags)
	_, diags = w.plan(instanceType, moved, instanceConfig(w, map[string]tftypes.Value{"pool": textValue(oceanPoolURI), "offer": textValue("s-1vcpu-1gb")}))
	if problems := errorsOf(diags); !strings.HasPrefix(problems, "INVALID_INPUT: ") || !strings.Contains(problems, "Hetzner Cloud") || len(o.cloud.Calls()) > 0 {
		t.Errorf("diagnostics %q, calls %v", problems, o.cloud.Calls())
	}
}

// What was moved and not taken over is neither destroyed nor forgotten by a destroy.
func TestMovedIsNotDestroyed(t *testing.T) {
	for resource, test := range map[string]struct{ provider, source, state string }{
		instanceType: {hcloudProvider, "hcloud_server", `{"id": "1", "name": "web-0"}`},
		volumeType:   {oceanProvider, "digitalocean_volume", `{"id": "a", "name": "data", "size": 10}`},
		snapshotType: {oceanProvider, "digitalocean_volume_snapshot", `{"id": "b", "name": "first"}`},
	} {
		t.Run(resource, func(t *testing.T) {
			o := newOcean(t, oceanemulator.Options{})
			w := o.wire()
			moved, diags := w.move(resource, test.provider, test.source, test.state)
			moved = done(t, moved, diags)
			kept, diags := w.destroy(resource, moved)
			if problems := errorsOf(diags); !strings.HasPrefix(problems, "INVALID_STATE: ") || kept.value.IsNull() {
				t.Errorf("diagnostics %q, kept %s", problems, kept.value)
			}
			none := w.dynamic(w.types[resource], w.none(resource).value)
			resp, err := w.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
				TypeName: resource, PriorState: w.dynamic(w.types[resource], moved.value), PriorPrivate: moved.private,
				ProposedNewState: none, Config: none, ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
			})
			if err != nil {
				t.Fatal(err)
			}
			if problems := errorsOf(resp.Diagnostics); !strings.HasPrefix(problems, "INVALID_STATE: ") {
				t.Errorf("planned with %q", problems)
			}
			if calls := append(o.calls(), o.changes()...); len(calls) > 0 {
				t.Errorf("the calls %v", calls)
			}
		})
	}
}

// Without credentials, or with a pool that isn't known yet, the plan goes on, and the
// apply checks.
func TestMovedPlannedUnchecked(t *testing.T) {
	cloud := newWorld(t)
	_, state := cloud.vendorsServer("web-0")
	w := cloud.wire()
	moved, diags := w.move(instanceType, hcloudProvider, "hcloud_server", state)
	moved = done(t, moved, diags)
	for name, pool := range map[string]tftypes.Value{
		"no credentials": textValue("hetzner-cloud://root/main/web?token=env://BETTERCOMPUTE_TEST_UNSET"),
		"unknown":        tftypes.NewValue(tftypes.String, tftypes.UnknownValue),
	} {
		planned, diags := w.plan(instanceType, moved, instanceConfig(w, map[string]tftypes.Value{"pool": pool, "region": textValue("fsn1")}))
		planned = done(t, planned, diags)
		// The second plan, during the apply, may fill in what the first left open only.
		again, diags := w.plan(instanceType, moved, instanceConfig(w, map[string]tftypes.Value{"region": textValue("fsn1")}))
		after := done(t, again, diags).attributes(t)
		values := planned.attributes(t)
		delete(values, "pool")
		if name == "no credentials" {
			delete(values, "uri") // it is of another account
		}
		for attribute, v := range values {
			if v.IsFullyKnown() && !v.Equal(after[attribute]) {
				t.Errorf("%s: %s was planned as %s, then as %s", name, attribute, v, after[attribute])
			}
		}
	}
}

// An apply that was cut off before anything happened leaves the state as it was, so
// that another pool can still be named.
func TestMovedTakingOverFails(t *testing.T) {
	cloud := newWorld(t)
	_, state := cloud.vendorsServer("web-0")
	w := cloud.wire()
	moved, diags := w.move(instanceType, hcloudProvider, "hcloud_server", state)
	moved = done(t, moved, diags)
	config := instanceConfig(w, nil)
	planned, diags := w.plan(instanceType, moved, config)
	planned = done(t, planned, diags)
	cloud.fault(emulator.Rule{Service: "hetzner", Method: "PUT", Path: "*", Kind: emulator.KindStatus, Status: http.StatusForbidden, Times: emulator.Forever})
	failed, diags := w.applyPlanned(t.Context(), instanceType, moved, planned, config)
	if errorsOf(diags) == "" || !failed.value.Equal(moved.value) {
		t.Errorf("diagnostics %q, recorded %s", errorsOf(diags), failed.value)
	}
	cloud.hetzner.ClearFaults()
	take(t, cloud, instanceType, failed, config)

	// The same with an answer that was lost: the claim is recorded, or found again.
	other, otherState := cloud.vendorsServer("web-1")
	moved, diags = w.move(instanceType, hcloudProvider, "hcloud_server", otherState)
	moved = done(t, moved, diags)
	config = instanceConfig(w, map[string]tftypes.Value{"name": textValue("web-1")})
	cloud.fault(emulator.Rule{Service: "hetzner", Method: "PUT", Path: "*", Kind: emulator.KindLoseAnswer, Times: 1})
	after, diags := cloud.wire().apply(t.Context(), instanceType, moved, config)
	if errorsOf(diags) != "" {
		after = take(t, cloud, instanceType, after, config)
	}
	if s := cloud.named("web-1"); s.ID != other.ID || s.Labels["better-compute.io/claim"] != after.text(t, "claim") {
		t.Errorf("the server is %+v, the state %s", s, after.value)
	}
}

// A taking over that a fault hits, at whichever call, ends right on the next apply: one
// machine, which runs as before, with the claim that the state has.
func TestMovedTakingOverWithFaults(t *testing.T) {
	type side struct {
		*world
		state  string
		given  map[string]tftypes.Value
		calls  func() []emulator.Call
		clear  func()
		faults func(emulator.Rule) error
		settle func()
		count  func() int
	}
	sides := map[string]func(t *testing.T) side{
		"hetzner": func(t *testing.T) side {
			w := newWorld(t)
			_, state := w.vendorsServer("web-0")
			return side{w, state, nil, w.hetzner.Calls, w.hetzner.ClearCalls, w.hetzner.AddFault, w.hetzner.ClearFaults, func() int { return len(w.hetzner.Servers()) }}
		},
		"digitalocean": func(t *testing.T) side {
			o := newOcean(t, oceanemulator.Options{})
			_, state := o.vendorsDroplet("web-0")
			given := map[string]tftypes.Value{"pool": textValue(oceanPoolURI), "offer": textValue("s-1vcpu-1gb"), "image": textValue("ubuntu-24-04-x64")}
			return side{o.world, state, given, o.cloud.Calls, o.cloud.ClearCalls, o.cloud.AddFault, o.cloud.ClearFaults, func() int { return len(o.cloud.Droplets()) }}
		},
	}
	sources := map[string][2]string{"hetzner": {hcloudProvider, "hcloud_server"}, "digitalocean": {oceanProvider, "digitalocean_droplet"}}
	for cloud, build := range sides {
		for _, kind := range []emulator.Kind{emulator.KindReset, emulator.KindLoseAnswer, emulator.KindStatus} {
			for nth, calls := 1, 3; nth <= calls; nth++ {
				synctest.Test(t, func(t *testing.T) {
					s := build(t)
					w := s.wire()
					moved, diags := w.move(instanceType, sources[cloud][0], sources[cloud][1], s.state)
					state := done(t, moved, diags)
					config := instanceConfig(w, s.given)
					planned, diags := w.plan(instanceType, state, config)
					planned = done(t, planned, diags)
					s.clear()
					rule := emulator.Rule{Service: cloud, Path: "*", Nth: nth, Times: 1, Kind: kind}
					if kind == emulator.KindStatus {
						rule.Status = http.StatusForbidden
					}
					if err := s.faults(rule); err != nil {
						t.Fatal(err)
					}
					after, diags := w.applyPlanned(t.Context(), instanceType, state, planned, config)
					calls = max(calls, len(s.calls()))
					s.settle()
					for range 2 {
						if errorsOf(diags) == "" && after.text(t, "claim") != "" {
							break
						}
						after, diags = s.wire().apply(t.Context(), instanceType, after, config)
					}
					if problems := errorsOf(diags); problems != "" {
						t.Fatalf("%s, %s at call %d: %s", cloud, kind, nth, problems)
					}
					next := s.wire()
					again, diags := next.read(instanceType, after)
					last, more := next.plan(instanceType, done(t, again, diags), config)
					if len(diags)+len(more) > 0 || !last.value.Equal(again.value) || s.count() != 1 || again.text(t, "claim") == "" || again.text(t, "state") != "running" {
						t.Errorf("%s, %s at call %d: %s %s\n%s", cloud, kind, nth, warned(diags), errorsOf(more), again.value)
					}
				})
			}
		}
	}
}

// newEverything is a world with all clouds.
func newEverything(t *testing.T) *world {
	t.Helper()
	o, c := newOcean(t, oceanemulator.Options{}), newCluster(t)
	clouds, err := backends.NewRegistry(append(o.clouds.All(), c.clouds.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, hetzner: o.hetzner, clouds: clouds}
}
