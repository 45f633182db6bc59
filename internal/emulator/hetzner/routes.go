// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"strconv"
	"strings"
)

// route is a method of a path. {id} in a path stands for a number.
type route struct {
	method string
	path   string
	// status is that of success.
	status int
	handle func(*call) (any, error)
}

type match struct {
	route route
	ids   []int64
}

const datacenterAnnouncement = "https://docs.hetzner.cloud/changelog"

func routes() []route {
	datacenters := func(*call) (any, error) { return nil, gone(datacenterAnnouncement) }
	rs := []route{
		{"GET", "/actions", http.StatusOK, listActions},
		{"GET", "/actions/{id}", http.StatusOK, getAction},

		{"GET", "/locations", http.StatusOK, listLocations},
		{"GET", "/locations/{id}", http.StatusOK, getLocation},
		{"GET", "/datacenters", http.StatusOK, datacenters},
		{"GET", "/datacenters/{id}", http.StatusOK, datacenters},
		{"GET", "/server_types", http.StatusOK, listServerTypes},
		{"GET", "/server_types/{id}", http.StatusOK, getServerType},
		{"GET", "/pricing", http.StatusOK, getPricing},
		{"GET", "/isos", http.StatusOK, listISOs},
		{"GET", "/isos/{id}", http.StatusOK, getISO},

		{"GET", "/images", http.StatusOK, listImages},
		{"GET", "/images/{id}", http.StatusOK, getImage},
		{"PUT", "/images/{id}", http.StatusOK, updateImage},
		{"DELETE", "/images/{id}", http.StatusNoContent, deleteImage},

		{"GET", "/ssh_keys", http.StatusOK, listSSHKeys},
		{"POST", "/ssh_keys", http.StatusCreated, createSSHKey},
		{"GET", "/ssh_keys/{id}", http.StatusOK, getSSHKey},
		{"PUT", "/ssh_keys/{id}", http.StatusOK, updateSSHKey},
		{"DELETE", "/ssh_keys/{id}", http.StatusNoContent, deleteSSHKey},

		{"GET", "/networks", http.StatusOK, listNetworks},
		{"POST", "/networks", http.StatusCreated, createNetwork},
		{"GET", "/networks/{id}", http.StatusOK, getNetwork},
		{"PUT", "/networks/{id}", http.StatusOK, updateNetwork},
		{"DELETE", "/networks/{id}", http.StatusNoContent, deleteNetwork},
		{"POST", "/networks/{id}/actions/add_subnet", http.StatusCreated, addSubnet},

		{"GET", "/firewalls", http.StatusOK, listFirewalls},
		{"POST", "/firewalls", http.StatusCreated, createFirewall},
		{"GET", "/firewalls/{id}", http.StatusOK, getFirewall},
		{"PUT", "/firewalls/{id}", http.StatusOK, updateFirewall},
		{"DELETE", "/firewalls/{id}", http.StatusNoContent, deleteFirewall},
		{"POST", "/firewalls/{id}/actions/apply_to_resources", http.StatusCreated, applyToResources},
		{"POST", "/firewalls/{id}/actions/remove_from_resources", http.StatusCreated, removeFromResources},

		{"GET", "/placement_groups", http.StatusOK, listPlacementGroups},
		{"POST", "/placement_groups", http.StatusCreated, createPlacementGroup},
		{"GET", "/placement_groups/{id}", http.StatusOK, getPlacementGroup},
		{"PUT", "/placement_groups/{id}", http.StatusOK, updatePlacementGroup},
		{"DELETE", "/placement_groups/{id}", http.StatusNoContent, deletePlacementGroup},

		{"GET", "/primary_ips", http.StatusOK, listPrimaryIPs},
		{"POST", "/primary_ips", http.StatusCreated, createPrimaryIP},
		{"GET", "/primary_ips/{id}", http.StatusOK, getPrimaryIP},
		{"PUT", "/primary_ips/{id}", http.StatusOK, updatePrimaryIP},
		{"DELETE", "/primary_ips/{id}", http.StatusNoContent, deletePrimaryIP},
		{"POST", "/primary_ips/{id}/actions/assign", http.StatusCreated, assignPrimaryIP},
		{"POST", "/primary_ips/{id}/actions/unassign", http.StatusCreated, unassignPrimaryIP},

		{"GET", "/servers", http.StatusOK, listServers},
		{"POST", "/servers", http.StatusCreated, createServer},
		{"GET", "/servers/actions", http.StatusOK, listServerActions},
		{"GET", "/servers/actions/{id}", http.StatusOK, getAction},
		{"GET", "/servers/{id}", http.StatusOK, getServer},
		{"PUT", "/servers/{id}", http.StatusOK, updateServer},
		{"DELETE", "/servers/{id}", http.StatusOK, deleteServer},
		{"GET", "/servers/{id}/actions", http.StatusOK, listActionsOfServer},
		{"GET", "/servers/{id}/actions/{id}", http.StatusOK, getActionOfServer},

		{"GET", "/volumes", http.StatusOK, listVolumes},
		{"POST", "/volumes", http.StatusCreated, createVolume},
		{"GET", "/volumes/actions", http.StatusOK, listVolumeActions},
		{"GET", "/volumes/actions/{id}", http.StatusOK, getAction},
		{"GET", "/volumes/{id}", http.StatusOK, getVolume},
		{"PUT", "/volumes/{id}", http.StatusOK, updateVolume},
		{"DELETE", "/volumes/{id}", http.StatusNoContent, deleteVolume},
		{"GET", "/volumes/{id}/actions", http.StatusOK, listActionsOfVolume},
		{"GET", "/volumes/{id}/actions/{id}", http.StatusOK, getActionOfVolume},
	}
	for name, handle := range serverActions() {
		rs = append(rs, route{"POST", "/servers/{id}/actions/" + name, http.StatusCreated, handle})
	}
	for name, handle := range volumeActions() {
		rs = append(rs, route{"POST", "/volumes/{id}/actions/" + name, http.StatusCreated, handle})
	}
	return rs
}

// match finds the routes of a path (below the base path), whatever the method.
// A literal part wins over an id: ids are numbers, so there is no choice.
func (s *Service) match(path string) []match {
	parts := strings.Split(path, "/")
	var matches []match
	for _, route := range s.routes {
		if ids, ok := matchParts(strings.Split(route.path, "/"), parts); ok {
			matches = append(matches, match{route, ids})
		}
	}
	return matches
}

func matchParts(pattern, parts []string) (ids []int64, ok bool) {
	if len(pattern) != len(parts) {
		return nil, false
	}
	for i, want := range pattern {
		if want != "{id}" {
			if want != parts[i] {
				return nil, false
			}
			continue
		}
		id, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil || id < 1 {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}
