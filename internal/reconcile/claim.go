// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"crypto/rand"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// NewClaim is a fresh claim: 26 random characters that any label or tag may hold.
func NewClaim() string { return strings.ToLower(rand.Text()) }

// Ownership is what an object's marks say to the holder of a claim.
type Ownership int

// The kinds of ownership.
const (
	Ours      Ownership = iota // it carries our claim
	Unclaimed                  // it is managed and ours by key, and nobody's claim is on it
	Theirs                     // someone else's claim is on it
	Unmarked                   // it carries no marks of ours at all
	Foreign                    // it carries another key: it is another resource's
)

// Own compares an object's marks with the key and claim of a state. An empty
// claim is a state that never took the object: an import.
func Own(m backends.Marks, key, claim string) Ownership {
	switch {
	case !m.Managed && m.Key == "" && m.Claim == "":
		return Unmarked
	case m.Key != key:
		return Foreign
	case m.Claim == "":
		return Unclaimed
	case m.Claim == claim:
		return Ours
	default:
		return Theirs
	}
}
