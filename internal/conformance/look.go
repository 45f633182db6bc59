// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// defaultListLag is [backends.Definition.ListLag]'s.
const defaultListLag = 10 * time.Second

// listPoll is the pause between two looks at a list that may lag, before scaling.
const listPoll = time.Second

// inTime runs a check of lists again until it passes or lists have had the time
// they may lag.
func (t *Trial) inTime(ctx context.Context, check func() error) error {
	lag := cmp.Or(t.Subject.Account.Definition().ListLag, defaultListLag)
	for end := time.Now().Add(backends.Scale(lag)); ; {
		err := check()
		if err == nil || !time.Now().Before(end) {
			return err
		}
		if ended := backends.Sleep(ctx, backends.Scale(listPoll)); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// get is the machine that must be there.
func (t *Trial) get(ctx context.Context, id string) (backends.Machine, error) {
	m, err := t.Backend.GetMachine(ctx, id)
	switch {
	case err != nil:
		return m, fmt.Errorf("getting the machine %s: %w", id, err)
	case m.ID != id:
		return m, wrong("getting the machine %s answered the machine %s", id, m.ID)
	}
	return m, nil
}

// absent is wrong unless getting the machine fails with NOT_FOUND.
func (t *Trial) absent(ctx context.Context, id string) error {
	_, err := t.Backend.GetMachine(ctx, id)
	return wantCode("getting the deleted machine "+id, err, backends.NotFound)
}

// only is wrong unless exactly one machine carries the key, and has the id.
func (t *Trial) only(ctx context.Context, key, id string) error {
	return t.inTime(ctx, func() error {
		found, err := t.Backend.FindMachines(ctx, key)
		if err != nil {
			return fmt.Errorf("finding machines by their key: %w", err)
		}
		for _, m := range found {
			if m.Marks.Key != key {
				return wrong("finding machines by the key %s found the machine %s with the key %q", key, m.ID, m.Marks.Key)
			}
			t.made(m.ID)
		}
		if len(found) != 1 || found[0].ID != id {
			return wrong("by its key there must be the machine %s alone; there are %s", id, ids(found))
		}
		return nil
	})
}

// none is wrong when a machine carries the key.
func (t *Trial) none(ctx context.Context, key string) error {
	return t.inTime(ctx, func() error {
		found, err := t.Backend.FindMachines(ctx, key)
		if err != nil {
			return fmt.Errorf("finding machines by their key: %w", err)
		}
		if len(found) > 0 {
			return wrong("by the key %s there must be no machine; there are %s", key, ids(found))
		}
		return nil
	})
}

func ids(machines []backends.Machine) string {
	if len(machines) == 0 {
		return "none"
	}
	out := make([]string, len(machines))
	for i, m := range machines {
		out[i] = m.ID
	}
	return strings.Join(out, ", ")
}

// sameMarks is wrong where marks aren't the wanted ones, naming each.
func sameMarks(what string, got, want backends.Marks) error {
	var problems []error
	differs := func(name string, got, want any) {
		if got != want {
			problems = append(problems, wrong("%s: the mark %s is %q, it must be %q", what, name, fmt.Sprint(got), fmt.Sprint(want)))
		}
	}
	differs("managed", got.Managed, want.Managed)
	differs("key", got.Key, want.Key)
	differs("account", got.Account, want.Account)
	differs("pool", got.Pool, want.Pool)
	differs("digest", got.Digest, want.Digest)
	differs("claim", got.Claim, want.Claim)
	differs("complete", got.Complete, want.Complete)
	return errors.Join(problems...)
}

// completed are the marks of a wish that was granted.
func completed(marks backends.Marks) backends.Marks {
	marks.Complete = true
	return marks
}
