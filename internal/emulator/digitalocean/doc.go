// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package digitalocean emulates the DigitalOcean API, as far as machines,
// volumes and snapshots need it: Droplets with their actions, the catalog
// (regions, sizes, images), SSH keys, VPCs, tags, block volumes, volume
// snapshots and Network File Storage. It is held to DigitalOcean's API
// description and to their Go client (godo), not to what this project sends.
//
// What is known of the real API beyond its description: names of Droplets are
// not unique; a Droplet has one event at a time, and an action that is completed
// says nothing of the Droplet's status; tags keep the case in which they were
// first written; lists may lag behind creations (as a fault here). Where nothing
// is known the emulator does the plainest thing, and the comment there says so.
package digitalocean
