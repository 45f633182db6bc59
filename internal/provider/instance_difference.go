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
	seen                privateObserved
	key                 string
}

// imported tells whether the state never took the machine.
func (d instanceDifference) imported() bool { return d.state.text("claim") == "" }

// made tells whether the machine was made with a value, as far as can be known.
func (d instanceDifference) made(f backends.DigestField, value string) bool {
	if d.seen.Digest == "" {
		return d.imported()
	}
	return backends.DigestMatches(d.seen.Digest, firstOf(d.seen.Key, d.key), f, value)
}

// unfinished tells whether an edit was cut off, so that the next apply goes on with it
// whatever the configuration says by then: a run said so, or the machine's marks are
// those of another name.
func (d instanceDifference) unfinished() bool {
	was := d.seen.Accepted
	renamed := d.seen.Renaming || d.seen.Key != "" && d.seen.Key != d.key
	return was.Cut || len(was.Attempts) > 0 || renamed && !d.imported()
}

func (d instanceDifference) differs(name string) bool { return !d.plan.equal(name, d.state) }

// changes tells whether a value is known to become another one. What isn't known
// yet is no change: it must not destroy what runs. Should it turn out to be another
// value, the apply is refused, and the next plan shows what it does.
func (d instanceDifference) changes(name string) bool {
	return d.plan.isKnown(name) && d.differs(name)
}

func (d instanceDifference) image() bool {
	switch {
	case !d.changes("image"), d.plan.text("image") == d.state.text("image_id"):
		return false
	case d.state.isNull("image") && d.plan.has("image"):
		return !d.made(backends.DigestImage, d.plan.text("image"))
	default:
		return true
	}
}

func (d instanceDifference) sshKeys() bool {
	return d.changes("ssh_keys") && !d.made(backends.DigestSSHKeys, digestKeys(d.plan.texts("ssh_keys")))
}

// offer tells whether another offer is asked for than the machine has: one that was
// resized in the cloud's console is recorded as what it is.
func (d instanceDifference) offer() bool {
	return d.changes("offer") && d.plan.text("offer") != d.seen.Offer
}

// mayReinstall tells whether what isn't known yet may turn out to reinstall the
// machine.
func (d instanceDifference) mayReinstall() bool {
	_, userDataKnown := userDataOf(d.config)
	return !d.plan.isKnown("image") && d.plan.text("on_image_change") == onChangeReinstall ||
		!userDataKnown && d.plan.text("on_user_data_change") == onChangeReinstall
}

func (d instanceDifference) userData() bool {
	if !userDataChanged(d.plan, d.state) {
		return false
	}
	userData, known := userDataOf(d.config)
	return known && !d.made(backends.DigestUserData, userData)
}

func userDataChanged(plan, state record) bool {
	return !plan.equal("user_data", state) || !plan.equal("user_data_wo_version", state)
}

func (d instanceDifference) networkID() bool {
	// Unset is hands off: it takes the machine out of no network.
	if !d.changes("network_id") || d.plan.isNull("network_id") {
		return false
	}
	want := d.plan.text("network_id")
	if d.imported() && d.state.isNull("network_id") {
		return want != d.seen.Network && !d.made(backends.DigestNetwork, want)
	}
	return true
}
