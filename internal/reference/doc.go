// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package reference names things: the ids of accounts, pools, instances, volumes
// and snapshots, and their uris (DESIGN.md §4).
//
// The provider keeps no database, and Terraform hands a resource nothing but
// strings of others. So an id is computed from names, which makes it known in the
// first plan and the same after a lost state, and a uri holds all it takes to
// reach an object: the account's configuration, with secret references in place
// of secrets, and the names on the way.
//
//	hetzner-cloud://root/main?token=env://HCLOUD_TOKEN                               account
//	hetzner-cloud://root/main/web?pool.adopt=true&token=env://HCLOUD_TOKEN           pool
//	hetzner-cloud://root/main/web/instances/web-0/4711?token=env://HCLOUD_TOKEN      instance
//	hetzner-cloud://root/main/web/volumes/data?token=env://HCLOUD_TOKEN              volume
//	hetzner-cloud://root/main/web/volumes/data/snapshots/first?token=env://…         snapshot
//
// # Spelling
//
// A uri has one spelling, which [Reference.String] writes and [Parse] insists on,
// so that equal references are equal strings and a plan shows no false change:
//
//   - the scheme is the cloud's id, then tenant, account, and names on the way;
//   - the query has the account's fields that differ from their defaults, by key,
//     sorted; a nested field's key has dots (snippets.storage); a list is joined by
//     commas in its order, a set's is sorted; a list or object that is there but
//     empty has an empty value, since that differs from one that isn't there;
//   - pool.adopt and pool.limits.* stand in a pool's uri only;
//   - letters, digits and - . _ ~ : / @ , = stand for themselves, everything else
//     is percent-encoded in upper case, and so are a tenant's colon, a machine id's
//     slash, and a comma inside an element of a list. A # is therefore %23:
//     token=vault://secret/hcloud%23token.
package reference
