// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
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

// onMachines is the shelf of machines.
func (t *Trial) onMachines() *shelf[backends.Machine] {
	s := machineShelf(t.Subject, t.Backend)
	s.found = t.machines.made
	return s
}

// These are the shelf's sentences about machines.

func (t *Trial) get(ctx context.Context, id string) (backends.Machine, error) {
	return t.onMachines().get(ctx, id)
}

func (t *Trial) absent(ctx context.Context, id string) error { return t.onMachines().absent(ctx, id) }

func (t *Trial) only(ctx context.Context, key, id string) error {
	return t.onMachines().only(ctx, key, id)
}

func (t *Trial) none(ctx context.Context, key string) error { return t.onMachines().none(ctx, key) }

func (t *Trial) lists(ctx context.Context, filter backends.Filter, with, without []string) error {
	return t.onMachines().lists(ctx, filter, with, without)
}

// differing collects what isn't as it must be.
type differing struct {
	noun     string
	problems []error
}

func (d *differing) same(what string, got, want any) {
	if got != want {
		d.add("the %s's %s is %q, it must be %q", d.noun, what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

func (d *differing) add(format string, args ...any) {
	d.problems = append(d.problems, wrong(format, args...))
}

func (d *differing) err() error { return errors.Join(d.problems...) }

// leastShown is how many characters of an id [backends.Marks.Fixed] marks must show,
// prefix included: fewer would not tell two pools apart.
const leastShown = 12

// asShown are marks as an object shows them that was given want: the same, unless
// they are in its name, which cuts them short. Then Complete follows the state and is
// for the caller to look at.
func asShown(got, want backends.Marks) backends.Marks {
	if !got.Fixed {
		return want
	}
	cut := func(got, want string) string {
		if len(got) >= leastShown && strings.HasPrefix(want, got) {
			return got
		}
		return want
	}
	want.Fixed = true
	want.Account, want.Pool = cut(got.Account, want.Account), cut(got.Pool, want.Pool)
	want.Claim = want.Claim[:min(len(want.Claim), backends.FixedClaimLength)]
	want.Complete = got.Complete
	// A name has no room for what isn't needed to find the object.
	want.Volume = got.Volume
	return want
}

// sameMarks is wrong where marks aren't the wanted ones, naming each.
func sameMarks(what string, got, want backends.Marks) error {
	want = asShown(got, want)
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
	differs("goes with machine", got.GoesWithMachine, want.GoesWithMachine)
	differs("volume", got.Volume, want.Volume)
	return errors.Join(problems...)
}

// completed are the marks of a wish that was granted.
func completed(marks backends.Marks) backends.Marks {
	marks.Complete = true
	return marks
}
