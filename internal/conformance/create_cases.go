// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
)

func createCases() []Case {
	return []Case{
		{
			Name:  "create/makes",
			About: "Create makes one machine that runs, of the name, offer and region asked for, with all its marks.",
			Run:   createMakes,
		},
		{
			Name:  "create/marks-at-birth",
			About: "MakeMachine sends every mark but the completion in the call that makes the machine, and returns before it runs or after.",
			Run:   marksAtBirth,
		},
		{
			Name:  "create/retry",
			About: "Create with the same key and claim is a retry: another process gets the same machine.",
			Run:   createRetry,
		},
		{
			Name:  "create/concurrent",
			About: "Creates with the same key and claim at the same time make one machine.",
			Run:   createConcurrent,
		},
		{
			Name:  "create/resumed",
			About: "A create that was killed right after its making call is finished by the next one.",
			Run:   createResumed,
		},
		{
			Name:  "create/name-taken",
			About: "A name that another machine holds is a NameTaken that names its holder, unless the cloud lets two machines share it; the holder is untouched either way.",
			Run:   nameTaken,
		},
		{
			Name:  "create/unknown-offer",
			About: "MakeMachine with an offer that doesn't exist fails, not ambiguously, and makes nothing.",
			Run:   makeUnknownOffer,
		},
	}
}

func createMakes(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	m, err := t.get(ctx, made.ID)
	if err != nil {
		return err
	}
	var problems []error
	same := func(what, got, want string) {
		if got != want {
			problems = append(problems, wrong("the machine's %s is %q, it must be %q", what, got, want))
		}
	}
	same("name", m.Name, w.Spec.Name)
	same("offer", m.Offer, w.Spec.Offer)
	same("region", m.Region, w.Spec.Region)
	same("state", string(m.State), string(backends.StateRunning))
	if m.Created.IsZero() {
		problems = append(problems, wrong("the machine has no time of creation"))
	}
	problems = append(problems, sameMarks("after create", m.Marks, completed(w.Spec.Marks)), t.only(ctx, w.Spec.Marks.Key, made.ID))
	return errors.Join(problems...)
}

func marksAtBirth(ctx context.Context, t *Trial) error {
	spec := t.Wish(0).Spec
	made, err := t.Make(ctx, spec)
	if err != nil {
		return err
	}
	m, err := t.get(ctx, made.ID)
	if err != nil {
		return err
	}
	return errors.Join(
		sameMarks("as MakeMachine answers", made.Marks, spec.Marks),
		sameMarks("as a get shows it next", m.Marks, spec.Marks),
		t.only(ctx, spec.Marks.Key, made.ID),
	)
}

func createRetry(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	first, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	again, err := t.Create(ctx, w)
	if err != nil {
		return fmt.Errorf("the retry: %w", err)
	}
	if again.ID != first.ID {
		return wrong("the retry answered the machine %s, not %s", again.ID, first.ID)
	}
	return t.only(ctx, w.Spec.Marks.Key, first.ID)
}

