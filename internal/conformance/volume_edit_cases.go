// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// volumeEditCases are the sentences about what is changed at a volume that exists. The
// abilities are those of the store, so that each case finds out by itself whether there
// is anything to hold.
func volumeEditCases() []Case {
	return []Case{
		{
			Name: "volume/rename",
			About: "Rename gives a volume another name and other marks, answers it as the cloud then shows it, keeps labels, and can be called again; " +
				"a name that another volume has is a NameTaken, and changes nothing.",
			Needs: blockDisks.needs,
			Run:   volumeRename,
		},
		{
			Name:  "volume/relabel",
			About: "Relabel takes off what the earlier wish put on and the new one doesn't ask for, puts on what that asks for, and keeps all else; nil labels are left as they are.",
			Needs: blockDisks.needs,
			Run:   volumeRelabel,
		},
		{
			Name:  "volume/protect",
			About: "Protect switches deletion protection, which the volume shows and writing marks keeps, and can be called again; a protected volume isn't deleted.",
			Needs: blockDisks.needs,
			Run:   volumeProtect,
		},
	}
}

func volumeRename(ctx context.Context, t *Trial) error {
	renamer, ok := t.blocks().(backends.VolumeRenamer)
	if !ok {
		return skipped("the backend renames no volumes")
	}
	w := t.volumeWish(blockDisks, 0)
	labelled := len(labelIssues(t, map[string]string{labelName: labelValue})) == 0
	if labelled {
		w.Spec.Labels = map[string]string{labelName: labelValue}
	}
	v, err := t.createVolume(ctx, blockDisks, w)
	if err != nil {
		return err
	}
	other, err := t.createVolume(ctx, blockDisks, t.volumeWish(blockDisks, 1))
	if err != nil {
		return err
	}
	marks, name := v.Marks, t.shortName(2)
	marks.Key = reference.VolumeID(marks.Pool, name)
	shelf := t.onVolumes(blockDisks)
	for _, when := range []string{"renamed", "renamed once more"} {
		answered, err := renamer.Rename(ctx, v, name, marks)
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		shown, err := shelf.get(ctx, v.ID)
		if err != nil {
			return err
		}
		for how, is := range map[string]backends.Volume{"as Rename answers": answered, "as a get shows it next": shown} {
			if is.ID != v.ID || is.Name != name || labelled && is.Labels[labelName] != labelValue {
				return wrong("%s, %s: the volume is %s %q with the labels %v", when, how, is.ID, is.Name, is.Labels)
			}
			if err := sameMarks(when+", "+how, is.Marks, marks); err != nil {
				return err
			}
		}
		v = shown
	}
	_, err = renamer.Rename(ctx, v, other.Name, v.Marks)
	if taken, ok := errors.AsType[*backends.NameTaken](err); ok && taken.Holder.ID != other.ID {
		return wrong("the name is said to be taken by %s, and is by %s", taken.Holder.ID, other.ID)
	} else if !ok && err != nil {
		return wrong("a name that is taken: %v, it must be a NameTaken", err)
	}
	shown, getErr := shelf.get(ctx, v.ID)
	if getErr == nil && err != nil && shown.Name != name {
		getErr = wrong("a rename that was refused made the name %q", shown.Name)
	}
	return getErr
}

// labelIssues are what the backend has against labels.
func labelIssues(t *Trial, labels map[string]string) []*backends.Error {
	w := t.volumeWish(blockDisks, 0)
	w.Spec.Labels = labels
	return slices.DeleteFunc(t.blocks().CheckForm(w.Spec), func(e *backends.Error) bool { return len(e.Path) == 0 || e.Path[0] != "labels" })
}

func volumeRelabel(ctx context.Context, t *Trial) error {
	labeler, ok := t.blocks().(backends.VolumeLabeler)
	if !ok {
		return skipped("the backend changes no labels of volumes")
	}
	w := t.volumeWish(blockDisks, 0)
	w.Spec.Labels = map[string]string{"conformance-stays": "s", "conformance-goes": "g", "conformance-turns": "t"}
	v, err := t.createVolume(ctx, blockDisks, w)
	if err != nil {
		return err
	}
	shelf := t.onVolumes(blockDisks)
	from := map[string]string{"conformance-goes": "g", "conformance-turns": "t"} // the third is another's
	to := map[string]string{"conformance-turns": "u", "conformance-comes": ""}
	want := map[string]string{"conformance-stays": "s", "conformance-turns": "u", "conformance-comes": ""}
	for _, step := range []struct {
		when     string
		from, to map[string]string
		want     map[string]string
	}{
		{"relabelled", from, to, want},
		{"relabelled once more", from, to, want},
		{"nothing said of labels", to, nil, want},
		{"no labels asked for", to, map[string]string{}, map[string]string{"conformance-stays": "s"}},
	} {
		answered, err := labeler.Relabel(ctx, v, backends.VolumeSpec{Labels: step.from}, backends.VolumeSpec{Labels: step.to})
		if err != nil {
			return fmt.Errorf("%s: %w", step.when, err)
		}
		if v, err = shelf.get(ctx, v.ID); err != nil {
			return err
		}
		for how, is := range map[string]backends.Volume{"as Relabel answers": answered, "as a get shows it next": v} {
			if !maps.Equal(is.Labels, step.want) {
				return wrong("%s, %s: the labels are %v, they must be %v", step.when, how, is.Labels, step.want)
			}
			if err := sameMarks(step.when+", "+how, is.Marks, completed(w.Spec.Marks)); err != nil {
				return err
			}
		}
	}
	return nil
}

func volumeProtect(ctx context.Context, t *Trial) error {
	protector, ok := t.blocks().(backends.VolumeProtector)
	if !ok {
		return skipped("the backend protects no volumes")
	}
	w := t.volumeWish(blockDisks, 0)
	v, err := t.createVolume(ctx, blockDisks, w)
	if err != nil {
		return err
	}
	shelf := t.onVolumes(blockDisks)
	protect := func(when string, on bool) error {
		if err := protector.Protect(ctx, v, on); err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		if v, err = shelf.get(ctx, v.ID); err == nil && v.Protected != on {
			err = wrong("%s, the volume shows protection %t", when, v.Protected)
		}
		return err
	}
	if err := errors.Join(protect("protected", true), protect("protected once more", true)); err != nil {
		return err
	}
	marks := v.Marks
	marks.Claim = t.Claim()
	if _, err := t.blocks().Mark(ctx, v, marks); err != nil {
		return err
	}
	if v, err = shelf.get(ctx, v.ID); err != nil {
		return err
	}
	if !v.Protected {
		return wrong("writing marks has lifted the protection")
	}
	if err := t.blocks().Delete(ctx, v); err == nil {
		return wrong("a protected volume was deleted")
	}
	return errors.Join(protect("lifted", false), protect("lifted once more", false))
}
