// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

// volumeDeviations are those of volumes, their snapshots and shares. Of shares
// godo, which is newer, knows more than the description.
func volumeDeviations() []Deviation {
	return []Deviation{
		{"GET", "/v2/snapshots", "query region: is not in the description", "godo filters by it"},
		{"GET", "/v2/nfs/actions/{action_id}", "no such method or path", "godo waits with it"},
		{"GET", "/v2/nfs", "query page: is not in the description", "godo pages through the shares"},
		{"GET", "/v2/nfs", "query per_page: is not in the description", "as above"},
		{"GET", "/v2/nfs", "query name: is not in the description", "godo filters by it"},
		{"GET", "/v2/nfs/snapshots", "query page: is not in the description", "as for the shares"},
		{"GET", "/v2/nfs/snapshots", "query per_page: is not in the description", "as above"},
		{"DELETE", "/v2/nfs/{nfs_id}", "missing properties 'id', 'message'", "godo has an answer 200 with the share, which here falls under the default, an error"},
		{"DELETE", "/v2/nfs/{nfs_id}", "query delete_snapshots: is not in the description", "godo sends it"},
	}
}
