// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

const (
	// perPage is the API's largest page.
	perPage = 50
	// maxPages bounds how many pages an answer can make us ask for: 50,000 servers.
	maxPages = 1000
)

// page is one page of a list and the numbers of those that follow.
type page[T any] struct {
	items      []T
	next, last int
}

// pages reads the first page of a list, which tells how many follow. A list whose
// answer has no pagination isn't one of the API's, and would read as "nothing
// there".
func pages[T any](ctx context.Context, what string,
	fetch func(ctx context.Context, number int) ([]T, *hcloud.Response, error)) (backends.Listing[T], error) {
	get := func(ctx context.Context, number int) (page[T], error) {
		return request(ctx, backends.Idempotent, what,
			func(ctx context.Context) (page[T], *hcloud.Response, error) {
				items, answer, err := fetch(ctx, number)
				if err != nil || !succeeded(answer) {
					return page[T]{}, answer, err
				}
				p := answer.Meta.Pagination
				if p == nil || p.LastPage > maxPages {
					return page[T]{}, answer, errNoPagination
				}
				return page[T]{items, p.NextPage, p.LastPage}, answer, nil
			})
	}
	first, err := get(ctx, 1)
	switch {
	case err != nil:
		return backends.Listing[T]{}, err
	case first.last == 0 && first.next > 1:
		// last_page may be null: then the list is walked.
		return backends.Listing[T]{First: first.items, Rest: func(ctx context.Context) ([]T, error) {
			return walk(backends.ListContext(ctx), what, first.next, get)
		}}, nil
	case first.next == 0:
		return backends.Whole(first.items), nil
	}
	return backends.Paged(first.items, first.last, func(ctx context.Context, number int) ([]T, error) {
		p, err := get(ctx, number)
		return p.items, err
	}), nil
}

// turned is what is kept of a page's objects: much less than the library makes of them.
func turned[T, O any](from []*T, turn func(*T) O) []O {
	out := make([]O, len(from))
	for i, o := range from {
		out[i] = turn(o)
	}
	return out
}

// walk reads a list page by page from the one with the number next on.
func walk[T any](ctx context.Context, what string, next int, get func(context.Context, int) (page[T], error)) ([]T, error) {
	var out []T
	for number := 1; next > number; {
		p, err := get(ctx, next)
		if err == nil && (next > maxPages || len(p.items) == 0 || len(out)+len(p.items) > backends.MaxObjects) {
			err = backends.TooLong(what)
		}
		if err != nil {
			return out, err
		}
		out = append(out, p.items...)
		number, next = next, p.next
	}
	return out, nil
}

// all reads a whole list.
func all[T any](ctx context.Context, what string,
	fetch func(ctx context.Context, number int) ([]T, *hcloud.Response, error)) ([]T, error) {
	found, err := pages(ctx, what, fetch)
	if err != nil {
		return nil, err
	}
	return found.All(ctx)
}
