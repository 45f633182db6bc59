// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// attachOnly attaches a block volume to the machines wanted, detaching it first from
// those that may be released. A machine that has it and is neither wanted nor to be
// released is a CONFLICT when it stands in the way of one that is wanted; else it is
// left alone. Attachments are compared by machine.
func (a *Account) attachOnly(ctx context.Context, pool string, v backends.Volume, wanted, release []string) (backends.Volume, error) {
	var missing, strangers []string
	for _, m := range wanted {
		if !v.AttachedTo(m) {
			missing = append(missing, m)
		}
	}
	for _, m := range v.Machines {
		if !slices.Contains(wanted, m) && !slices.Contains(release, m) {
			strangers = append(strangers, m)
		}
	}
	if len(missing) > 0 && len(strangers) > 0 {
		e := backends.Errorf(backends.Conflict, "The volume %q (%s) is attached to %s, which the plan didn't show, so it is not taken away from there.",
			v.Name, v.ID, machineList(strangers)).At("instances").
			WithRemedy("Plan again, and look at what has it attached before you apply.")
		e.Details = map[string]any{"volume_id": v.ID}
		return v, e
	}
	var err error
	for _, m := range slices.Clone(v.Machines) {
		if !slices.Contains(wanted, m) && slices.Contains(release, m) {
			if v, err = a.detach(ctx, pool, v, m); err != nil {
				return v, err
			}
		}
	}
	for _, m := range missing {
		if v, err = a.attach(ctx, pool, v, m); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (a *Account) attach(ctx context.Context, pool string, v backends.Volume, machine string) (backends.Volume, error) {
	unlock, err := a.machines.lock(ctx, machine)
	if err != nil {
		return v, err
	}
	defer unlock()
	err = a.volumes.change(ctx, v.ID, func(ctx context.Context) error { return a.blockVolumes().Attach(ctx, v, machine) })
	if err != nil {
		return v, err
	}
	return a.volumes.until(ctx, pool, v, func(v backends.Volume) bool { return v.AttachedTo(machine) })
}

func (a *Account) detach(ctx context.Context, pool string, v backends.Volume, machine string) (backends.Volume, error) {
	unlock, err := a.machines.lock(ctx, machine)
	if err != nil {
		return v, err
	}
	defer unlock()
	err = a.volumes.change(ctx, v.ID, func(ctx context.Context) error { return a.blockVolumes().Detach(ctx, v, machine) })
	if err != nil {
		return v, err
	}
	return a.volumes.until(ctx, pool, v, func(v backends.Volume) bool { return !v.AttachedTo(machine) })
}

func machineList(ids []string) string {
	if len(ids) == 1 {
		return "the machine " + ids[0]
	}
	return "the machines " + strings.Join(ids, ", ")
}
