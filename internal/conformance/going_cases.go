// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
)

// goingCases are the sentences about what becomes of a machine's volumes when it is
// deleted.
func goingCases() []Case {
	return []Case{
		{
			Name:  "going/after",
			About: "Without selective destroy, deleting a machine detaches its volumes, and those that go with it are deleted after it; the others stay as they are.",
			Needs: []Need{NeedVolumes, NeedList},
			Run: func(ctx context.Context, t *Trial) error {
				// A backend that could is held to it too: nothing of the rule may rest on it.
				b, ok := t.Backend.(listsAndVolumes)
				if !ok {
					return skipped("the backend can't list")
				}
				return goingWith(ctx, t, struct{ listsAndVolumes }{b})
			},
		},
		{
			Name:  "going/with",
			About: "With selective destroy, deleting a machine through the rules above the backend deletes the volumes that go with it, and those only.",
			Needs: []Need{NeedSelectiveDestroy, NeedVolumes},
			Run:   func(ctx context.Context, t *Trial) error { return goingWith(ctx, t, t.Backend) },
		},
		{
			Name:  "going/selects",
			About: "DeleteMachineWith deletes the machine and the volumes that it is told, whatever their marks, and leaves the others; for a machine that is gone it fails with NOT_FOUND.",
			Needs: []Need{NeedSelectiveDestroy, NeedVolumes},
			Run:   goingSelects,
		},
	}
}

// listsAndVolumes is all that the rules need of a backend to delete volumes after
// their machine.
type listsAndVolumes interface {
	backends.Backend
	backends.Lister
	backends.Volumer
}

// pair is a machine with two volumes.
type pair struct {
	wish    reconcile.Wish
	machine backends.Machine
	wishes  [2]reconcile.VolumeWish
	volumes [2]backends.Volume
}

// pair makes a machine with two volumes, of which the first goes with it if goes.
func (t *Trial) pair(ctx context.Context, goes bool) (pair, error) {
	p := pair{wish: t.Wish(0)}
	var err error
	if p.machine, err = t.Create(ctx, p.wish); err != nil {
		return p, err
	}
	for i := range p.volumes {
		p.wishes[i] = t.volumeWish(blockDisks, i)
		p.wishes[i].Spec.Marks.GoesWithMachine = goes && i == 0
		p.wishes[i].Machines = []string{p.machine.ID}
		if p.volumes[i], err = t.createVolume(ctx, blockDisks, p.wishes[i]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// stays is wrong unless the second volume is there, as it was, on no machine.
func (p pair) stays(ctx context.Context, t *Trial) error {
	v, err := t.onVolumes(blockDisks).get(ctx, p.volumes[1].ID)
	if err != nil {
		return fmt.Errorf("the volume that stays: %w", err)
	}
	is := &differing{noun: "volume that stays"}
	is.same("state", v.State, backends.StateReady)
	is.same("size", v.SizeGiB, p.volumes[1].SizeGiB)
	return errors.Join(is.err(), sameMarks("the volume that stays", v.Marks, completed(p.wishes[1].Spec.Marks)), t.becomesOn(ctx, v.ID))
}

func goingWith(ctx context.Context, t *Trial, b backends.Backend) error {
	p, err := t.pair(ctx, true)
	if err != nil {
		return err
	}
	v, err := t.onVolumes(blockDisks).get(ctx, p.volumes[0].ID)
	if err != nil {
		return err
	}
	if err := sameMarks("the volume that goes", v.Marks, completed(p.wishes[0].Spec.Marks)); err != nil {
		return err
	}
	account, err := t.accountOf(b)
	if err != nil {
		return err
	}
	left, err := account.Delete(ctx, owned(p.wish, p.machine))
	switch {
	case err != nil:
		return fmt.Errorf("deleting the machine: %w", err)
	case left:
		return wrong("deleting the machine left it alone, although it carries our claim")
	}
	return errors.Join(t.absent(ctx, p.machine.ID), t.onVolumes(blockDisks).absent(ctx, p.volumes[0].ID), p.stays(ctx, t))
}

func goingSelects(ctx context.Context, t *Trial) error {
	b, ok := t.Backend.(backends.SelectiveDestroyer)
	if !ok {
		return skipped("the backend can't destroy selectively")
	}
	p, err := t.pair(ctx, false)
	if err != nil {
		return err
	}
	with := []backends.Volume{p.volumes[0]}
	if err := b.DeleteMachineWith(ctx, p.machine, with); err != nil {
		return fmt.Errorf("deleting the machine with one of its volumes: %w", err)
	}
	err = errors.Join(t.onMachines().goes(ctx, p.machine.ID), t.onVolumes(blockDisks).goes(ctx, p.volumes[0].ID), p.stays(ctx, t))
	if err != nil {
		return err
	}
	return wantCode("deleting it again", b.DeleteMachineWith(ctx, p.machine, with), backends.NotFound)
}
