// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest is how many alternatives a message names.
const Nearest = 4

// Near are the candidates most like a name, at most n. Where nothing is like it,
// the first n: candidates come in an order that means something.
func Near(name string, candidates []string, n int) []string {
	type scored struct {
		name     string
		distance int
	}
	var like []scored
	for _, c := range candidates {
		d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(c), nil)
		if d <= max(2, len(name)/3) {
			like = append(like, scored{c, d})
		}
	}
	slices.SortStableFunc(like, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	if len(like) == 0 {
		return candidates[:min(n, len(candidates))]
	}
	var out []string
	for _, s := range like[:min(n, len(like))] {
		out = append(out, s.name)
	}
	return out
}

// Choice is a list of names as part of a sentence. They may be a cloud's.
func Choice(names []string) string {
	names = slices.Clone(names)
	for i := range names {
		names[i] = Printable(names[i])
	}
	switch len(names) {
	case 0:
		return "another one"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	}
}
