// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
)

// attachCases are the sentences about block volumes and the machines that have them.
func attachCases() []Case {
	return []Case{
		{
			Name:  "attach/makes",
			About: "A volume is attached as it is created, while the machine runs on; get and lists show where.",
			Needs: blockDisks.needs,
			Run:   attachMakes,
		},
		{
			Name:  "attach/again",
			About: "Attaching a volume to the machine that has it, and detaching it from one that hasn't, are successes that change nothing.",
			Needs: blockDisks.needs,
			Run:   attachAgain,
		},
		{
			Name:  "attach/elsewhere",
			About: "A volume that a machine has is not attached to another one, neither by the backend nor above it; once it may be released it moves.",
			Needs: blockDisks.needs,
			Run:   attachElsewhere,
		},
		{
			Name:  "attach/delete",
			About: "A volume that a machine has is not deleted: the backend fails, not with NOT_FOUND, and above it is INVALID_STATE; once it may be released it is detached and deleted.",
			Needs: blockDisks.needs,
			Run:   attachDelete,
		},
		{
			Name:  "attach/resize",
			About: "A volume is grown while a machine has it, which keeps it and runs on.",
			Needs: blockDisks.needs,
			Run: func(ctx context.Context, t *Trial) error {
				a, err := t.attached(ctx)
				if err != nil {
					return err
				}
				return errors.Join(t.grows(ctx, blockDisks, a.wish, a.volume), a.runsOn(ctx, t))
			},
		},
		{
			Name:  "attach/device",
			About: "An attached volume shows its device: the path that Device derives from its name, where the cloud derives it.",
			Needs: blockDisks.needs,
			Run:   attachDevice,
		},
	}
}

// attached is a machine that has a volume, both made by the case.
type attached struct {
	machineWish reconcile.Wish
	machine     backends.Machine
	wish        reconcile.VolumeWish
	volume      backends.Volume
}

// attached makes the case's first machine and its first volume, attached to it.
func (t *Trial) attached(ctx context.Context) (attached, error) {
	a := attached{machineWish: t.Wish(0), wish: t.volumeWish(blockDisks, 0)}
	var err error
	if a.machine, err = t.Create(ctx, a.machineWish); err != nil {
		return a, err
	}
	a.wish.Machines = []string{a.machine.ID}
	a.volume, err = t.createVolume(ctx, blockDisks, a.wish)
	if err == nil && !slices.Equal(a.volume.Machines, a.wish.Machines) {
		err = wrong("the volume was to be created attached to %v; it is to %v", a.wish.Machines, a.volume.Machines)
	}
	return a, err
}

// runsOn is wrong unless the machine runs and is what it was.
func (a attached) runsOn(ctx context.Context, t *Trial) error {
	m, err := t.get(ctx, a.machine.ID)
	if err == nil && m.State != backends.StateRunning {
		err = wrong("the machine doesn't run on: its state is %s", m.State)
	}
	return errors.Join(err, sameMarks("the machine afterwards", m.Marks, completed(a.machineWish.Spec.Marks)))
}

// isOn is wrong unless exactly those machines have the volume.
func (t *Trial) isOn(ctx context.Context, id string, machines ...string) error {
	v, err := t.onVolumes(blockDisks).get(ctx, id)
	if err == nil && !slices.Equal(v.Machines, machines) {
		err = wrong("the volume is attached to %v, it must be to %v", v.Machines, machines)
	}
	return err
}

// becomesOn is isOn for what the backend was just told.
func (t *Trial) becomesOn(ctx context.Context, id string, machines ...string) error {
	return t.onVolumes(blockDisks).inTime(ctx, func() error { return t.isOn(ctx, id, machines...) })
}

func attachMakes(ctx context.Context, t *Trial) error {
	a, err := t.attached(ctx)
	if err != nil {
		return err
	}
	if err := t.isOn(ctx, a.volume.ID, a.machine.ID); err != nil {
		return err
	}
	listed, err := t.onVolumes(blockDisks).listed(ctx, backends.Filter{Pool: a.wish.Spec.Marks.Pool})
	if err != nil {
		return err
	}
	if v := listed[a.volume.ID]; !v.AttachedTo(a.machine.ID) {
		return wrong("the list shows the volume attached to %v, it is to the machine %s", v.Machines, a.machine.ID)
	}
	if err := a.runsOn(ctx, t); err != nil {
		return err
	}
	none := []string{}
	_, err = t.changeVolume(ctx, a.wish, a.volume, func(c *reconcile.VolumeChange) {
		c.Machines, c.Release = &none, []string{a.machine.ID}
	})
	if err != nil {
		return fmt.Errorf("detaching the volume: %w", err)
	}
	v, err := t.onVolumes(blockDisks).get(ctx, a.volume.ID)
	return errors.Join(err, sameMarks("the detached volume", v.Marks, completed(a.wish.Spec.Marks)),
		t.isOn(ctx, a.volume.ID), a.runsOn(ctx, t))
}

