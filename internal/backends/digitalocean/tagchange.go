// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// tagWish is what a wish says about tags: its labels and its raw tags. Nil labels, and
// options without tags, say nothing.
type tagWish struct {
	labels  map[string]string
	options backends.Values
}

// tags are the tags that a wish names.
func (w tagWish) tags() []string { return foreign(w.labels, w.options.Strings("tags")) }

// silent tells whether a wish says nothing about tags.
func (w tagWish) silent() bool { return w.labels == nil && !w.options.Has("tags") }

// tagChange is what brings an object with tags from one wish to another: the tags to
// put on, and those to take off. Taken off is only what the earlier wish named, the new
// one has a say in and doesn't name; all else is another's, or a mark.
func tagChange(have []string, from, to tagWish) (on, off []string) {
	had, stays := from, tagWish{}
	if to.labels == nil {
		had.labels, stays.labels = nil, from.labels
	}
	if !to.options.Has("tags") {
		had.options, stays.options = nil, from.options
	}
	want, keep := to.tags(), stays.tags()
	for _, tag := range want {
		if !hasTag(have, tag) {
			on = append(on, tag)
		}
	}
	off = slices.DeleteFunc(had.tags(), func(tag string) bool {
		return !hasTag(have, tag) || hasTag(want, tag) || hasTag(keep, tag)
	})
	return on, off
}
