// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

// instanceEdits are the changes in place that every cloud makes. offer is another one
// than base has.
func instanceEdits(base given, offer string) []operation {
	web := func(more given) blocks { return blocks{anInstance("web", base, more)} }
	labels := func(of map[string]string) given { return given{"labels": of} }
	resized := given{"offer": offer}
	off := given{"power": "off"}
	protected, bare := given{"deletion_protection": true}, given{"deletion_protection": false}
	return []operation{
		{name: "resize-instance", from: web(nil), to: web(resized)},
		{name: "resize-stopped-instance", from: web(off), to: web(with(off, resized))},
		{name: "resize-and-stop-instance", from: web(nil), to: web(with(off, resized))},
		{name: "rename-instance", from: web(nil), to: web(given{"name": "renamed"})},
		{name: "rename-and-resize-instance", from: web(nil), to: web(with(resized, given{"name": "renamed"}))},
		{
			name: "relabel-instance", from: web(labels(map[string]string{"app": "web", "tier": "one"})),
			to: web(labels(map[string]string{"app": "db", "new": ""})),
		},
		{
			name: "edit-all-of-an-instance", from: web(with(bare, labels(map[string]string{"app": "web"}))),
			to: web(with(with(protected, resized), with(labels(map[string]string{"app": "db"}), given{"name": "renamed"}))),
		},
		{name: "create-protected-instance", to: web(protected)},
		{name: "protect-instance", from: web(bare), to: web(protected)},
		{name: "unprotect-instance", from: web(protected), to: web(bare)},
		{name: "resize-protected-instance", from: web(protected), to: web(with(protected, resized))},
	}
}

// instanceAndVolumeEdits are changes of an instance that has a volume.
func instanceAndVolumeEdits(base given, offer string) []operation {
	volume := aVolume("data", given{"instances": []ref{"instance.web"}})
	goes := aVolume("data", given{"instances": []ref{"instance.web"}, "delete_with_instance": true})
	return []operation{
		{
			name: "resize-instance-with-volume", from: blocks{anInstance("web", base, nil), volume},
			to: blocks{anInstance("web", base, given{"offer": offer}), volume},
		},
		{
			name: "rename-instance-with-volume", from: blocks{anInstance("web", base, nil), volume},
			to: blocks{anInstance("web", base, given{"name": "renamed"}), volume},
		},
		{
			name: "rename-instance-and-its-volume", from: blocks{anInstance("web", base, nil), goes},
			to: blocks{anInstance("web", base, given{"name": "renamed"}), goes},
		},
	}
}

// oceanEdits change what only Droplets have.
func oceanEdits(base given) []operation {
	web := func(options, more given) blocks {
		return blocks{anInstance("web", base, with(given{"digitalocean": options}, more))}
	}
	weekly := given{"plan": "weekly", "weekday": "MON", "hour": 4}
	return []operation{
		{name: "edit-tags", from: web(given{"tags": []string{"one", "both"}}, nil), to: web(given{"tags": []string{"both", "two"}}, nil)},
		{name: "edit-backups-on", from: web(given{"backups": false}, nil), to: web(given{"backups": true, "backup_policy": weekly}, nil)},
		{name: "edit-backups-off", from: web(given{"backups": true}, nil), to: web(given{"backups": false}, nil)},
		{
			name: "edit-backup-policy", from: web(given{"backups": true, "backup_policy": given{"plan": "daily", "hour": 8}}, nil),
			to: web(given{"backups": true, "backup_policy": weekly}, nil),
		},
		{name: "edit-ipv6", from: web(given{}, nil), to: web(given{"ipv6": true}, nil)},
		{
			name: "edit-everything", from: web(given{"tags": []string{"one"}}, given{"labels": map[string]string{"app": "web", "env": "a"}}),
			to: web(given{"tags": []string{"two"}, "backups": true, "ipv6": true},
				given{"name": "renamed", "offer": "s-1vcpu-2gb", "labels": map[string]string{"app": "api"}}),
		},
	}
}

// clusterEdits change what only VMs of Proxmox VE have.
func clusterEdits(base given) []operation {
	web := func(options, more given) blocks {
		return blocks{anInstance("web", base, with(given{"proxmox": options}, more))}
	}
	address := func(last string) []given {
		return []given{{"ipv4": "10.0.0." + last + "/24", "gateway": "10.0.0.1"}}
	}
	card := func(more given) []given { return []given{with(given{"bridge": "vmbr0"}, more)} }
	return []operation{
		{name: "edit-tags", from: web(given{"tags": []string{"one", "both"}}, nil), to: web(given{"tags": []string{"both", "two"}}, nil)},
		{name: "edit-addresses", from: web(given{"ip_config": address("5")}, nil), to: web(given{"ip_config": address("6")}, nil)},
		{name: "edit-vlan", from: web(given{"network_devices": card(nil)}, nil), to: web(given{"network_devices": card(given{"vlan_id": 7})}, nil)},
		{name: "edit-card", from: web(given{"network_devices": card(nil)}, nil), to: web(given{"network_devices": card(given{"model": "e1000"})}, nil)},
		{name: "edit-dns", from: web(given{}, nil), to: web(given{"dns": given{"servers": []string{"10.0.0.53"}, "domain": "example.com"}}, nil)},
		{name: "edit-cpu", from: web(given{}, nil), to: web(given{"cpu_type": "host"}, nil)},
		{name: "edit-on-boot", from: web(given{}, nil), to: web(given{"on_boot": true}, nil)},
		{
			name: "edit-everything", from: web(given{"tags": []string{"one"}, "ip_config": address("5")}, given{"labels": map[string]string{"app": "web", "env": "a"}, "user_data": "#cloud-config\n"}),
			to: web(given{"tags": []string{"two"}, "ip_config": address("6"), "cpu_type": "host", "on_boot": true, "network_devices": card(given{"vlan_id": 7})},
				given{"name": "renamed", "offer": "2c-4g", "labels": map[string]string{"app": "api"}, "user_data": "#cloud-config\n"}),
		},
	}
}
