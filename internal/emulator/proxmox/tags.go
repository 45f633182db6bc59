// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import "slices"

// mayTag refuses to put a registered tag on a VM, or to take it off, without the right
// to change the cluster itself. What stays as it is needs none.
func (c *call) mayTag(g *guest, wanted change) error {
	text, sets := wanted.set["tags"]
	if !sets && !slices.Contains(wanted.remove, "tags") || c.may("/", "Sys.Modify") {
		return nil
	}
	before, after := splitList(g.option("tags")), splitList(normalizeTags(text))
	for _, tag := range c.s.options.RegisteredTags {
		if slices.Contains(before, tag) != slices.Contains(after, tag) {
			return forbidden("/", "Sys.Modify for modifying tag '"+tag+"'")
		}
	}
	return nil
}
