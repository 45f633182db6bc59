// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"maps"
	"strings"
)

// route is a method of a path. {name} in a path stands for any one part of it,
// {volume} for all the rest.
type route struct {
	method string
	path   string
	params []param
	// allow checks the caller's privileges before anything else is looked at;
	// nil: every user may.
	allow  func(*call) error
	handle func(*call) (any, error)
}

func (r route) parts() []string { return strings.Split(strings.TrimPrefix(r.path, "/"), "/") }

// routes are those of all areas; each area has its own list.
func routes() []route {
	params := map[string][]param{}
	maps.Copy(params, guestParams)
	maps.Copy(params, otherParams)
	const config = " /nodes/{node}/qemu/{vmid}/config"
	params["PUT"+config] = configParams
	params["POST"+config] = append(append([]param{}, configParams...), configTaskParams...)
	params["PUT /pools/{poolid}"] = poolParams
	params["PUT /pools"] = append([]param{{name: "poolid", format: "pve-poolid"}}, poolParams...)
	var all []route
	for _, area := range [][]route{
		clusterRoutes(), nodeRoutes(), taskRoutes(), guestRoutes(), storageRoutes(), accessRoutes(),
	} {
		for _, r := range area {
			r.params = params[r.method+" "+r.path]
			all = append(all, r)
		}
	}
	return all
}

// match finds the route of a call by its path below the format. Of several that
// fit, that with the most
// literal parts wins.
func (s *Service) match(method, path string) (best route, ids map[string]string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	most := -1
	for _, candidate := range s.routes {
		if candidate.method != method {
			continue
		}
		found, literals := fit(candidate.parts(), parts)
		if literals > most {
			best, ids, most = candidate, found, literals
		}
	}
	return best, ids, most >= 0
}

// fit counts the literal parts of a pattern that fits; -1 when it doesn't.
func fit(pattern, parts []string) (ids map[string]string, literals int) {
	ids = map[string]string{}
	for i, want := range pattern {
		name, variable := strings.CutPrefix(want, "{")
		name = strings.TrimSuffix(name, "}")
		if variable && name == "volume" && i < len(parts) {
			ids[name] = strings.Join(parts[i:], "/")
			return ids, literals
		}
		switch {
		case i >= len(parts):
			return nil, -1
		case variable && parts[i] != "":
			ids[name] = parts[i]
		case want == parts[i]:
			literals++
		default:
			return nil, -1
		}
	}
	if len(pattern) != len(parts) {
		return nil, -1
	}
	return ids, literals
}
