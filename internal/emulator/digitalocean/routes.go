// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"net/http"
	"strings"
)

// route is a method of a path. {id} in a path stands for any one part of it.
type route struct {
	method string
	path   string
	// status is that of success.
	status int
	handle func(*call) (any, error)
}

type match struct {
	route route
	ids   []string
}

// routes are those of all areas; each area has its own list.
func routes() []route {
	var all []route
	for _, area := range [][]route{
		catalogRoutes(), imageRoutes(), accountRoutes(), vpcRoutes(), tagRoutes(),
		dropletRoutes(), backupRoutes(), destroyRoutes(), volumeRoutes(),
		{
			{"GET", "/actions", http.StatusOK, listActions},
			{"GET", "/actions/{id}", http.StatusOK, getAction},
		},
	} {
		all = append(all, area...)
	}
	return all
}

// match finds the route of a call, by the path below the base path. Where
// several fit, the one with the most literal parts wins: /droplets/actions is
// not a Droplet.
func (s *Service) match(method, path string) (match, bool) {
	parts := strings.Split(path, "/")
	best, literals := match{}, -1
	for _, route := range s.routes {
		if route.method != method {
			continue
		}
		pattern := strings.Split(route.path, "/")
		ids, ok := matchParts(pattern, parts)
		if ok && len(pattern)-len(ids) > literals {
			best, literals = match{route, ids}, len(pattern)-len(ids)
		}
	}
	return best, literals >= 0
}

func matchParts(pattern, parts []string) (ids []string, ok bool) {
	if len(pattern) != len(parts) {
		return nil, false
	}
	for i, want := range pattern {
		switch {
		case want == "{id}" && parts[i] != "":
			ids = append(ids, parts[i])
		case want != parts[i]:
			return nil, false
		}
	}
	return ids, true
}
