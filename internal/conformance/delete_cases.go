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

func deleteCases() []Case {
	return []Case{
		{
			Name:  "delete/removes",
			About: "Delete removes the machine: it is gone for get, for look-ups by its key, and for lists.",
			Run:   deleteRemoves,
		},
		{
			Name:  "delete/again",
			About: "Deleting a machine that is gone fails only with NOT_FOUND at the backend, and is a success above it.",
			Run:   deleteAgain,
		},
		{
			Name:  "delete/anew",
			About: "After a delete the same name and key make a new machine.",
			Run:   deleteAnew,
		},
	}
}

// createAndDelete makes a wish's machine and deletes it.
func (t *Trial) createAndDelete(ctx context.Context, w reconcile.Wish) (backends.Machine, error) {
	made, err := t.Create(ctx, w)
	if err != nil {
		return made, err
	}
	left, err := t.Delete(ctx, owned(w, made))
	switch {
	case err != nil:
		return made, fmt.Errorf("deleting %s: %w", w.Spec.Name, err)
	case left:
		return made, wrong("deleting %s left it alone, although it carries our claim", w.Spec.Name)
	}
	return made, nil
}

func deleteRemoves(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.createAndDelete(ctx, w)
	if err != nil {
		return err
	}
	if err := errors.Join(t.absent(ctx, made.ID), t.none(ctx, w.Spec.Marks.Key)); err != nil {
		return err
	}
	if _, ok := t.Backend.(backends.Lister); !ok {
		return nil
	}
	return t.lists(ctx, backends.Filter{Pool: w.Spec.Marks.Pool}, nil, []string{made.ID})
}

func deleteAgain(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.createAndDelete(ctx, w)
	if err != nil {
		return err
	}
	if err := t.Backend.DeleteMachine(ctx, made); err != nil {
		if err := wantCode("a second delete", err, backends.NotFound); err != nil {
			return err
		}
	}
	if left, err := t.Delete(ctx, owned(w, made)); err != nil || left {
		return errors.Join(err, wrong("deleting a machine that is gone must be a success"))
	}
	return nil
}

func deleteAnew(ctx context.Context, t *Trial) error {
	first, err := t.createAndDelete(ctx, t.Wish(0))
	if err != nil {
		return err
	}
	w := t.Wish(0) // the same key, a new claim
	second, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if _, reused := t.Backend.(backends.ReusedIDs); second.ID == first.ID && !reused {
		return wrong("the new machine has the id of the deleted one, %s", first.ID)
	}
	return t.only(ctx, w.Spec.Marks.Key, second.ID)
}
