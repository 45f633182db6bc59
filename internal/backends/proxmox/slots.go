// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/sha256"
	"encoding/binary"
)

// maxSlots bounds how many VMIDs a key may have (the specification's Proxmox
// section).
const maxSlots = 64

// slots are the VMIDs of a key, in the order in which they are tried: the first by
// the SHA-256 of the key, the others behind it, around the end of the range.
func slots(key string, low, high int) []int {
	size := uint64(high - low + 1) //nolint:gosec // high is not below low
	sum := sha256.Sum256([]byte(key))
	first := binary.BigEndian.Uint64(sum[:8]) % size
	out := make([]int, min(size, maxSlots))
	for i := range out {
		out[i] = low + int((first+uint64(i))%size) //nolint:gosec // below 10^9
	}
	return out
}

// slotsOf are the VMIDs that a machine may have: the one that is asked for, or those
// of its key.
func (c *Client) slotsOf(key string, vmID int) []int {
	if vmID != 0 {
		return []int{vmID}
	}
	return slots(key, c.account.vmidMin, c.account.vmidMax)
}
