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

func readCases() []Case {
	return []Case{
		{
			Name:  "get/follows",
			About: "Get follows a machine from its making until it runs: the same id, name and marks all the way.",
			Run:   getFollows,
		},
		{
			Name:  "get/missing",
			About: "Getting a machine that is gone fails with NOT_FOUND, also for an account that has never seen it.",
			Run:   getMissing,
		},
		{
			Name:  "find/absent",
			About: "Looking for a key that no machine carries finds nothing, beside a machine with another key, and is no error.",
			Run:   findAbsent,
		},
		{
			Name:  "list/filters",
			About: "A list of a pool has its machines, with their marks, and no other's; a list of the account has those of both pools; a list of another account has neither.",
			Needs: []Need{NeedList},
			Run:   listFilters,
		},
		{
			Name:  "list/phases",
			About: "A list of the machines being made has one until it is marked complete; a list of those being deleted has one that is, if it is still there, and none that isn't.",
			Needs: []Need{NeedList, NeedPhases},
			Run:   listPhases,
		},
		{
			Name:  "list/managed",
			About: "A machine whose marks were taken away is in no list, is not found by its key, and is not deleted.",
			Needs: []Need{NeedList},
			Run:   listManaged,
		},
	}
}

func getFollows(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Make(ctx, w.Spec)
	if err != nil {
		return err
	}
	look := func(marks backends.Marks) error {
		m, err := t.get(ctx, made.ID)
		if err != nil {
			return err
		}
		if m.Name != w.Spec.Name {
			return wrong("the machine's name is %q, it must be %q", m.Name, w.Spec.Name)
		}
		return sameMarks(fmt.Sprintf("while %s", m.State), m.Marks, marks)
	}
	if err := look(w.Spec.Marks); err != nil {
		return err
	}
	if _, err := t.Create(ctx, w); err != nil {
		return err
	}
	if err := look(completed(w.Spec.Marks)); err != nil {
		return err
	}
	account, err := t.Account()
	if err != nil {
		return err
	}
	m, err := account.Read(ctx, w.Spec.Marks.Pool, made.ID)
	switch {
	case err != nil:
		return fmt.Errorf("reading it as a refresh does: %w", err)
	case m.ID != made.ID || m.State != backends.StateRunning:
		return wrong("a refresh shows the machine %s in the state %s, not %s running", m.ID, m.State, made.ID)
	}
	return nil
}

func getMissing(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if _, err := t.Delete(ctx, owned(w, made)); err != nil {
		return err
	}
	if err := t.absent(ctx, made.ID); err != nil {
		return err
	}
	account, err := t.Account()
	if err != nil {
		return err
	}
	_, err = account.Read(ctx, w.Spec.Marks.Pool, made.ID)
	return wantCode("refreshing the deleted machine "+made.ID, err, backends.NotFound)
}

func findAbsent(ctx context.Context, t *Trial) error {
	other := t.Wish(1)
	made, err := t.Make(ctx, other.Spec)
	if err != nil {
		return err
	}
	return errors.Join(t.none(ctx, t.Wish(0).Spec.Marks.Key), t.only(ctx, other.Spec.Marks.Key, made.ID))
}

func listFilters(ctx context.Context, t *Trial) error {
	wishes := []reconcile.Wish{t.WishIn(t.Pool(0), 0), t.WishIn(t.Pool(1), 1)}
	made := make([]string, len(wishes))
	for i, w := range wishes {
		m, err := t.Create(ctx, w)
		if err != nil {
			return err
		}
		made[i] = m.ID
	}
	shelf := t.onMachines()
	if err := shelf.filters(ctx, t, made[0], made[1]); err != nil {
		return err
	}
	machines, err := shelf.listed(ctx, backends.Filter{Account: wishes[0].Spec.Marks.Account})
	if err != nil {
		return err
	}
	var problems []error
	for i, w := range wishes {
		problems = append(problems, sameMarks("in a list", machines[made[i]].Marks, completed(w.Spec.Marks)))
	}
	return errors.Join(problems...)
}

func listPhases(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	pool := w.Spec.Marks.Pool
	making, going := backends.Filter{Pool: pool, Phase: backends.PhaseMaking}, backends.Filter{Pool: pool, Phase: backends.PhaseGoing}
	made, err := t.Make(ctx, w.Spec)
	if err != nil {
		return err
	}
	has, hasNot := []string{made.ID}, []string{made.ID}
	if err := errors.Join(t.lists(ctx, making, has, nil), t.lists(ctx, going, nil, hasNot)); err != nil {
		return fmt.Errorf("while it is made: %w", err)
	}
	complete, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if err := errors.Join(t.lists(ctx, making, nil, hasNot), t.lists(ctx, going, nil, hasNot)); err != nil {
		return fmt.Errorf("once it is complete: %w", err)
	}
	if err := t.Backend.DeleteMachine(ctx, complete); err != nil {
		return fmt.Errorf("deleting it: %w", err)
	}
	m, err := t.Backend.GetMachine(ctx, complete.ID)
	if err != nil || m.State != backends.StateDeleting {
		return nil //nolint:nilerr // It is gone already, which no list can show.
	}
	found, err := backends.ListAll(ctx, lister(t.Backend), going)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(m backends.Machine) bool { return m.ID == complete.ID }) {
		return nil
	}
	if m, err = t.Backend.GetMachine(ctx, complete.ID); err == nil && m.State == backends.StateDeleting {
		return wrong("the machine %s is being deleted and is in no list of those", m.ID)
	}
	return nil
}

// lister is the method that lists; the case needs it.
func lister(b backends.Backend) func(context.Context, backends.Filter) (backends.Listing[backends.Machine], error) {
	l, ok := b.(backends.Lister)
	if !ok {
		return func(context.Context, backends.Filter) (backends.Listing[backends.Machine], error) {
			return backends.Listing[backends.Machine]{}, errors.New("this backend lists nothing")
		}
	}
	return l.ListMachines
}

func listManaged(ctx context.Context, t *Trial) error {
	w := t.Wish(0)
	made, err := t.Create(ctx, w)
	if err != nil {
		return err
	}
	if _, err := t.Backend.MarkMachine(ctx, made, backends.Marks{}); err != nil {
		return fmt.Errorf("taking the marks away: %w", err)
	}
	m, err := t.get(ctx, made.ID)
	if err != nil {
		return err
	}
	if err := sameMarks("without marks", m.Marks, backends.Marks{}); err != nil {
		return err
	}
	for _, filter := range []backends.Filter{{Pool: w.Spec.Marks.Pool}, {Account: w.Spec.Marks.Account}} {
		if err := t.lists(ctx, filter, nil, []string{made.ID}); err != nil {
			return err
		}
	}
	if err := t.none(ctx, w.Spec.Marks.Key); err != nil {
		return err
	}
	_, err = t.Delete(ctx, owned(w, made))
	if err := wantCode("deleting a machine without marks", err, backends.AccessDenied); err != nil {
		return err
	}
	if m, err = t.get(ctx, made.ID); err != nil {
		return err
	}
	return t.markAgain(ctx, m, made.Marks)
}

// markAgain gives a machine its marks back: a backend may refuse to clean up what
// carries none.
func (t *Trial) markAgain(ctx context.Context, m backends.Machine, marks backends.Marks) error {
	if _, err := t.Backend.MarkMachine(ctx, m, marks); err != nil {
		return fmt.Errorf("giving the marks back: %w", err)
	}
	return nil
}
