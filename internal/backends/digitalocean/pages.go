// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

const (
	// perPage is the API's largest page.
	perPage = 200
	// maxPages bounds how many pages an answer can make us ask for: 200,000 objects.
	maxPages = 1000
)

// page is what every list has besides its objects.
type page struct {
	Links *godo.Links `json:"links"`
	Meta  *struct {
		Total int `json:"total"`
	} `json:"meta"`
}

// last is the number of the last page. The total decides; the links can say that
// there are more. pages of a size that isn't perPage are the server's choice.
func (p *page) last(size int) int {
	last := 1
	if size > 0 {
		last = (p.Meta.Total-1)/size + 1
	}
	if p.Links != nil && p.Links.Pages != nil {
		if u, err := url.Parse(p.Links.Pages.Last); err == nil {
			if n, err := strconv.Atoi(u.Query().Get("page")); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}

// pages reads the first page of a list, which tells how many follow. field is the answer's field with the objects; an answer
// without it, or without a total, isn't one of the API's, and would read as
// "nothing there". good tells whether an object has what it must, and turn makes of it
// what is kept: page by page, since it is much less.
func pages[T, O any](ctx context.Context, c *Client, what, path string, query url.Values, field string,
	good func(T) bool, turn func(*T) O) (backends.Listing[O], error) {
	get := func(ctx context.Context, number int) ([]O, *page, error) {
		q := url.Values{"page": {strconv.Itoa(number)}, "per_page": {strconv.Itoa(perPage)}}
		maps.Copy(q, query)
		var items []T
		var meta page
		_, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: path, query: q},
			func(body *map[string]json.RawMessage) bool {
				items, meta = nil, page{}
				text, ok := (*body)[field]
				return ok && json.Unmarshal(text, &items) == nil &&
					!slices.ContainsFunc(items, func(item T) bool { return !good(item) }) &&
					json.Unmarshal((*body)["meta"], &meta.Meta) == nil && meta.Meta != nil &&
					((*body)["links"] == nil || json.Unmarshal((*body)["links"], &meta.Links) == nil)
			})
		if err != nil {
			return nil, &meta, err
		}
		out := make([]O, len(items))
		for i := range items {
			out[i] = turn(&items[i])
		}
		return out, &meta, nil
	}
	first, meta, err := get(ctx, 1)
	if err != nil {
		return backends.Listing[O]{}, err
	}
	last := meta.last(len(first))
	if last > maxPages {
		return backends.Listing[O]{}, backends.TooLong(what)
	}
	return backends.Paged(first, last, func(ctx context.Context, number int) ([]O, error) {
		items, _, err := get(ctx, number)
		return items, err
	}), nil
}

// list reads a whole list. A page that fails fails the list.
func list[T any](ctx context.Context, c *Client, what, path string, query url.Values, field string, good func(T) bool) ([]T, error) {
	found, err := pages(ctx, c, what, path, query, field, good, func(item *T) T { return *item })
	if err != nil {
		return nil, err
	}
	return found.All(ctx)
}
