// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// operation is a run of a core that faults are put into: the configuration that was
// applied before, and the one that is applied now.
type operation struct {
	name     string
	from, to blocks
	// disturb changes the cloud, or the state, before the run.
	disturb func(s emulator.Service, state state)
	// adopts lets the pool adopt.
	adopts bool
	// imports imports the first block instead of having its state.
	imports bool
}

func with(base, more given) given {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

func anInstance(address string, base, more given) block {
	return block{"instance." + address, instanceType, with(base, with(given{"name": address, "pool": inPool{}}, more))}
}

func aVolume(address string, more given) block {
	return block{"volume." + address, volumeType, with(given{"name": address, "pool": inPool{}, "size_gib": 10}, more)}
}

func aSnapshot(address string, more given) block {
	return block{"snapshot." + address, snapshotType, with(given{"name": address, "volume": ref("volume.data")}, more)}
}

func forget(address string) func(emulator.Service, state) {
	return func(_ emulator.Service, s state) { delete(s, address) }
}

// instanceOperations are those that every cloud has. base is what makes an instance,
// full everything that can be asked of one, and offer and image are others.
func instanceOperations(base, full given, offer, image string) []operation {
	web := func(more given) blocks { return blocks{anInstance("web", base, more)} }
	return append(instanceEdits(base, offer), []operation{
		{name: "create-instance", to: web(nil)},
		{name: "create-full-instance", to: web(full)},
		{name: "read-instance", from: web(full), to: web(full)},
		{name: "power-off", from: web(nil), to: web(given{"power": "off"})},
		{name: "power-on", from: web(given{"power": "off"}), to: web(nil)},
		{name: "create-powered-off", to: web(given{"power": "off"})},
		{name: "edit-labels", from: web(nil), to: web(given{"labels": map[string]string{"app": "web"}})},
		{name: "reinstall", from: web(given{"on_image_change": "reinstall"}), to: web(given{"on_image_change": "reinstall", "image": image})},
		{name: "replace-instance", from: web(nil), to: web(given{"image": image})},
		{name: "delete-instance", from: web(nil)},
		{name: "adopt-instance", from: web(nil), to: web(nil), disturb: forget("instance.web"), adopts: true},
		{name: "import-instance", from: web(nil), to: web(nil), imports: true},
		{
			name: "import-and-edit-instance", from: web(nil), imports: true,
			to: web(given{"offer": offer, "labels": map[string]string{"app": "web"}}),
		},
	}...)
}

// volumeOperations are those of clouds with block volumes.
func volumeOperations(base given, offer, image string) []operation {
	web, other := anInstance("web", base, nil), anInstance("other", base, nil)
	on := func(address string, more given) block {
		return aVolume("data", with(given{"instances": []ref{ref(address)}}, more))
	}
	goes := given{"delete_with_instance": true}
	off := func(more given) block { return aVolume("data", more) }
	none := given{"instances": []ref{}}
	return append(instanceAndVolumeEdits(base, offer), []operation{
		{name: "create-volume", to: blocks{off(nil)}},
		{name: "create-formatted-volume", to: blocks{off(given{"filesystem": "ext4", "labels": map[string]string{"app": "web"}})}},
		{name: "create-attached-volume", from: blocks{web}, to: blocks{web, on("instance.web", nil)}},
		{name: "create-instance-and-volume", to: blocks{web, on("instance.web", nil)}},
		{name: "read-volume", from: blocks{web, on("instance.web", nil)}, to: blocks{web, on("instance.web", nil)}},
		{name: "grow-volume", from: blocks{off(nil)}, to: blocks{off(given{"size_gib": 20})}},
		{name: "attach-volume", from: blocks{web, off(none)}, to: blocks{web, on("instance.web", nil)}},
		{name: "attach-and-grow-volume", from: blocks{web, off(none)}, to: blocks{web, on("instance.web", given{"size_gib": 20})}},
		{name: "detach-volume", from: blocks{web, on("instance.web", nil)}, to: blocks{web, off(none)}},
		{name: "move-volume", from: blocks{web, other, on("instance.web", nil)}, to: blocks{web, other, on("instance.other", nil)}},
		{name: "let-volume-go-with-instance", from: blocks{web, on("instance.web", nil)}, to: blocks{web, on("instance.web", goes)}},
		{name: "replace-volume", from: blocks{web, on("instance.web", given{"filesystem": "ext4"})}, to: blocks{web, on("instance.web", given{"filesystem": "xfs"})}},
		{name: "rename-volume", from: blocks{off(nil)}, to: blocks{off(given{"name": "renamed"})}},
		{name: "replace-instance-with-volume", from: blocks{web, on("instance.web", nil)}, to: blocks{anInstance("web", base, given{"image": image}), on("instance.web", nil)}},
		{name: "replace-instance-and-its-volume", from: blocks{web, on("instance.web", goes)}, to: blocks{anInstance("web", base, given{"image": image}), on("instance.web", goes)}},
		{name: "delete-volume", from: blocks{off(nil)}},
		{name: "delete-attached-volume", from: blocks{web, on("instance.web", nil)}, to: blocks{web}},
		{name: "delete-instance-and-volume", from: blocks{web, on("instance.web", nil)}},
		{name: "delete-instance-and-its-volume", from: blocks{web, on("instance.web", goes)}},
		{name: "adopt-volume", from: blocks{web, on("instance.web", nil)}, to: blocks{web, on("instance.web", nil)}, disturb: forget("volume.data"), adopts: true},
		{name: "import-volume", from: blocks{off(nil)}, to: blocks{off(nil)}, imports: true},
	}...)
}

func hetznerOperations(string) []operation {
	base := given{"offer": "cx23", "image": "ubuntu-24.04"}
	full := given{
		"labels": map[string]string{"app": "web"}, "user_data": "#cloud-config\n", "deletion_protection": false,
		"hetzner_cloud": given{"backups": true, "public_ipv6": false},
	}
	bare := blocks{anInstance("web", base, given{"deletion_protection": false})}
	return append(append(instanceOperations(base, full, "cx33", "debian-12"), append(volumeOperations(base, "cx33", "debian-12"), append(volumeEditOperations(base, "debian-12"), hetznerEdits(base)...)...)...),
		operation{
			name: "mend-labels", from: bare, to: bare,
			disturb: func(s emulator.Service, _ state) {
				service := s.(*hetzneremulator.Service)
				for _, v := range service.Servers() {
					delete(v.Labels, "better-compute.io/complete")
					service.SetLabels(v.ID, v.Labels)
				}
			},
		},
	)
}

func oceanOperations(vpc string) []operation {
	base := given{"offer": "s-1vcpu-1gb", "image": "debian-12-x64"}
	full := given{
		"labels": map[string]string{"app": "web"}, "user_data": "#cloud-config\n",
		"digitalocean": given{"ipv6": true, "backups": true},
	}
	data, first := aVolume("data", nil), aSnapshot("first", nil)
	share := func(more given) block {
		return aVolume("data", with(given{"kind": "shared", "size_gib": 50, "region": oceanShareRegion, "network_id": vpc}, more))
	}
	near := anInstance("web", base, given{"region": oceanShareRegion, "network_id": vpc})
	used := given{"instances": []ref{"instance.web"}}
	restored := block{"volume.restored", volumeType, given{"name": "restored", "pool": inPool{}, "size_gib": 10, "from_snapshot": ref("snapshot.first")}}
	return append(append(instanceOperations(base, full, "s-1vcpu-2gb", "ubuntu-24-04-x64"), append(volumeOperations(base, "s-1vcpu-2gb", "ubuntu-24-04-x64"), append(volumeEditOperations(base, "ubuntu-24-04-x64"), append(oceanEdits(base), oceanEditsWithTwists(base)...)...)...)...),
		operation{name: "create-snapshot", from: blocks{data}, to: blocks{data, first}},
		operation{name: "create-volume-and-snapshot", to: blocks{data, first}},
		operation{name: "read-snapshot", from: blocks{data, first}, to: blocks{data, first}},
		operation{name: "rename-snapshot", from: blocks{data, first}, to: blocks{data, aSnapshot("first", given{"name": "second"})}},
		operation{name: "delete-snapshot", from: blocks{data, first}, to: blocks{data}},
		operation{name: "restore-volume", from: blocks{data, first}, to: blocks{data, first, restored}},
		operation{name: "adopt-snapshot", from: blocks{data, first}, to: blocks{data, first}, disturb: forget("snapshot.first"), adopts: true},
		operation{name: "create-share", to: blocks{share(nil)}},
		operation{name: "create-attached-share", from: blocks{near}, to: blocks{near, share(used)}},
		operation{name: "read-share", from: blocks{near, share(used)}, to: blocks{near, share(used)}},
		operation{name: "grow-share", from: blocks{share(nil)}, to: blocks{share(given{"size_gib": 60})}},
		operation{name: "attach-share", from: blocks{near, share(nil)}, to: blocks{near, share(used)}},
		operation{name: "detach-share", from: blocks{near, share(used)}, to: blocks{near, share(given{"instances": []ref{}})}},
		operation{name: "delete-share", from: blocks{near, share(used)}, to: blocks{near}},
		operation{name: "adopt-share", from: blocks{share(nil)}, to: blocks{share(nil)}, disturb: forget("volume.data"), adopts: true},
		operation{name: "create-share-snapshot", from: blocks{share(nil)}, to: blocks{share(nil), first}},
		operation{name: "delete-share-and-snapshot", from: blocks{share(nil), first}},
	)
}

func clusterOperations(string) []operation {
	base := given{"offer": "1c-2g", "image": "debian-13"}
	full := given{
		"labels": map[string]string{"app": "web"}, "user_data": "#cloud-config\n",
		"proxmox": given{"ip_config": []given{{"ipv4": "10.0.0.5/24", "gateway": "10.0.0.1"}}, "on_boot": true},
	}
	return append(append(instanceOperations(base, full, "2c-4g", "pve1/9001"), clusterEdits(base)...),
		operation{name: "delete-full-instance", from: blocks{anInstance("web", base, full)}},
	)
}
