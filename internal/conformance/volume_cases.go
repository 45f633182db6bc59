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

// diskCases are the sentences that hold for a kind of volumes, be it block or shared.
func diskCases(d disks) []Case {
	sentence := func(what, about string, run func(context.Context, *Trial, disks) error) Case {
		return Case{
			Name: d.name + "/" + what, About: about, Needs: d.needs,
			Run: func(ctx context.Context, t *Trial) error { return run(ctx, t, d) },
		}
	}
	return []Case{
		sentence("check", "CheckForm and Check accept the subject's volume, and pass over what a plan doesn't know yet.", volumeCheck),
		sentence("size", "CheckForm refuses a size that the cloud doesn't make: INVALID_INPUT at size_gib with the reason size.", volumeSize),
		sentence("makes", "Create makes one volume that is ready, of the name, region, size and network asked for, with all its marks; one that can be mounted says how.", volumeMakes),
		sentence("marks-at-birth", "Make sends every mark but the completion in the call that makes the volume.", volumeMarksAtBirth),
		sentence("retry", "Create with the same key and claim is a retry: another process gets the same volume.", volumeRetry),
		sentence("concurrent", "Creates with the same key and claim at the same time make one volume.", volumeConcurrent),
		sentence("resumed", "A create that was killed right after its making call is finished by the next one.", volumeResumed),
		sentence("name-taken", "A name that another volume holds is a NameTaken that names its holder, unless the cloud lets two volumes share it; the holder is untouched either way.", volumeNameTaken),
		sentence("conflict", "Create with a claim of its own, where a complete volume has the key, is a CONFLICT that names the volume and leaves it as it is.", volumeConflict),
		sentence("adopt", "With adopt it takes that volume over: the same volume, with the new claim, or the one that is in its name for good.", volumeAdopt),
		sentence("adopt-differs", "With adopt it doesn't take over a volume that was made from something else, and says what differs.", volumeAdoptDiffers),
		sentence("lists", "A list of a pool has its volumes, with their marks, and no other's; a list of the account has those of both pools; a list of another account has neither.", volumeLists),
		sentence("named", "Looking for the volumes of a name in the cloud finds that one, and nothing by a name that nobody gave.", volumeNamed),
		sentence("resize", "A volume is grown in place and keeps its id and marks; growing it to the size that it has is accepted.", volumeResize),
		sentence("delete", "Delete removes the volume, for get, look-ups by its key and lists; again it fails only with NOT_FOUND at the backend and succeeds above it; then the same name and key make a new volume.", volumeDelete),
		sentence("missing", "A volume that was deleted behind our back is NOT_FOUND, also for a refresh, and its deletion is a success.", volumeMissing),
		sentence("claim", "A volume that someone else claimed is not changed (CONFLICT) and not deleted (done, left alone).", volumeClaim),
	}
}

func volumeCheck(ctx context.Context, t *Trial, d disks) error {
	store, spec := t.store(d), t.volumeWish(d, 0).Spec
	var problems []error
	found := func(what string, issues []*backends.Error) {
		for _, issue := range issues {
			problems = append(problems, wrong("with %s it found: %w", what, issue))
		}
	}
	found("the subject's volume", store.CheckForm(spec))
	issues, err := store.Check(ctx, spec)
	found("the subject's volume and the catalog", issues)
	unknown := backends.VolumeSpec{
		Kind: d.kind, Marks: spec.Marks,
		Unknown: []string{"name", "region", "size_gib", "filesystem", "network_id", "labels", "description"},
	}
	found("nothing known", store.CheckForm(unknown))
	issues, unknownErr := store.Check(ctx, unknown)
	found("nothing known but the catalog", issues)
	return errors.Join(append(problems, err, unknownErr)...)
}

func volumeSize(_ context.Context, t *Trial, d disks) error {
	spec := t.volumeWish(d, 0).Spec
	for _, size := range []int64{0, -1} {
		spec.SizeGiB = size
		issues := t.store(d).CheckForm(spec)
		i := slices.IndexFunc(issues, func(e *backends.Error) bool { return e.Path.String() == "size_gib" })
		switch {
		case i < 0:
			return wrong("no issue of a volume of %d GiB points at size_gib", size)
		case issues[i].Code != backends.InvalidInput || issues[i].Reason != backends.ReasonSize:
			return wrong("the issue of a volume of %d GiB must be INVALID_INPUT with the reason size; it has the reason %q: %w", size, issues[i].Reason, issues[i])
		case len(issues) > 1:
			return wrong("only the size is wrong, and there are %d issues", len(issues))
		}
	}
	return nil
}

