// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package proxmox emulates the API of a Proxmox VE cluster, as far as virtual
// machines need it: nodes, QEMU VMs (cloned from templates, configured, resized,
// started, migrated, destroyed), their tasks, locks and guest agents, storages
// and their content, pools, HA resources and permissions. It is held to Proxmox
// VE's API description and to a client that isn't ours (go-proxmox), not to what
// this project sends.
//
// What is known of the real API beyond its description, mostly from its source:
//   - what takes long is a task, a worker on one node; nearly all that can go
//     wrong shows in the task's exit status, not in the answer to the call;
//   - a clone's configuration has neither name nor description until the first
//     drive is copied, and lies on the template's node until the end;
//   - two workers that want one VM's lock wait for it, 1 s or 10 s, and then
//     fail with "got timeout"; clones only read-lock their source;
//   - names, status and templates in /cluster/resources lag behind (pvestatd
//     writes them every 10 s), while nodes, tags and locks don't;
//   - permissions are checked before it is known whether a VM exists.
//
// Where nothing is known the emulator does the plainest thing, and the comment
// there says so.
package proxmox
