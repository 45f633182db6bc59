// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package hetzner emulates the Hetzner Cloud API, as far as machines and volumes
// need it: servers and volumes with their actions, the catalog (server types,
// images, locations, prices), SSH keys, networks, firewalls, placement groups
// and primary IPs. It is held to Hetzner's API description and to their Go
// client, not to what this project sends: shapes, status codes, headers, pages,
// label selectors, name rules, locks, and actions that take their time.
//
// Where the description is silent the emulator does what is known of the real
// API; where nothing is known it does the plainest thing, and the comment there
// says so.
package hetzner
