// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// mapAttributes are the top-level attributes whose next step is a map's key.
var mapAttributes = map[string]bool{"flavors": true, "labels": true, "secrets": true}

// printable are the top-level attributes that an error may point at. The CLIs
// print the source lines of what an error points at, so this is an allow-list:
// an attribute that may hold a secret, or an object that may hold one in its
// body, is not here (DESIGN.md §5), and neither is one that holds a uri (see
// [inAttribute]). A path below one of those is no problem: the
// CLIs then print the resource's own line only.
var printable = map[string]bool{
	"adopt": true, "allow_replacement": true, "delete_with_instance": true, "deletion_protection": true, "description": true, "filesystem": true, "flavors": true,
	"gpu_model": true, "image": true, "kind": true, "labels": true,
	"limits": true, "min_gpus": true, "min_memory_gib": true, "min_vcpu": true, "name": true, "network_id": true, "offer": true, "offer_fallbacks": true,
	"on_image_change": true, "on_user_data_change": true, "power": true, "region": true, "resize_disk": true,
	"site_id": true, "size_gib": true, "ssh_keys": true, "pools": true, "tenant_id": true, "timeouts": true, "user_data_wo_version": true,
}

// attributePath is an issue's path in the framework's terms; empty when an error
// must not point there. A set's element is named by its index too: the CLIs look
// it up in the source, where it has one.
func attributePath(p backends.Path) path.Path {
	if len(p) == 0 {
		return path.Empty()
	}
	name, ok := p[0].(string)
	if !ok || (len(p) == 1 && !printable[name]) {
		return path.Empty()
	}
	out := path.Root(name)
	for i, step := range p[1:] {
		switch s := step.(type) {
		case int:
			out = out.AtListIndex(s)
		case string:
			if i == 0 && mapAttributes[name] {
				out = out.AtMapKey(s)
			} else {
				out = out.AtName(s)
			}
		default:
			return out
		}
	}
	return out
}