func attachAgain(ctx context.Context, t *Trial) error {
	a, err := t.attached(ctx)
	if err != nil {
		return err
	}
	if err := t.blocks().Attach(ctx, a.volume, a.machine.ID); err != nil {
		return fmt.Errorf("attaching it again: %w", err)
	}
	if err := t.isOn(ctx, a.volume.ID, a.machine.ID); err != nil {
		return err
	}
	if err := t.blocks().Detach(ctx, a.volume, a.machine.ID); err != nil {
		return fmt.Errorf("detaching it: %w", err)
	}
	if err := t.becomesOn(ctx, a.volume.ID); err != nil {
		return err
	}
	if err := t.blocks().Detach(ctx, a.volume, a.machine.ID); err != nil {
		return fmt.Errorf("detaching it again: %w", err)
	}
	return errors.Join(t.isOn(ctx, a.volume.ID), a.runsOn(ctx, t))
}

func attachElsewhere(ctx context.Context, t *Trial) error {
	a, err := t.attached(ctx)
	if err != nil {
		return err
	}
	other, err := t.Create(ctx, t.Wish(1))
	if err != nil {
		return err
	}
	err = t.blocks().Attach(ctx, a.volume, other.ID)
	if err := wantCode("attaching a volume that another machine has", err, backends.InvalidState); err != nil {
		return err
	}
	if err := t.isOn(ctx, a.volume.ID, a.machine.ID); err != nil {
		return err
	}
	// Not on that machine is success, wherever it is; and there it stays.
	if err := t.blocks().Detach(ctx, a.volume, other.ID); err != nil {
		return fmt.Errorf("detaching it from the machine that doesn't have it: %w", err)
	}
	if err := t.isOn(ctx, a.volume.ID, a.machine.ID); err != nil {
		return err
	}
	_, err = t.attachTo(ctx, a.wish, a.volume, other.ID)
	if err := wantCode("attaching it elsewhere without releasing it", err, backends.Conflict); err != nil {
		return err
	}
	_, err = t.changeVolume(ctx, a.wish, a.volume, func(c *reconcile.VolumeChange) {
		c.Machines, c.Release = &[]string{other.ID}, []string{a.machine.ID}
	})
	if err != nil {
		return fmt.Errorf("moving the volume: %w", err)
	}
	return errors.Join(t.isOn(ctx, a.volume.ID, other.ID), a.runsOn(ctx, t))
}

func attachDelete(ctx context.Context, t *Trial) error {
	a, err := t.attached(ctx)
	if err != nil {
		return err
	}
	err = t.blocks().Delete(ctx, a.volume)
	switch {
	case err == nil:
		return wrong("the backend took the deletion of a volume that a machine has")
	case backends.HasCode(err, backends.NotFound):
		return wrong("deleting a volume that a machine has is no NOT_FOUND: %w", err)
	}
	_, err = t.deleteVolume(ctx, ownedVolume(a.wish, a.volume))
	if err := wantCode("deleting a volume that a machine has", err, backends.InvalidState); err != nil {
		return err
	}
	if err := t.isOn(ctx, a.volume.ID, a.machine.ID); err != nil {
		return err
	}
	if _, err := t.deleteVolume(ctx, ownedVolume(a.wish, a.volume), a.machine.ID); err != nil {
		return fmt.Errorf("deleting a volume that may be released: %w", err)
	}
	return errors.Join(t.onVolumes(blockDisks).absent(ctx, a.volume.ID), a.runsOn(ctx, t))
}

func attachDevice(ctx context.Context, t *Trial) error {
	a, err := t.attached(ctx)
	if err != nil {
		return err
	}
	v, err := t.onVolumes(blockDisks).get(ctx, a.volume.ID)
	if err != nil {
		return err
	}
	derived := t.blocks().Device(a.wish.Spec.Name)
	switch {
	case v.Device == "":
		return wrong("an attached volume shows no device")
	case derived != "" && v.Device != derived:
		return wrong("the volume's device is %q; by its name it is to be %q", v.Device, derived)
	case derived != "" && derived == t.blocks().Device(t.shortName(1)):
		return wrong("two names have the device %q", derived)
	}
	return nil
}
