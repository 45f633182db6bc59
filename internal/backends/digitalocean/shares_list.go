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

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// nfsList reads a whole list of shares or their snapshots. Those lists are looser
// than the API's others (see [list]): the description requires nothing of them and
// has no paging, godo pages through them and has tests with and without a total. So
// the pages are walked until the total is reached, or, without one, until a page
// brings nothing new. A list without its field is empty, if the answer holds nothing
// else that a list doesn't.
func nfsList[T any](ctx context.Context, c *Client, what, path string, query url.Values, field string, id func(T) string) ([]T, error) {
	ctx = backends.ListContext(ctx)
	var out []T
	seen := map[string]bool{}
	for number := 1; number <= maxPages; number++ {
		q := url.Values{"page": {strconv.Itoa(number)}, "per_page": {strconv.Itoa(perPage)}}
		maps.Copy(q, query)
		var items []T
		var meta page
		_, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: path, query: q},
			func(body *map[string]json.RawMessage) bool {
				items, meta = nil, page{}
				for name, text := range *body {
					switch name {
					case field:
						if json.Unmarshal(text, &items) != nil {
							return false
						}
					case "meta":
						if json.Unmarshal(text, &meta.Meta) != nil {
							return false
						}
					case "links":
					default:
						return false
					}
				}
				return *body != nil && !slices.ContainsFunc(items, func(item T) bool { return !isObject(id(item)) })
			})
		if err != nil {
			return nil, err
		}
		before := len(out)
		for _, item := range items {
			if !seen[id(item)] {
				seen[id(item)] = true
				out = append(out, item)
			}
		}
		if len(out) == before || meta.Meta != nil && meta.Meta.Total > 0 && len(out) >= meta.Meta.Total {
			return out, nil
		}
		if len(out) > backends.MaxObjects {
			break
		}
	}
	return nil, backends.TooLong(what)
}

// wanted are those of what was found that are wanted, in our words.
func wanted[T, O any](found []T, object func(*T) O, want func(O) bool) []O {
	var out []O
	for i := range found {
		if o := object(&found[i]); want(o) {
			out = append(out, o)
		}
	}
	return out
}
