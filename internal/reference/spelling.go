// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"slices"
	"strings"
)

// difference names the first part of a uri that isn't spelled as r's canonical
// uri has it.
func difference(uri string, r Reference) string {
	_, rest, _ := strings.Cut(uri, "://")
	path, query, hasQuery := strings.Cut(rest, "?")
	_, rest, _ = strings.Cut(r.String(), "://")
	canonicalPath, _, _ := strings.Cut(rest, "?")

	segments := append([]string{r.Tenant}, r.segments()...)
	want := strings.Split(canonicalPath, "/")
	for i, got := range strings.Split(path, "/") {
		if i < len(want) && got != want[i] {
			return "the percent-encoding of the " + partName(i, segments) + " is not the usual one"
		}
	}
	if hasQuery && query == "" {
		return "it ends in a question mark"
	}
	pairs := r.pairs()
	var keys []string
	for entry := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(entry, "=")
		keys = append(keys, key)
		i := slices.IndexFunc(pairs, func(p pair) bool { return p.key == key })
		switch {
		case i < 0:
			return keyName(key) + " spells out what is so without it"
		case pairs[i].value != value:
			return "the value of " + keyName(key) + " is not written in the usual way (percent-encoding, number, or the order of a set)"
		}
	}
	if !slices.IsSorted(keys) {
		return "the keys of the query are not sorted"
	}
	return "it is written in another way"
}