func volumeMakes(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	made, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	v, err := t.onVolumes(d).get(ctx, made.ID)
	if err != nil {
		return err
	}
	is := &differing{noun: d.noun}
	if !v.Marks.Fixed { // else the name holds the marks
		is.same("name", v.Name, w.Spec.Name)
	}
	is.same("kind", v.Kind, d.kind)
	is.same("state", v.State, backends.StateReady)
	is.same("size", v.SizeGiB, w.Spec.SizeGiB)
	is.same("region", v.Region, w.Spec.Region)
	is.same("network", v.Network, w.Spec.Network)
	is.same("number of machines", len(v.Machines), 0)
	if v.Created.IsZero() {
		is.add("the volume has no time of creation")
	}
	if d.kind == backends.SharedVolume && (v.Mount == nil || v.Mount.Source == "" || v.Mount.Type == "") {
		is.add("the ready shared volume doesn't say how it is mounted")
	}
	if d.kind == backends.BlockVolume && v.Mount != nil {
		is.add("a block volume isn't mounted by a network source: %s", v.Mount.Source)
	}
	if !v.Marks.Complete {
		is.add("the ready volume isn't complete")
	}
	return errors.Join(is.err(), sameMarks("after create", v.Marks, completed(w.Spec.Marks)), t.onVolumes(d).only(ctx, w.Spec.Marks.Key, made.ID))
}

func volumeMarksAtBirth(ctx context.Context, t *Trial, d disks) error {
	spec := t.volumeWish(d, 0).Spec
	made, err := t.makeVolume(ctx, d, spec)
	if err != nil {
		return err
	}
	shelf := t.onVolumes(d)
	v, err := shelf.get(ctx, made.ID)
	if err != nil {
		return err
	}
	return errors.Join(
		sameMarks("as Make answers", made.Marks, spec.Marks),
		sameMarks("as a get shows it next", v.Marks, spec.Marks),
		shelf.only(ctx, spec.Marks.Key, made.ID),
	)
}

func volumeNameTaken(ctx context.Context, t *Trial, d disks) error {
	holder := t.volumeWish(d, 0)
	first, err := t.createVolume(ctx, d, holder)
	if err != nil {
		return err
	}
	second, err := t.makeVolume(ctx, d, t.volumeWishIn(t.Pool(1), d, 0).Spec) // the same name, another key
	if err := nameIsTaken(err, first.About(), second.ID); err != nil {
		return err
	}
	v, err := t.onVolumes(d).get(ctx, first.ID)
	return errors.Join(err, sameMarks("the holder afterwards", v.Marks, completed(holder.Spec.Marks)))
}

// nameIsTaken is wrong unless making something of a taken name failed with a
// NameTaken that names the holder, or made something else.
func nameIsTaken(err error, holder backends.About, made string) error {
	var taken *backends.NameTaken
	switch {
	case errors.As(err, &taken):
		if taken.Holder.ID != holder.ID || taken.Holder.Marks.Key != holder.Marks.Key {
			return wrong("the NameTaken names %s with the key %q; the holder is %s", taken.Holder.ID, taken.Holder.Marks.Key, holder.ID)
		}
	case err != nil:
		return wrong("a taken name must be a NameTaken; it is: %w", err)
	case made == holder.ID:
		return wrong("making a %s with another key answered the holder of the name", holder.Noun)
	}
	return nil
}

func volumeLists(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	first, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	second, err := t.createVolume(ctx, d, t.volumeWishIn(t.Pool(1), d, 1))
	if err != nil {
		return err
	}
	shelf := t.onVolumes(d)
	if err := shelf.filters(ctx, t, first.ID, second.ID); err != nil {
		return err
	}
	listed, err := shelf.listed(ctx, backends.Filter{Pool: w.Spec.Marks.Pool})
	if err != nil {
		return err
	}
	v := listed[first.ID]
	is := &differing{noun: "listed " + d.noun}
	is.same("kind", v.Kind, d.kind)
	is.same("state", v.State, backends.StateReady)
	is.same("size", v.SizeGiB, w.Spec.SizeGiB)
	is.same("network", v.Network, w.Spec.Network)
	return errors.Join(is.err(), sameMarks("in a list", v.Marks, completed(w.Spec.Marks)))
}

func volumeNamed(ctx context.Context, t *Trial, d disks) error {
	w := t.volumeWish(d, 0)
	made, err := t.createVolume(ctx, d, w)
	if err != nil {
		return err
	}
	named := func(name string) (ids []string, err error) {
		found, err := t.store(d).Named(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("looking for the name %q: %w", name, err)
		}
		for _, v := range found {
			if v.Name != name {
				return nil, wrong("looking for the name %q found the volume %s, whose name is %q", name, v.ID, v.Name)
			}
			ids = append(ids, v.ID)
		}
		return ids, nil
	}
	err = t.onVolumes(d).inTime(ctx, func() error {
		found, err := named(made.Name)
		if err == nil && !slices.Contains(found, made.ID) {
			err = wrong("looking for the name %q doesn't find the volume %s", made.Name, made.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	found, err := named(t.shortName(1))
	if err == nil && len(found) > 0 {
		err = wrong("a name that nobody gave finds %d volumes", len(found))
	}
	return err
}
