// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

const (
	defaultPerPage = 25
	maxPerPage     = 50
)

// row is a thing in a list, before it is known whether it is on the page.
type row struct {
	object
	// words are further fields that the list can be sorted by.
	words map[string]string
	// wire makes the thing's JSON.
	wire func() any
}

// rows makes the rows of records.
func rows[T based](records map[int64]T, wire func(T) any) []row {
	made := make([]row, 0, len(records))
	for _, record := range byID(records) {
		made = append(made, row{object: *record.base(), wire: func() any { return wire(record) }})
	}
	return made
}

// list answers a list: rows that the query's name and label selector choose,
// sorted, and of them the page. sortable are the fields that sort takes.
func (c *call) list(key string, all []row, sortable ...string) (any, error) {
	rows, err := c.choose(all)
	if err != nil {
		return nil, err
	}
	if err := c.sort(rows, sortable); err != nil {
		return nil, err
	}
	page, perPage, err := c.page()
	if err != nil {
		return nil, err
	}
	last := max(1, (len(rows)+perPage-1)/perPage)
	start := min((page-1)*perPage, len(rows))
	end := min(start+perPage, len(rows))
	values := make([]any, 0, end-start)
	for _, row := range rows[start:end] {
		values = append(values, row.wire())
	}

	pagination := wirePagination{Page: page, PerPage: perPage, LastPage: &last, TotalEntries: new(len(rows))}
	links := []string{c.link("last", last)}
	if page > 1 {
		pagination.PreviousPage = new(page - 1)
		links = append(links, c.link("prev", page-1))
	}
	if page < last {
		pagination.NextPage = new(page + 1)
		links = append(links, c.link("next", page+1))
	}
	c.header.Set("Link", strings.Join(links, ", "))
	return map[string]any{key: values, "meta": map[string]any{"pagination": pagination}}, nil
}

func (c *call) link(relation string, page int) string {
	query := maps.Clone(c.query)
	query.Set("page", strconv.Itoa(page))
	return fmt.Sprintf(`<https://%s%s?%s>; rel="%s"`, c.r.Host, c.r.URL.Path, query.Encode(), relation)
}

// choose filters by name and label selector, and leaves out what a fault hides.
func (c *call) choose(all []row) ([]row, error) {
	chosen := slices.Clone(all)
	if c.query.Has("name") {
		name := c.query.Get("name")
		chosen = slices.DeleteFunc(chosen, func(r row) bool { return r.Name != name })
	}
	if text := c.query.Get("label_selector"); text != "" {
		selector, err := parseSelector(text)
		if err != nil {
			var problems fields
			problems.add("label_selector", "%s", err)
			return nil, problems.err()
		}
		chosen = slices.DeleteFunc(chosen, func(r row) bool { return !selector.matches(r.Labels) })
	}
	hidden := func(r row) bool { return c.now.Before(r.HiddenUntil) }
	if rule, ok := emulator.FaultFor(c.r.Context(), emulator.KindHideFromLists); ok {
		from := c.now.Add(-time.Duration(rule.Delay))
		hidden = func(r row) bool { return c.now.Before(r.HiddenUntil) || r.Created.After(from) }
	}
	return slices.DeleteFunc(chosen, hidden), nil
}

// oneOf filters by a query parameter that may be given several times.
func (c *call) oneOf(parameter string, rows []row, value func(row) string) []row {
	wanted := c.query[parameter]
	if len(wanted) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r row) bool { return !slices.Contains(wanted, value(r)) })
}

func (c *call) sort(rows []row, sortable []string) error {
	type key struct {
		field   string
		reverse bool
	}
	var keys []key
	for _, text := range c.query["sort"] {
		field, direction, _ := strings.Cut(text, ":")
		if !slices.Contains(sortable, field) || !slices.Contains([]string{"", "asc", "desc"}, direction) {
			var problems fields
			problems.add("sort", "cannot sort by '%s'", text)
			return problems.err()
		}
		keys = append(keys, key{field, direction == "desc"})
	}
	keys = append(keys, key{field: "id"})
	slices.SortStableFunc(rows, func(a, b row) int {
		for _, key := range keys {
			order := a.compare(b, key.field)
			if key.reverse {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	return nil
}

func (r row) compare(other row, field string) int {
	switch field {
	case "id":
		return cmp.Compare(r.ID, other.ID)
	case "name":
		return cmp.Compare(r.Name, other.Name)
	case "created":
		return r.Created.Compare(other.Created)
	default:
		return cmp.Compare(r.words[field], other.words[field])
	}
}

// page reads page and per_page. More than 50 per page are given as 50.
func (c *call) page() (page, perPage int, err error) {
	var problems fields
	number := func(name string, preset int) int {
		if !c.query.Has(name) {
			return preset
		}
		value, err := strconv.Atoi(c.query.Get(name))
		if err != nil || value < 1 {
			problems.add(name, "must be a number from 1 on")
			return preset
		}
		return value
	}
	page, perPage = number("page", 1), min(number("per_page", defaultPerPage), maxPerPage)
	// Pages past any end are empty; this only keeps their arithmetic small.
	return min(page, 1<<30), perPage, problems.err()
}

// get answers a single thing of a kind.
func get[T any](c *call, kind string, records map[int64]T) (T, error) {
	record, found := records[c.id()]
	if !found {
		return record, notFound(kind, c.id())
	}
	return record, nil
}

// noContent is the result of handlers whose answer has no body.
func noContent(err error) (any, error) { return nil, err }
