// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// pagesAtOnce bounds the pages of one list in flight. The APIs allow bursts, but all
// who use a token share its rate limit.
const pagesAtOnce = 8

// MaxObjects bounds one list, all its pages together. No project of today's clouds has
// nearly as many; an API that shows more is none, and would fill the memory.
const MaxObjects = 50_000

// failedPages is how many pages of a list may fail before no further one is asked for:
// each of those failures has already been tried a few times, so the API is down.
const failedPages = pagesAtOnce

// TooLong is the error of a list that has more than [MaxObjects] or no end.
func TooLong(what string) *Error {
	return Errorf(ProviderError, "%s: the list has no end: more than %d objects came.", what, MaxObjects).
		WithRemedy("Check that the account's endpoint is that of the cloud's API.")
}

// Listing is a list as far as it was read: its first page, and a way to the others.
// Who needs few objects of a long list gets them cheaper one by one (DESIGN.md §7).
type Listing[T any] struct {
	First []T
	// Pages is how many pages there are; 1 when First is everything. It may be 0 when
	// the API doesn't tell.
	Pages int
	// Rest reads the pages after the first; nil when there are none. With an error it
	// returns what could be read all the same.
	Rest func(ctx context.Context) ([]T, error)
}

// Whole is a list that has no further pages.
func Whole[T any](objects []T) Listing[T] { return Listing[T]{First: objects, Pages: 1} }

// Paged is a list whose pages have numbers, the last known from the first: the others
// are read in parallel. A page that fails doesn't end the reading of the others, unless
// many fail.
func Paged[T any](first []T, last int, page func(ctx context.Context, number int) ([]T, error)) Listing[T] {
	if last <= 1 {
		return Whole(first)
	}
	rest := func(ctx context.Context) ([]T, error) {
		ctx = ListContext(ctx)
		items, errs := make([][]T, last+1), make([]error, last+1)
		var failed, objects atomic.Int64
		objects.Store(int64(len(first)))
		atOnce := semaphore.NewWeighted(pagesAtOnce)
		var wg sync.WaitGroup
		for number := 2; number <= last; number++ {
			if atOnce.Acquire(ctx, 1) != nil {
				errs[number] = context.Cause(ctx)
				break
			}
			if failed.Load() >= failedPages || objects.Load() > MaxObjects {
				atOnce.Release(1)
				break
			}
			wg.Go(func() {
				defer atOnce.Release(1)
				items[number], errs[number] = page(ctx, number)
				objects.Add(int64(len(items[number])))
				if errs[number] != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if objects.Load() > MaxObjects {
			return slices.Concat(items...), TooLong("Reading a list")
		}
		i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
		if i < 0 {
			return slices.Concat(items...), nil
		}
		return slices.Concat(items...), errs[i]
	}
	return Listing[T]{First: first, Pages: last, Rest: rest}
}

// All is the whole list.
func (l Listing[T]) All(ctx context.Context) ([]T, error) {
	if l.Rest == nil {
		return l.First, nil
	}
	rest, err := l.Rest(ctx)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(l.First), rest...), nil
}

// As is a list whose objects are turned into others.
func As[A, B any](l Listing[A], turn func(A) B) Listing[B] {
	each := func(from []A) []B {
		out := make([]B, len(from))
		for i, o := range from {
			out[i] = turn(o)
		}
		return out
	}
	out := Listing[B]{First: each(l.First), Pages: l.Pages}
	if l.Rest != nil {
		out.Rest = func(ctx context.Context) ([]B, error) {
			rest, err := l.Rest(ctx)
			return each(rest), err
		}
	}
	return out
}

// Only is a list of those objects that are wanted.
func (l Listing[T]) Only(want func(T) bool) Listing[T] {
	others := func(o T) bool { return !want(o) }
	out := Listing[T]{First: slices.DeleteFunc(l.First, others), Pages: l.Pages}
	if l.Rest != nil {
		out.Rest = func(ctx context.Context) ([]T, error) {
			rest, err := l.Rest(ctx)
			return slices.DeleteFunc(rest, others), err
		}
	}
	return out
}

// Objects are all objects of a list, each once.
func Objects[T Object](ctx context.Context, l Listing[T]) ([]T, error) {
	found, err := l.All(ctx)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(found))
	return slices.DeleteFunc(found, func(o T) bool {
		id := o.About().ID
		again := seen[id]
		seen[id] = true
		return again
	}), nil
}

// ListAll are all objects that a method such as [Lister.ListMachines] lists, each
// once.
func ListAll[T Object](ctx context.Context, list func(context.Context, Filter) (Listing[T], error), filter Filter) ([]T, error) {
	found, err := list(ctx, filter)
	if err != nil {
		return nil, err
	}
	return Objects(ctx, found)
}
