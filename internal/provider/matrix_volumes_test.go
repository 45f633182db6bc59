// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

// volumeEditOperations are the changes in place of block volumes, and attachments as
// resources of their own. image is another one than base has.
func volumeEditOperations(base given, image string) []operation {
	web, other := anInstance("web", base, nil), anInstance("other", base, nil)
	anew := anInstance("web", base, given{"image": image})
	named := func(more given) block { return aVolume("data", with(given{"instances": []ref{"instance.web"}}, more)) }
	data := func(more given) block { return aVolume("data", more) }
	on := func(address string) block {
		return block{"attachment.data", attachmentType, given{"volume": ref("volume.data"), "instance": ref(address)}}
	}
	labels := func(of map[string]string) given { return given{"labels": of} }
	return []operation{
		{name: "rename-attached-volume", from: blocks{web, named(nil)}, to: blocks{web, named(given{"name": "renamed"})}},
		{name: "rename-and-grow-volume", from: blocks{data(nil)}, to: blocks{data(given{"name": "renamed", "size_gib": 20})}},
		{
			name: "relabel-volume", from: blocks{data(labels(map[string]string{"app": "web", "tier": "one"}))},
			to: blocks{data(labels(map[string]string{"app": "db", "new": ""}))},
		},
		{
			name: "rename-and-relabel-volume", from: blocks{data(labels(map[string]string{"app": "web"}))},
			to: blocks{data(with(labels(map[string]string{"app": "db"}), given{"name": "renamed"}))},
		},
		{name: "create-protected-volume", to: blocks{data(given{"deletion_protection": true})}},
		{name: "protect-volume", from: blocks{data(nil)}, to: blocks{data(given{"deletion_protection": true})}},
		{name: "unprotect-volume", from: blocks{data(given{"deletion_protection": true})}, to: blocks{data(given{"deletion_protection": false})}},
		{name: "attach", from: blocks{web, data(nil)}, to: blocks{web, data(nil), on("instance.web")}},
		{name: "create-volume-instance-and-attachment", to: blocks{data(nil), web, on("instance.web")}},
		{name: "read-attachment", from: blocks{web, data(nil), on("instance.web")}, to: blocks{web, data(nil), on("instance.web")}},
		{name: "move-attachment", from: blocks{web, other, data(nil), on("instance.web")}, to: blocks{web, other, data(nil), on("instance.other")}},
		{name: "detach", from: blocks{web, data(nil), on("instance.web")}, to: blocks{web, data(nil)}},
		{name: "rename-volume-with-attachment", from: blocks{web, data(nil), on("instance.web")}, to: blocks{web, data(given{"name": "renamed"}), on("instance.web")}},
		{name: "replace-instance-with-attachment", from: blocks{data(nil), web, on("instance.web")}, to: blocks{data(nil), anew, on("instance.web")}},
		{
			name: "replace-volume-with-attachment", from: blocks{web, data(given{"filesystem": "ext4"}), on("instance.web")},
			to: blocks{web, data(given{"filesystem": "xfs"}), on("instance.web")},
		},
		{name: "instances-to-attachment", from: blocks{web, named(nil)}, to: blocks{web, data(nil), on("instance.web")}},
		{name: "attachment-to-instances", from: blocks{web, data(nil), on("instance.web")}, to: blocks{web, named(nil)}},
		{name: "delete-all-of-an-attachment", from: blocks{web, data(nil), on("instance.web")}},
	}
}
