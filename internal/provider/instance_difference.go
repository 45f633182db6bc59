// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// instanceDifference compares a plan with a state. What can't be read back from a
// cloud (image, keys, user data) is null in the state after an import, or moved
// between user_data and user_data_wo: then the digest of what the machine was made
// from tells whether it is the same. A machine that never had a digest is taken
// as it is.
type instanceDifference struct {
	plan, state, config record
	marks               backends.Marks // as last seen
	network             string         // as last seen
	key                 string
}

// imported tells whether the state never took the machine.
func (d instanceDifference) imported() bool { return d.state.isNull("claim") }

// made tells whether the machine was made with a value, as far as can be known.
func (d instanceDifference) made(f backends.DigestField, value string) bool {
	if d.marks.Digest == "" {
		return d.imported()
	}
	return backends.DigestMatches(d.marks.Digest, d.key, f, value)
}

func (d instanceDifference) differs(name string) bool { return !d.plan.equal(name, d.state) }

func (d instanceDifference) image() bool {
	switch {
	case !d.differs("image"):
		return false
	case d.state.isNull("image") && d.plan.has("image"):
		return !d.made(backends.DigestImage, d.plan.text("image"))
	default:
		return true
	}
}

func (d instanceDifference) sshKeys() bool {
	if !d.differs("ssh_keys") {
		return false
	}
	return !d.plan.isKnown("ssh_keys") || !d.made(backends.DigestSSHKeys, digestKeys(d.plan.texts("ssh_keys")))
}

func (d instanceDifference) userData() bool {
	if !userDataChanged(d.plan, d.state) {
		return false
	}
	userData, known := userDataOf(d.config)
	return !known || !d.made(backends.DigestUserData, userData)
}

func userDataChanged(plan, state record) bool {
	return !plan.equal("user_data", state) || !plan.equal("user_data_wo_version", state)
}

func (d instanceDifference) networkID() bool {
	if !d.differs("network_id") {
		return false
	}
	want := d.plan.text("network_id")
	if d.imported() && d.state.isNull("network_id") && d.plan.has("network_id") {
		return want != d.network && !d.made(backends.DigestNetwork, want)
	}
	return true
}
