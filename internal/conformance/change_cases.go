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

func changeCases() []Case {
	return []Case{
		{
			Name:  "power/actions",
			About: "Powering on a machine that runs is accepted, and an action that the cloud doesn't have is UNSUPPORTED.",
			Needs: []Need{NeedPower},
			Run:   powerActions,
		},
		{
			Name:  "power/off-on",
			About: "A machine is stopped and started, and get shows both.",
			Needs: []Need{NeedPower, NeedObservablePower},
			Run:   powerOffOn,
		},
		{
			Name:  "reinstall/keeps",
			About: "Reinstalling keeps the machine: its id, name and marks; it runs afterwards.",
			Needs: []Need{NeedReinstall},
			Run:   reinstallKeeps,
		},
		{
			Name:  "protection/holds",
			About: "A protected machine shows so and can't be deleted; once the protection is lifted it can.",
			Needs: []Need{NeedProtection},
			Run:   protectionHolds,
		},
	}
}

func powerActions(ctx context.Context, t *Trial) error {
	power, ok := t.Backend.(backends.Powerer)
	if !ok {
		return skipped("the backend can't change power")
	}
	m, err := t.Create(ctx, t.Wish(0))
	if err != nil {
		return err
	}
	if err := power.Power(ctx, m, backends.PowerOn); err != nil {
		return fmt.Errorf("powering on: %w", err)
	}
	err = power.Power(ctx, m, "no-such-action")
	return wantCode("an unknown power action", err, backends.Unsupported)
}

func powerOffOn(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		start bool
		want  backends.State
	}{{false, backends.StateStopped}, {true, backends.StateRunning}} {
		change := reconcile.Change{Owned: owned(w, made), Spec: w.Spec, Power: true}
		change.Spec.Start = step.start
		if _, err := t.Update(ctx, change); err != nil {
			return fmt.Errorf("bringing the machine to %s: %w", step.want, err)
		}
		m, err := t.get(ctx, made.ID)
		switch {
		case err != nil:
			return err
		case m.State != step.want:
			return wrong("the machine's state is %s, it must be %s", m.State, step.want)
		}
		if err := sameMarks("while "+string(m.State), m.Marks, completed(w.Spec.Marks)); err != nil {
			return err
		}
	}
	return nil
}

func reinstallKeeps(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	after, err := t.Update(ctx, reconcile.Change{Owned: owned(w, made), Spec: w.Spec, Reinstall: true})
	if err != nil {
		return err
	}
	if after.ID != made.ID {
		return wrong("reinstalling the machine %s answered the machine %s", made.ID, after.ID)
	}
	m, err := t.get(ctx, made.ID)
	switch {
	case err != nil:
		return err
	case m.State != backends.StateRunning:
		return wrong("the reinstalled machine's state is %s, it must be running", m.State)
	case m.Name != w.Spec.Name:
		return wrong("the reinstalled machine's name is %q, it must be %q", m.Name, w.Spec.Name)
	}
	return errors.Join(sameMarks("once reinstalled", m.Marks, completed(w.Spec.Marks)), t.only(ctx, w.Spec.Marks.Key, made.ID))
}

func protectionHolds(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	w.Spec.Protected = true
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	m, err := t.get(ctx, made.ID)
	switch {
	case err != nil:
		return err
	case !m.Protected:
		return wrong("a machine made with protection doesn't show it")
	}
	err = t.Backend.DeleteMachine(ctx, m)
	switch {
	case err == nil:
		return wrong("the cloud took the deletion of a protected machine")
	case !backends.HasReason(err, backends.ReasonProtected):
		return wrong("deleting a protected machine must fail with the reason protected; it failed with: %w", err)
	}
	_, err = t.Delete(ctx, owned(w, made))
	if err := wantCode("deleting a protected machine", err, backends.InvalidState); err != nil {
		return err
	}
	off := false
	w.Spec.Protected = false
	if _, err := t.Update(ctx, reconcile.Change{Owned: owned(w, made), Spec: w.Spec, Protect: &off}); err != nil {
		return fmt.Errorf("lifting the protection: %w", err)
	}
	if m, err = t.get(ctx, made.ID); err != nil {
		return err
	}
	if m.Protected {
		return wrong("the machine is protected still after its protection was lifted")
	}
	if _, err := t.Delete(ctx, owned(w, made)); err != nil {
		return fmt.Errorf("deleting it after its protection was lifted: %w", err)
	}
	return t.absent(ctx, made.ID)
}
