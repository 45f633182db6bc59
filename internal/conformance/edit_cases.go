// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// editCases are the sentences about what is changed in place at a machine.
func editCases() []Case {
	return []Case{
		{
			Name: "edit/rename",
			About: "Another name and key are given in place: the machine keeps its id, claim and labels, runs on, is found by the new key and not by the old; " +
				"the same edit again changes nothing.",
			Needs: []Need{NeedEdit},
			Run:   editRename,
		},
		{
			Name: "edit/relabel",
			About: "Labels that the earlier wish named and the new one doesn't go, those of the new one are there, all others stay; " +
				"a wish without labels leaves them all.",
			Needs: []Need{NeedEdit},
			Run:   editRelabel,
		},
		{
			Name:  "edit/shown",
			About: "A machine that is what a wish says is shown so: nothing differs, and what does differ does.",
			Needs: []Need{NeedEdit},
			Run:   editShown,
		},
		{
			Name:  "resize/keeps",
			About: "A machine of another offer keeps its id, name and marks, shows the offer, and runs again; the same once more isn't another restart.",
			Needs: []Need{NeedResize, NeedPower},
			Run:   resizeKeeps,
		},
	}
}

// neverOff is for edits that need no restart.
func neverOff(context.Context) error {
	return wrong("the machine was to be switched off for a change that needs no restart")
}

func editRename(ctx context.Context, t *Trial) error {
	editor, ok := t.Backend.(backends.Editor)
	if !ok {
		return skipped("the backend edits nothing")
	}
	w := t.Wish(0)
	w.Spec.Labels = t.labels(labelValue)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	to := w.Spec
	to.Name = t.Wish(1).Spec.Name
	to.Marks = made.Marks
	to.Marks.Key = reference.InstanceID(made.Marks.Pool, to.Name)
	for _, when := range []string{"renamed", "renamed once more"} {
		answered, err := editor.Edit(ctx, made, w.Spec, to, neverOff)
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		shown, err := t.get(ctx, made.ID)
		if err != nil {
			return err
		}
		for how, is := range map[string]backends.Machine{"as Edit answers": answered, "as a get shows it next": shown} {
			if is.ID != made.ID || is.Name != to.Name || is.Labels[labelName] != to.Labels[labelName] || is.State != backends.StateRunning {
				return wrong("%s, %s: the machine is %s %q, %s, with the labels %v", when, how, is.ID, is.Name, is.State, is.Labels)
			}
			if err := sameMarks(when+", "+how, is.Marks, to.Marks); err != nil {
				return err
			}
		}
	}
	for key, want := range map[string]int{to.Marks.Key: 1, w.Spec.Marks.Key: 0} {
		found, err := t.Backend.FindMachines(ctx, key)
		if err != nil {
			return err
		}
		if len(found) != want {
			return wrong("%d machines are found by the key %s, it must be %d", len(found), key, want)
		}
	}
	return nil
}

// labels are labels of a wish, nil where the cloud takes none.
func (t *Trial) labels(value string) map[string]string {
	labels := map[string]string{labelName: value}
	if !t.takes(labels) {
		return nil
	}
	return labels
}

// takes tells whether a machine can have labels.
func (t *Trial) takes(labels map[string]string) bool {
	w := t.Wish(0)
	w.Spec.Labels = labels
	return !slices.ContainsFunc(t.Backend.CheckForm(w.Spec), func(e *backends.Error) bool { return len(e.Path) > 0 && e.Path[0] == "labels" })
}

