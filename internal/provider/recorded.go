// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// mendRecord says what to do about a record that can't be trusted.
const mendRecord = "The state was edited, or is another version's. Restore a backup of it; or let it forget this resource " +
	"(tofu state rm ADDRESS, terraform state rm ADDRESS), and import it by its uri. Nothing was changed."

// openRecorded opens the account of an object that a state has, and holds what the state
// says of the object's names against its uri. What a state doesn't say is filled in: it
// must not plan another object. What contradicts the uri is an error: of the two nobody
// knows which one is true, and the wrong one may be another resource's. cloudID is the
// attribute that holds the cloud's id.
func (d *providerData) openRecorded(kind reference.Kind, state record, cloudID string) (reference.Reference, *reconcile.Account, error) {
	ref, account, err := d.open(kind, state.text("uri"))
	if err != nil {
		return ref, account, misrecorded(err)
	}
	names := map[string]string{"id": ref.ID(), "name": firstOf(ref.Snapshot, ref.Volume, ref.Instance)}
	if ref.MachineID != "" {
		names[cloudID] = ref.MachineID
	}
	for _, name := range []string{"id", "name", cloudID} {
		switch is, has := names[name]; {
		case !has:
		case state.text(name) == "":
			state.setText(name, is)
		case state.text(name) != is:
			e := backends.Errorf(backends.InvalidState, "The recorded %s is %q, and the recorded uri is that of %q: %s.",
				name, backends.Printable(state.text(name)), is, ref.String())
			return ref, account, e.WithRemedy(mendRecord)
		}
	}
	if state.text(cloudID) == "" {
		e := backends.Errorf(backends.InvalidState, "The state doesn't hold %s, the cloud's own id of %q.", cloudID, state.text("name"))
		return ref, account, e.WithRemedy(mendRecord)
	}
	if kind == reference.KindInstance && ref.MachineID == "" {
		state.setText("uri", ref.InstanceRef(ref.Instance, state.text(cloudID)).String())
	}
	return ref, account, nil
}

// misrecorded is the error of a recorded uri, with what to do about it.
func misrecorded(err error) error {
	e := backends.AsError(err)
	if e == nil {
		return err
	}
	out := *e
	out.Code, out.Path = backends.InvalidState, nil
	out.Message = "The recorded uri is no uri of such a resource. " + out.Message
	return out.WithRemedy(mendRecord)
}

// lostMarks tells whether some of an object's marks were taken away or changed by hand.
// The next apply puts them back.
func lostMarks(marks backends.Marks, ref reference.Reference, claim string, digested bool) bool {
	wanted := backends.Marks{Key: ref.ID(), Account: ref.AccountID(), Pool: ref.PoolID()}
	if ref.Snapshot != "" {
		wanted.Volume = ref.Volume
	}
	if digested {
		wanted.Digest = "any"
	}
	return claim != "" && (marks.Claim == "" && marks.Managed || reconcile.LostMarks(marks, wanted))
}

// warnLostMarks says so.
func warnLostMarks(diags *diag.Diagnostics, a backends.About) {
	diags.AddWarning("Changed outside", fmt.Sprintf("At the %s %q (%s) some of the provider's own labels or tags were changed or removed. The next apply puts them back.", a.Noun, a.Name, a.ID))
}
