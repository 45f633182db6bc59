// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

const (
	defaultPerPage = 20
	maxPerPage     = 200
)

// visible takes those objects out that a fault keeps out of lists.
func visible[T based](c *call, records []T) []T {
	return slices.DeleteFunc(records, func(record T) bool { return c.hidden(record.base()) })
}

// list answers a list: of the records the page that the query asks for, with
// the links to the pages around it.
func list[T any](c *call, key string, records []T, wire func(T) any) (any, error) {
	page, perPage, err := c.page()
	if err != nil {
		return nil, err
	}
	answer := map[string]any{
		key:     pageOf(records, page, perPage, wire),
		"links": c.links(page, max(1, (len(records)+perPage-1)/perPage)),
		"meta":  map[string]any{"total": len(records)},
	}
	return answer, nil
}

// pageOf makes the JSON of the records on a page.
func pageOf[T any](records []T, page, perPage int, wire func(T) any) []any {
	start := min((page-1)*perPage, len(records))
	end := min(start+perPage, len(records))
	values := make([]any, 0, end-start)
	for _, record := range records[start:end] {
		values = append(values, wire(record))
	}
	return values
}

// links are those to other pages that make sense: none on an only page.
func (c *call) links(page, last int) any {
	pages := map[string]string{}
	if page > 1 {
		pages["first"] = c.link(1)
		pages["prev"] = c.link(page - 1)
	}
	if page < last {
		pages["next"] = c.link(page + 1)
		pages["last"] = c.link(last)
	}
	if len(pages) == 0 {
		return map[string]any{}
	}
	return map[string]any{"pages": pages}
}

func (c *call) link(page int) string {
	query := maps.Clone(c.query)
	query.Set("page", strconv.Itoa(page))
	return fmt.Sprintf("https://%s%s?%s", c.r.Host, c.r.URL.Path, query.Encode())
}

// page reads page and per_page. More than 200 per page are given as 200 (what
// the real one does with more isn't known).
func (c *call) page() (page, perPage int, err error) {
	number := func(name string, preset int) int {
		if c.query.Get(name) == "" {
			return preset
		}
		value, failed := strconv.Atoi(c.query.Get(name))
		if failed != nil || value < 1 {
			err = badRequest("%s must be a number from 1 on", name)
			return preset
		}
		return value
	}
	page, perPage = number("page", 1), min(number("per_page", defaultPerPage), maxPerPage)
	// Pages past any end are empty; this only keeps their arithmetic small.
	return min(page, 1<<30), perPage, err
}
