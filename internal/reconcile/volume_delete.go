// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// DeleteVolume detaches a volume from the machines that may be released, deletes it
// and waits until it is gone; one that is gone already is a success. Attached to
// anything else it is INVALID_STATE. For left and the rest see [Account.Delete].
func (a *Account) DeleteVolume(ctx context.Context, o VolumeOwned, release []string) (left bool, err error) {
	ctx = backends.Operation(ctx)
	k, err := a.needVolumes(o.Kind)
	if err != nil {
		return false, err
	}
	unlock, err := a.shared.keys.lock(ctx, o.Key)
	if err != nil {
		return false, err
	}
	defer unlock()
	found, left, err := k.ownToDelete(ctx, o.Owned)
	if found == nil || left || err != nil {
		return left, err
	}
	v := *found
	unlockVolume, err := k.lock(ctx, v.ID)
	if err != nil {
		return false, err
	}
	defer unlockVolume()
	switch {
	case !v.Protected || v.About().Going():
	case v.Marks.Complete || v.Marks.Fixed:
		return false, protected(v) // before it is detached
	default: // it was never what it should be, and whoever made it gives it up
		if v, err = a.liftProtection(ctx, v); err != nil {
			return false, err
		}
	}
	for _, m := range v.Machines {
		if !slices.Contains(release, m) {
			e := backends.Errorf(backends.InvalidState, "The volume %q is attached to a machine that instances doesn't name. "+
				"So it is not deleted: the volume %s is attached to %s.", v.Name, v.ID, machineList(v.Machines))
			e.Details = map[string]any{"volume_id": v.ID}
			return false, e.WithRemedy("Detach it there first, then destroy it.")
		}
	}
	if v.Kind != backends.SharedVolume && !v.About().Going() {
		v, err = a.attachOnly(ctx, o.Pool, v, nil, release)
		if backends.HasCode(err, backends.NotFound) {
			// The volume, or its machine, is being deleted at the same time.
			now, gone := k.ask(ctx, v.ID)
			switch {
			case backends.HasCode(gone, backends.NotFound):
				k.reader.deleted(v.ID)
				k.forget(ctx, o.Pool, v.Marks)
				return false, nil
			case gone == nil && len(now.Machines) == 0:
				v, err = now, nil
			}
		}
		if err != nil {
			return false, err
		}
	}
	return false, k.erase(ctx, o.Pool, v, k.delete)
}
