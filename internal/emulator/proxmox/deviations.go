// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

// Deviation is a place where a client that works with the real API, or what is
// seen or read of the real one, and the description of the API disagree; the
// description loses.
type Deviation struct {
	// Method and Path are the operation, the path as the description has it;
	// empty: all of them.
	Method, Path string
	// Contains is a part of what a validator complains of.
	Contains string
	Why      string
}

// Deviations lists them all, for tests that validate against the description.
func Deviations() []Deviation {
	const config = "/nodes/{node}/qemu/{vmid}/config"
	return []Deviation{
		{"GET", "/cluster/nextid", "is not of type integer", "the real one answers with a string, and clients read one"},
		{"GET", config, "data/cpulimit", "options with fractions come as the text that is in the file"},
		{"GET", config, "data/lock: \"destroyed\" is none of", "the lock of a VM that is being destroyed is not among those that can be set"},
	}
}
