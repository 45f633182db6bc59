// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Attachment is a block volume on a machine, as a resource of its own wants it. It
// changes where the volume is and nothing else, so it needn't be of the state that owns
// the volume.
type Attachment struct {
	Volume reference.Reference
	// Machine is the cloud's id of the machine.
	Machine string
	// From is that of the machine that the attachment may take the volume from, since it
	// put it there; "" for none. It takes it from nobody else.
	From string
}

// AttachVolume attaches a volume that is marked and ready, detaching it first from where
// the attachment has it. With an error, asked tells whether the cloud was asked, so that
// the volume may come to the machine all the same.
func (a *Account) AttachVolume(ctx context.Context, at Attachment) (v backends.Volume, asked bool, err error) {
	ctx = backends.Operation(ctx)
	if v, err = a.attachable(ctx, at.Volume); err != nil {
		return v, false, err
	}
	unlock, err := a.volumes.lock(ctx, v.ID)
	if err != nil {
		return v, false, err
	}
	defer unlock()
	// What is to be done depends on where the volume is by now.
	if v, err = a.volumes.current(ctx, at.Volume.PoolID(), v.ID); err != nil {
		return v, false, err
	}
	if v, err = a.volumes.awaitReady(ctx, at.Volume.PoolID(), v); err != nil {
		return v, false, err
	}
	if e := CheckAttachment(v, at); e != nil {
		return v, false, e
	}
	release := slices.DeleteFunc(slices.Clone(v.Machines), func(m string) bool { return m == at.Machine })
	v, err = a.attachOnly(ctx, at.Volume.PoolID(), v, []string{at.Machine}, release)
	return v, err != nil, err
}

// attachable is the volume that a reference names, which must be a block volume.
func (a *Account) attachable(ctx context.Context, ref reference.Reference) (backends.Volume, error) {
	found, err := a.FindVolume(ctx, ref.PoolID(), "", ref.ID())
	switch {
	case err != nil:
		return backends.Volume{}, err
	case a.volumes == nil:
		return backends.Volume{}, a.noVolumes(backends.BlockVolume)
	case found == nil:
		return backends.Volume{}, backends.Errorf(backends.NotFound, "The volume %q isn't in the cloud, so nothing can be attached.", ref.Volume).
			WithRemedy("Make the volume first: refer to it by its uri, as in volume = bettercompute_provider_volume.data.uri. If it was deleted outside, replace it.")
	case found.Kind == backends.SharedVolume:
		return *found, SharedAttachment(*found)
	}
	return *found, nil
}

// SharedAttachment refuses an attachment of a shared volume.
func SharedAttachment(v backends.Volume) *backends.Error {
	return backends.Errorf(backends.Unsupported, "The volume %q is shared: its cloud attaches it to a network, and to no machine.", v.Name).
		WithRemedy("Name the instances that mount it in its instances.")
}

// CheckAttachment refuses an attachment of a volume that goes with its machine, or that
// another machine has: the attachment would take it away from there.
func CheckAttachment(v backends.Volume, at Attachment) *backends.Error {
	if v.Marks.GoesWithMachine {
		return GoesAttached(v.Name)
	}
	for _, m := range v.Machines {
		if m == at.Machine || m == at.From {
			continue
		}
		e := backends.Errorf(backends.Conflict, "The volume %q (%s) is attached to the machine %s, and an attachment takes it from nobody.", v.Name, v.ID, m).
			WithRemedy("Detach it there first. If the volume's instances, or another attachment, names that machine, keep one of them: a block volume is on one machine.")
		e.Details = map[string]any{"volume_id": v.ID, "machine_id": m}
		return e
	}
	return nil
}

// GoesAttached refuses an attachment of a volume that goes with its machine: the CLIs
// destroy a machine before anything that refers to it is planned anew, and only the
// volume's own instances lets its plan show that the data goes too (DESIGN.md §5).
func GoesAttached(volume string) *backends.Error {
	return backends.Errorf(backends.InvalidState, "The volume %q has delete_with_instance = true, so an attachment of its own can't hold it.", volume).
		WithRemedy("Name the instance in the volume's instances, or set delete_with_instance = false there and apply that first.")
}

// DetachVolume detaches a volume from a machine. A volume that is gone, or isn't there,
// is a success.
func (a *Account) DetachVolume(ctx context.Context, pool, id, machine string) error {
	ctx = backends.Operation(ctx)
	if a.volumes == nil || id == "" || machine == "" {
		return nil
	}
	unlock, err := a.volumes.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := a.volumes.current(ctx, pool, id)
	switch {
	case backends.HasCode(err, backends.NotFound):
		return nil
	case err != nil || !v.AttachedTo(machine):
		return err
	}
	_, err = a.detach(ctx, pool, v, machine)
	if !backends.HasCode(err, backends.NotFound) {
		return err
	}
	// The volume, or the machine, went at the same time.
	now, gone := a.volumes.ask(ctx, id)
	switch {
	case backends.HasCode(gone, backends.NotFound):
		return nil
	case gone == nil && !now.AttachedTo(machine):
		return nil
	}
	return err
}