func editRelabel(ctx context.Context, t *Trial) error {
	editor, ok := t.Backend.(backends.Editor)
	if !ok {
		return skipped("the backend edits nothing")
	}
	const gone, theirs = "conformance-gone", "conformance-theirs"
	wish := func(labels map[string]string) backends.MachineSpec {
		spec := t.Wish(0).Spec
		spec.Labels = labels
		return spec
	}
	ours := map[string]string{labelName: labelValue, gone: labelValue}
	if !t.takes(ours) {
		return skipped("the backend takes no such labels")
	}
	w := t.Wish(0)
	w.Spec.Labels = ours
	m, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	marks := m.Marks
	for _, step := range []struct {
		from, to map[string]string
		want     map[string]string
	}{
		{
			map[string]string{}, map[string]string{theirs: labelValue},
			map[string]string{labelName: labelValue, gone: labelValue, theirs: labelValue},
		},
		{ours, map[string]string{labelName: "other"}, map[string]string{labelName: "other", theirs: labelValue}},
		{map[string]string{labelName: "other"}, nil, map[string]string{labelName: "other", theirs: labelValue}},
	} {
		to := wish(step.to)
		to.Marks = marks
		if m, err = editor.Edit(ctx, m, wish(step.from), to, neverOff); err != nil {
			return err
		}
		if m, err = t.get(ctx, m.ID); err != nil {
			return err
		}
		for _, name := range []string{labelName, gone, theirs} {
			if m.Labels[name] != step.want[name] {
				return wrong("from %v to %v: the label %s is %q, it must be %q", step.from, step.to, name, m.Labels[name], step.want[name])
			}
		}
		if err := sameMarks("relabelled", m.Marks, marks); err != nil {
			return err
		}
	}
	return nil
}

func editShown(ctx context.Context, t *Trial) error {
	editor, ok := t.Backend.(backends.Editor)
	if !ok {
		return skipped("the backend edits nothing")
	}
	w := t.Wish(0)
	w.Spec.Labels = t.labels(labelValue)
	m, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	other := w.Spec
	other.Name, other.Labels = t.Wish(1).Spec.Name, t.labels("other")
	differing := 1
	if other.Labels != nil {
		differing = 2
	}
	for to, want := range map[*backends.MachineSpec]int{&w.Spec: 0, &other: differing} {
		shown, err := editor.Shown(ctx, m, *to)
		if err != nil {
			return err
		}
		if effects := editor.PlanEdit(shown, *to); len(effects) != want {
			return wrong("%d inputs differ between what the machine is shown to be and the wish for %s with the labels %v, it must be %d: %v",
				len(effects), to.Name, to.Labels, want, effects)
		}
	}
	return nil
}

func resizeKeeps(ctx context.Context, t *Trial) error {
	resizer, ok := t.Backend.(backends.Resizer)
	if !ok {
		return skipped("the backend resizes nothing")
	}
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	offers, err := t.Backend.Offers(ctx, backends.OfferQuery{Kind: backends.KindVPS, Region: w.Spec.Region})
	if err != nil {
		return err
	}
	backends.SortOffers(offers)
	to := w.Spec
	for _, o := range offers {
		to.Offer = o.ID
		if o.ID == w.Spec.Offer || !o.Available {
			continue
		}
		_, issues, err := resizer.CheckResize(ctx, made, to, false)
		if err != nil {
			return err
		}
		if len(issues) == 0 {
			return t.resize(ctx, resizer, w, made, to)
		}
	}
	return skipped("the machine can become no other offer")
}

func (t *Trial) resize(ctx context.Context, resizer backends.Resizer, w reconcile.Wish, made backends.Machine,
	to backends.MachineSpec) error {
	change := reconcile.Change{Owned: owned(w, made), Spec: to}
	change.Resize, change.KeptDigest = true, w.Spec.Marks.Digest
	if _, err := t.Update(ctx, change); err != nil {
		return err
	}
	m, err := t.get(ctx, made.ID)
	switch {
	case err != nil:
		return err
	case m.Offer != to.Offer || m.Name != made.Name || m.State != backends.StateRunning:
		return wrong("the machine is %q, a %s, and %s; it must be %q, a %s, and run", m.Name, m.Offer, m.State, made.Name, to.Offer)
	}
	if err := sameMarks("resized", m.Marks, made.Marks); err != nil {
		return err
	}
	_, err = resizer.Resize(ctx, m, to, false, neverOff)
	return err
}
