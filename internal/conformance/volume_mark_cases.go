// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// volumeCases are the sentences about block volumes that need no machine.
func volumeCases() []Case {
	return []Case{
		{
			Name:  "volume/marks",
			About: "Mark replaces a volume's marks, also whether it goes with its machine, and answers the volume as the cloud then shows it; without any it is in no list.",
			Needs: blockDisks.needs,
			Run:   volumeMarks,
		},
		{
			Name:  "volume/labels",
			About: "Labels given at creation are on the volume, and writing marks keeps them.",
			Needs: blockDisks.needs,
			Run:   volumeLabels,
		},
		{
			Name:  "volume/mark-missing",
			About: "Marking a volume that is gone fails with NOT_FOUND.",
			Needs: blockDisks.needs,
			Run: func(ctx context.Context, t *Trial) error {
				w := t.volumeWish(blockDisks, 0)
				made, err := t.createVolume(ctx, blockDisks, w)
				if err != nil {
					return err
				}
				if _, err := t.deleteVolume(ctx, ownedVolume(w, made)); err != nil {
					return err
				}
				marks := made.Marks
				marks.Claim = t.Claim()
				_, err = t.blocks().Mark(ctx, made, marks)
				return wantCode("marking a deleted volume", err, backends.NotFound)
			},
		},
	}
}

func volumeMarks(ctx context.Context, t *Trial) error {
	w := t.volumeWish(blockDisks, 0)
	v, err := t.createVolume(ctx, blockDisks, w)
	if err != nil {
		return err
	}
	shelf := t.onVolumes(blockDisks)
	write := func(when string, change func(*backends.Marks)) error {
		marks := v.Marks
		change(&marks)
		answered, err := t.blocks().Mark(ctx, v, marks)
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		if answered.ID != v.ID {
			return wrong("marking the volume %s answered the volume %s", v.ID, answered.ID)
		}
		id := v.ID
		if v, err = shelf.get(ctx, id); err != nil {
			return err
		}
		return errors.Join(sameMarks(when+", as Mark answers", answered.Marks, marks), sameMarks(when+", as a get shows it next", v.Marks, marks))
	}
	if err := write("told to go with its machine", func(m *backends.Marks) { m.GoesWithMachine = true }); err != nil {
		return err
	}
	if err := write("told to stay", func(m *backends.Marks) { m.GoesWithMachine = false }); err != nil {
		return err
	}
	if err := write("claimed anew", func(m *backends.Marks) { m.Claim, m.Digest, m.Complete = t.Claim(), "k000000", false }); err != nil {
		return err
	}
	if err := write("without marks", func(m *backends.Marks) { *m = backends.Marks{} }); err != nil {
		return err
	}
	return errors.Join(shelf.lists(ctx, backends.Filter{Pool: w.Spec.Marks.Pool}, nil, []string{v.ID}), shelf.none(ctx, w.Spec.Marks.Key))
}

func volumeLabels(ctx context.Context, t *Trial) error {
	w := t.volumeWish(blockDisks, 0)
	w.Spec.Labels = map[string]string{labelName: labelValue}
	w.Spec.Marks.GoesWithMachine = true
	onLabels := func(e *backends.Error) bool { return len(e.Path) > 0 && e.Path[0] == "labels" }
	if slices.ContainsFunc(t.blocks().CheckForm(w.Spec), onLabels) {
		return skipped("the backend takes no labels")
	}
	v, err := t.createVolume(ctx, blockDisks, w)
	if err != nil {
		return err
	}
	labelled := func(when string) error {
		var err error
		id := v.ID
		if v, err = t.onVolumes(blockDisks).get(ctx, id); err == nil && v.Labels[labelName] != labelValue {
			err = wrong("%s the volume's label %q is %q, it must be %q", when, labelName, v.Labels[labelName], labelValue)
		}
		return err
	}
	if err := labelled("after create"); err != nil {
		return err
	}
	if err := sameMarks("after create", v.Marks, completed(w.Spec.Marks)); err != nil {
		return err
	}
	marks := v.Marks
	marks.Claim, marks.GoesWithMachine = t.Claim(), false
	if v, err = t.blocks().Mark(ctx, v, marks); err != nil {
		return err
	}
	if err := labelled("after its marks were written"); err != nil {
		return err
	}
	if v, err = t.blocks().Mark(ctx, v, backends.Marks{}); err != nil {
		return err
	}
	return labelled("after its marks were taken away")
}
