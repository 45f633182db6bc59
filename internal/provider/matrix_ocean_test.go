// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// oceanEditsWithTwists are changes of Droplets that can't be undone, or meet the work of
// others: what another tool has put there stays, and what someone took off comes back.
func oceanEditsWithTwists(base given) []operation {
	web := func(more given) blocks { return blocks{anInstance("web", base, more)} }
	return []operation{
		{name: "resize-and-grow", from: web(nil), to: web(given{"offer": "s-1vcpu-2gb", "resize_disk": true})},
		{
			name: "edit-beside-others", from: web(given{"labels": map[string]string{"app": "web", "env": "a"}}),
			to: web(given{"labels": map[string]string{"app": "api", "env": "a"}}),
			disturb: func(s emulator.Service, _ state) {
				service := s.(*oceanemulator.Service)
				for _, d := range service.Droplets() {
					tags := slices.DeleteFunc(d.Tags, func(tag string) bool { return tag == "env:a" })
					service.SetTags(d.ID, append(tags, "theirs"))
				}
			},
		},
	}
}
