// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func tidyCases() []Case {
	return []Case{{
		Name:  "tidy/keeps",
		About: "Tidy takes nothing from an object that carries the marks, and once it is gone it may be called again and again.",
		Needs: []Need{NeedTidying},
		Run:   tidyKeeps,
	}}
}

func tidyKeeps(ctx context.Context, t *Trial) error {
	tidier, ok := t.Backend.(backends.Tidier)
	if !ok {
		return skipped("the backend doesn't tidy")
	}
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if err := tidier.Tidy(ctx, w.Spec.Marks); err != nil {
		return fmt.Errorf("tidying up while the machine is there: %w", err)
	}
	m, err := t.get(ctx, made.ID)
	if err := errors.Join(err, sameMarks("the machine after tidying up", m.Marks, completed(w.Spec.Marks)),
		t.only(ctx, w.Spec.Marks.Key, made.ID)); err != nil {
		return err
	}
	if _, err := t.Delete(ctx, owned(w, made)); err != nil {
		return err
	}
	for range 2 {
		if err := tidier.Tidy(ctx, w.Spec.Marks); err != nil {
			return fmt.Errorf("tidying up after the machine is gone: %w", err)
		}
	}
	return nil
}
