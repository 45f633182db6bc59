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

func markCases() []Case {
	return []Case{
		{
			Name:  "mark/replaces",
			About: "MarkMachine replaces the marks, and answers the machine as the cloud then shows it.",
			Run:   markReplaces,
		},
		{
			Name:  "mark/labels",
			About: "Labels given at creation are on the machine, and writing marks keeps them.",
			Run:   markKeepsLabels,
		},
		{
			Name:  "mark/missing",
			About: "Marking a machine that is gone fails with NOT_FOUND.",
			Run: func(ctx context.Context, t *Trial) error {
				w := t.Wish(0)
				made, err := t.Create(ctx, w)
				if err != nil {
					return err
				}
				if _, err := t.Delete(ctx, owned(w, made)); err != nil {
					return err
				}
				_, err = t.Backend.MarkMachine(ctx, made, made.Marks)
				return wantCode("marking a deleted machine", err, backends.NotFound)
			},
		},
		{
			Name:  "claim/lost",
			About: "A machine that someone else claimed is not changed (CONFLICT) and not deleted (done, left alone).",
			Run:   lostClaim,
		},
	}
}

func markReplaces(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	marks := made.Marks
	marks.Claim, marks.Digest, marks.Complete = t.Claim(), "i000000", false
	answered, err := t.Backend.MarkMachine(ctx, made, marks)
	if err != nil {
		return err
	}
	m, err := t.get(ctx, made.ID)
	if answered.ID != made.ID {
		err = errors.Join(err, wrong("marking the machine %s answered the machine %s", made.ID, answered.ID))
	}
	return errors.Join(err, sameMarks("as MarkMachine answers", answered.Marks, marks), sameMarks("as a get shows it next", m.Marks, marks))
}

// labelName is short, and lower case: what the labels and tags of all clouds take.
const (
	labelName  = "conformance"
	labelValue = "kept"
)

func markKeepsLabels(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	w.Spec.Labels = map[string]string{labelName: labelValue}
	_, issues, err := t.Backend.CheckMachine(ctx, w.Spec)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(issues, func(e *backends.Error) bool { return len(e.Path) > 0 && e.Path[0] == "labels" }) {
		return skipped("the backend takes no labels")
	}
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	labelled := func(when string) error {
		m, err := t.get(ctx, made.ID)
		if err == nil && m.Labels[labelName] != labelValue {
			err = wrong("%s the machine's label %q is %q, it must be %q", when, labelName, m.Labels[labelName], labelValue)
		}
		return err
	}
	if err := labelled("after create"); err != nil {
		return err
	}
	marks := made.Marks
	marks.Claim = t.Claim()
	marked, err := t.Backend.MarkMachine(ctx, made, marks)
	if err != nil {
		return err
	}
	if err := labelled("after its marks were written"); err != nil {
		return err
	}
	unmarked, err := t.Backend.MarkMachine(ctx, marked, backends.Marks{})
	if err != nil {
		return err
	}
	return errors.Join(labelled("after its marks were taken away"), t.markAgain(ctx, unmarked, marks))
}

func lostClaim(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	theirs := made.Marks
	theirs.Claim = t.Claim()
	if _, err := t.Backend.MarkMachine(ctx, made, theirs); err != nil {
		return err
	}
	_, err = t.Update(ctx, reconcile.Change{Owned: owned(w, made), Spec: w.Spec})
	if err := wantCode("updating a machine that lost its claim", err, backends.Conflict); err != nil {
		return err
	}
	left, err := t.Delete(ctx, owned(w, made))
	switch {
	case err != nil:
		return fmt.Errorf("deleting a machine that lost its claim: %w", err)
	case !left:
		return wrong("deleting a machine that lost its claim must leave it alone")
	}
	m, err := t.get(ctx, made.ID)
	return errors.Join(err, sameMarks("the machine afterwards", m.Marks, theirs))
}
