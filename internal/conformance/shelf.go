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

// shelf is all objects of one kind, as the cases look at them: the sentences about
// what must and must not be there are the same for every kind.
type shelf[T backends.Object] struct {
	noun string // as messages name one of them
	byID func(ctx context.Context, id string) (T, error)
	// byKey are the objects that carry an idempotency key.
	byKey func(ctx context.Context, key string) ([]T, error)
	list  func(ctx context.Context, filter backends.Filter) ([]T, error) // nil: there are no lists
	// lag is how long lists may lag.
	lag time.Duration
	// found is told the id of what a look by key finds, for cleaning up.
	found func(id string)
}

// inTime runs a check of lists again until it passes or lists have had the time
// they may lag.
func (s *shelf[T]) inTime(ctx context.Context, check func() error) error {
	for end := time.Now().Add(s.lag); ; {
		err := check()
		if err == nil || !time.Now().Before(end) {
			return err
		}
		if ended := backends.Sleep(ctx, backends.Scale(listPoll)); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// get is the object that must be there.
func (s *shelf[T]) get(ctx context.Context, id string) (T, error) {
	o, err := s.byID(ctx, id)
	switch {
	case err != nil:
		return o, fmt.Errorf("getting the %s %s: %w", s.noun, id, err)
	case o.About().ID != id:
		return o, wrong("getting the %s %s answered the %s %s", s.noun, id, s.noun, o.About().ID)
	}
	return o, nil
}

// absent is wrong unless getting the object fails with NOT_FOUND.
func (s *shelf[T]) absent(ctx context.Context, id string) error {
	_, err := s.byID(ctx, id)
	return wantCode(fmt.Sprintf("getting the deleted %s %s", s.noun, id), err, backends.NotFound)
}

// goneTime is what an object gets to go that the backend was told to delete, before
// scaling.
const goneTime = 2 * time.Minute

// goes is wrong unless getting the object fails with NOT_FOUND soon: the backend was
// told to delete it, and may have returned before it is gone.
func (s *shelf[T]) goes(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, backends.Scale(goneTime))
	defer cancel()
	for {
		err := s.absent(ctx, id)
		if err == nil {
			return nil
		}
		if backends.Sleep(ctx, backends.Scale(listPoll)) != nil {
			return err
		}
	}
}

// only is wrong unless exactly one object carries the key, and has the id.
func (s *shelf[T]) only(ctx context.Context, key, id string) error {
	return s.inTime(ctx, func() error {
		found, err := s.byKey(ctx, key)
		if err != nil {
			return fmt.Errorf("finding %ss by their key: %w", s.noun, err)
		}
		for _, o := range found {
			a := o.About()
			if a.Marks.Key != key {
				return wrong("finding %ss by the key %s found the %s %s with the key %q", s.noun, key, s.noun, a.ID, a.Marks.Key)
			}
			s.found(a.ID)
		}
		if len(found) != 1 || found[0].About().ID != id {
			return wrong("by its key there must be the %s %s alone; there are %s", s.noun, id, ids(found))
		}
		return nil
	})
}

// none is wrong when an object carries the key.
func (s *shelf[T]) none(ctx context.Context, key string) error {
	return s.inTime(ctx, func() error {
		found, err := s.byKey(ctx, key)
		if err != nil {
			return fmt.Errorf("finding %ss by their key: %w", s.noun, err)
		}
		if len(found) > 0 {
			return wrong("by the key %s there must be no %s; there are %s", key, s.noun, ids(found))
		}
		return nil
	})
}

// listed are the objects of a list, by id; one that doesn't fit the filter is wrong.
func (s *shelf[T]) listed(ctx context.Context, filter backends.Filter) (map[string]T, error) {
	if s.list == nil {
		return nil, skipped("the backend can't list")
	}
	objects, err := s.list(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	out := map[string]T{}
	for _, o := range objects {
		a := o.About()
		_, twice := out[a.ID]
		switch {
		case twice:
			return nil, wrong("a list has the %s %s twice", s.noun, a.ID)
		case !a.Marks.Managed:
			return nil, wrong("a list has the %s %s, which is not managed", s.noun, a.ID)
		case !filter.Holds(a.Marks):
			return nil, wrong("a list by %+v has the %s %s of account %s and pool %s", filter, s.noun, a.ID, a.Marks.Account, a.Marks.Pool)
		}
		out[a.ID] = o
	}
	return out, nil
}

// lists is wrong unless a list has the objects with those ids, and has none of the
// others.
func (s *shelf[T]) lists(ctx context.Context, filter backends.Filter, with, without []string) error {
	return s.inTime(ctx, func() error {
		objects, err := s.listed(ctx, filter)
		if err != nil {
			return err
		}
		for _, id := range with {
			if _, ok := objects[id]; !ok {
				return wrong("a list by %+v lacks the %s %s", filter, s.noun, id)
			}
		}
		for _, id := range without {
			if _, ok := objects[id]; ok {
				return wrong("a list by %+v has the %s %s", filter, s.noun, id)
			}
		}
		return nil
	})
}

// filters is wrong unless lists tell the object of the case's first pool, and the
// one of its second, from each other and from another account's.
func (s *shelf[T]) filters(ctx context.Context, t *Trial, first, second string) error {
	here, there := t.Pool(0), t.Pool(1)
	account, other := here.AccountID(), t.otherAccount()
	both := []string{first, second}
	for _, look := range []struct {
		filter        backends.Filter
		with, without []string
	}{
		{backends.Filter{Pool: here.PoolID()}, both[:1], both[1:]},
		{backends.Filter{Pool: there.PoolID()}, both[1:], both[:1]},
		{backends.Filter{Account: account}, both, nil},
		{backends.Filter{Account: account, Pool: here.PoolID()}, both[:1], both[1:]},
		{backends.Filter{Account: other}, nil, both},
		{backends.Filter{Account: other, Pool: here.PoolID()}, nil, both},
	} {
		if err := s.lists(ctx, look.filter, look.with, look.without); err != nil {
			return err
		}
	}
	return nil
}

func ids[T backends.Object](objects []T) string {
	if len(objects) == 0 {
		return "none"
	}
	out := make([]string, len(objects))
	for i, o := range objects {
		out[i] = o.About().ID
	}
	return strings.Join(out, ", ")
}

// listing reads whole lists.
func listing[T backends.Object](list func(context.Context, backends.Filter) (backends.Listing[T], error)) (
	whole func(context.Context, backends.Filter) ([]T, error)) {
	return func(ctx context.Context, f backends.Filter) ([]T, error) { return backends.ListAll(ctx, list, f) }
}

// withKey are a list's objects that carry a key.
func withKey[T backends.Object](ctx context.Context, list func(context.Context, backends.Filter) ([]T, error),
	account, key string) ([]T, error) {
	objects, err := list(ctx, backends.Filter{Account: account})
	var out []T
	for _, o := range objects {
		if o.About().Marks.Key == key {
			out = append(out, o)
		}
	}
	return out, err
}

// machineShelf, volumeShelf and snapshotShelf are the shelves of a backend.
func machineShelf(s *Subject, b backends.Backend) *shelf[backends.Machine] {
	out := &shelf[backends.Machine]{noun: "machine", byID: b.GetMachine, byKey: b.FindMachines, lag: s.listLag(), found: func(string) {}}
	if l, ok := b.(backends.Lister); ok {
		out.list = listing(l.ListMachines)
	}
	return out
}

func volumeShelf(s *Subject, store backends.VolumeStore, noun string) *shelf[backends.Volume] {
	return &shelf[backends.Volume]{
		noun: noun, byID: store.Get, list: listing(store.List), lag: s.listLag(), found: func(string) {},
		byKey: func(ctx context.Context, key string) ([]backends.Volume, error) {
			return withKey(ctx, listing(store.List), s.Account.AccountID(), key)
		},
	}
}

func snapshotShelf(s *Subject, store backends.Snapshots, noun string) *shelf[backends.Snapshot] {
	return &shelf[backends.Snapshot]{
		noun: noun, byID: store.Get, list: listing(store.List), lag: s.listLag(), found: func(string) {},
		byKey: func(ctx context.Context, key string) ([]backends.Snapshot, error) {
			return withKey(ctx, listing(store.List), s.Account.AccountID(), key)
		},
	}
}

// listLag is how long lists of the subject's cloud may lag, scaled.
func (s *Subject) listLag() time.Duration {
	return backends.Scale(cmp.Or(s.Account.Definition().ListLag, defaultListLag))
}
