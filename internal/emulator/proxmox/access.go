// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import "slices"

func accessRoutes() []route {
	return []route{
		{method: "GET", path: "/access/permissions", handle: permissions},
		{method: "GET", path: "/pools", handle: listPools},
		{method: "GET", path: "/pools/{poolid}", allow: func(c *call) error {
			return c.need("/pool/"+c.ids["poolid"], "Pool.Audit")
		}, handle: getPool},
		{method: "PUT", path: "/pools", allow: mayChangePool, handle: changePool},
		{method: "PUT", path: "/pools/{poolid}", allow: mayChangePool, handle: changePool},
	}
}

// permissions dumps what the caller may do, by paths: with ?path= at that one,
// else at the tops of the tree.
func permissions(c *call) (any, error) {
	if user := c.params["userid"]; user != "" && user != c.user {
		if err := c.need("/access", "Sys.Audit"); err != nil {
			return nil, err
		}
	}
	paths := words("/ /access /nodes /pool /sdn /storage /vms")
	if path := c.params["path"]; path != "" {
		paths = []string{path}
	}
	answer := map[string]any{}
	for _, path := range paths {
		allowed := map[string]any{}
		for _, privilege := range c.s.privileges() {
			if c.may(path, privilege) {
				allowed[privilege] = 1
			}
		}
		answer[path] = allowed
	}
	return answer, nil
}

func (c *call) members(pool string) []any {
	rows := []any{}
	for _, g := range byID(c.p.VMs) {
		if g.Pool != pool || (c.params["type"] != "" && c.params["type"] != g.kind()) {
			continue
		}
		rows = append(rows, c.resourceRow(g))
	}
	return rows
}

// listPools lists the pools; with ?poolid= one of them, with its members.
func listPools(c *call) (any, error) {
	rows := []any{}
	only := c.params["poolid"]
	if only != "" {
		if err := c.need("/pool/"+only, "Pool.Audit"); err != nil {
			return nil, err
		}
		if !slices.Contains(c.p.Pools, only) {
			return nil, died("pool '%s' does not exist", only)
		}
		return []any{map[string]any{"poolid": only, "members": c.members(only)}}, nil
	}
	for _, name := range c.visiblePools() {
		rows = append(rows, map[string]any{"poolid": name})
	}
	return rows, nil
}

func getPool(c *call) (any, error) {
	name := c.ids["poolid"]
	if !slices.Contains(c.p.Pools, name) {
		return nil, died("pool '%s' does not exist", name)
	}
	return map[string]any{"members": c.members(name)}, nil
}