func createConcurrent(ctx context.Context, t *Trial) error {
	const creates = 3
	account, err := t.Account()
	if err != nil {
		return err
	}
	w := t.Wish(0)
	made := make([]backends.Machine, creates)
	var group errgroup.Group // not one that cancels: what began is to end
	for i := range creates {
		group.Go(func() (err error) {
			made[i], err = t.createIn(ctx, account, w)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if slices.ContainsFunc(made, func(m backends.Machine) bool { return m.ID != made[0].ID }) {
		return wrong("creates at the same time answered the machines %s", ids(made))
	}
	return t.only(ctx, w.Spec.Marks.Key, made[0].ID)
}

func createResumed(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Make(ctx, w.Spec)
	if err != nil {
		return err
	}
	m, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if m.ID != made.ID {
		return wrong("the next create answered the machine %s, not the half-made %s", m.ID, made.ID)
	}
	return errors.Join(sameMarks("once finished", m.Marks, completed(w.Spec.Marks)), t.only(ctx, w.Spec.Marks.Key, made.ID))
}

func nameTaken(ctx context.Context, t *Trial) error {
	holder := t.Wish(0)
	first, err := t.Create(ctx, holder)
	if err != nil {
		return err
	}
	other := t.WishIn(t.Pool(1), 0).Spec // the same name, another key
	second, err := t.Make(ctx, other)
	var taken *backends.NameTaken
	switch {
	case errors.As(err, &taken):
		if taken.Holder.ID != first.ID || taken.Holder.Marks.Key != holder.Spec.Marks.Key {
			return wrong("the NameTaken names the machine %s with the key %q; the holder is %s", taken.Holder.ID, taken.Holder.Marks.Key, first.ID)
		}
	case err != nil:
		return wrong("a taken name must be a NameTaken; it is: %w", err)
	case second.ID == first.ID:
		return wrong("making a machine with another key answered the holder of the name")
	}
	m, err := t.get(ctx, first.ID)
	return errors.Join(err, sameMarks("the holder afterwards", m.Marks, completed(holder.Spec.Marks)))
}

func makeUnknownOffer(ctx context.Context, t *Trial) error {
	spec := t.Wish(0).Spec
	spec.Offer = "no-such-offer"
	_, err := t.Make(ctx, spec)
	e := backends.AsError(err)
	switch {
	case err == nil:
		return wrong("an unknown offer made a machine")
	case e == nil:
		return wrong("the failure is no backends.Error: %w", err)
	case e.Ambiguous:
		return wrong("the failure is ambiguous, although nothing can have been made: %w", err)
	}
	return t.none(ctx, spec.Marks.Key)
}

func takeOverCases() []Case {
	return []Case{
		{
			Name:  "create/conflict",
			About: "Create with a claim of its own, where a complete machine has the key, is a CONFLICT that names the machine and leaves it as it is.",
			Run:   createConflict,
		},
		{
			Name:  "create/adopt",
			About: "With adopt it takes that machine over: the same machine, with the new claim.",
			Run:   createAdopt,
		},
		{
			Name:  "create/adopt-differs",
			About: "With adopt it doesn't take over a machine that was made from something else, and says what differs.",
			Run:   adoptDiffers,
		},
	}
}

func createConflict(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	first, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	_, err = t.Create(ctx, t.Wish(0))
	if err := exists(err, first.ID); err != nil {
		return err
	}
	m, err := t.get(ctx, first.ID)
	return errors.Join(err, sameMarks("the machine after the conflict", m.Marks, completed(w.Spec.Marks)),
		t.only(ctx, w.Spec.Marks.Key, first.ID))
}

// exists is wrong unless err is the CONFLICT that names the object.
func exists(err error, id string) error {
	if err := wantCode("a create with another claim", err, backends.Conflict); err != nil {
		return err
	}
	var there *reconcile.ExistsError
	switch {
	case !errors.As(err, &there):
		return wrong("the CONFLICT doesn't say what exists: %w", err)
	case there.Object.ID != id:
		return wrong("the CONFLICT names %s, not %s", there.Object.ID, id)
	}
	return nil
}

func createAdopt(ctx context.Context, t *Trial) error {
	first, err := t.Create(ctx, t.Wish(0))
	if err != nil {
		return err
	}
	w := t.Wish(0)
	w.Pool.Adopt = true
	adopted, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if adopted.ID != first.ID {
		return wrong("adopting answered the machine %s, not %s", adopted.ID, first.ID)
	}
	m, err := t.get(ctx, first.ID)
	return errors.Join(err, sameMarks("once adopted", m.Marks, completed(w.Spec.Marks)),
		t.only(ctx, w.Spec.Marks.Key, first.ID))
}

func adoptDiffers(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	first, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	other := t.Wish(0)
	other.Pool.Adopt = true
	other.Spec.Marks.Digest = backends.Digest(other.Spec.Marks.Key, map[backends.DigestField]string{
		backends.DigestOffer: t.Offer, backends.DigestImage: "another-image", backends.DigestRegion: t.region(),
	})
	_, err = t.Create(ctx, other)
	if err := exists(err, first.ID); err != nil {
		return err
	}
	var there *reconcile.ExistsError
	if errors.As(err, &there) && !slices.Equal(there.Differs, []backends.DigestField{backends.DigestImage}) {
		return wrong("the machine differs in its image; the CONFLICT says: %w", err)
	}
	m, err := t.get(ctx, first.ID)
	return errors.Join(err, sameMarks("the machine afterwards", m.Marks, completed(w.Spec.Marks)))
}
