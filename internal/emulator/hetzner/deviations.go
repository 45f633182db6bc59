// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

// Deviation is a place where Hetzner's own client, which works with the real
// API, and the published description of it disagree; the client wins.
type Deviation struct {
	// Method and Path are the operation, the path as the description has it.
	Method, Path string
	// Contains is a part of what a validator complains of.
	Contains string
	Why      string
}

// Deviations lists them all, for tests that validate against the description.
func Deviations() []Deviation {
	return []Deviation{
		{"POST", "/servers", "/server_type: got number, want string", "hcloud-go sends the id as a number"},
		{"POST", "/servers", "/image: got number, want string", "hcloud-go sends the id as a number"},
		{"POST", "/servers", "/ssh_keys/", "hcloud-go sends the ids as numbers"},
		{"POST", "/servers/{id}/actions/rebuild", "/image: got number, want string", "hcloud-go sends the id as a number"},
		{"POST", "/servers/{id}/actions/change_type", "/server_type: got number, want string", "hcloud-go sends the id as a number"},
		{"POST", "/volumes", "/location: got number, want string", "hcloud-go sends the id as a number"},
		{"POST", "/primary_ips", "/assignee_type: value must be 'server'", "its text says that it is unassigned without an assignee since 2026-08-01"},
		{"PUT", "/primary_ips/{id}", "/assignee_type: value must be 'server'", "as above"},
		{"GET", "/primary_ips/{id}", "/assignee_type: value must be 'server'", "as above"},
		{"GET", "/primary_ips", "/assignee_type: value must be 'server'", "as above"},
		{"GET", "/actions", "query page: is not in the description", "hcloud-go pages through the actions it asks for"},
		{"GET", "/actions", "query per_page: is not in the description", "as above"},
		{"GET", "/actions", "query sort: is not in the description", "hcloud-go sorts them by status and id"},
		{"GET", "/actions", "query status: is not in the description", "hcloud-go can filter them by status"},
	}
}
