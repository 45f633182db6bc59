// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

// Deviation is a place where DigitalOcean's own client, or what is seen of the
// real API, and the published description of it disagree; the description loses.
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
	return append([]Deviation{
		{"", "", "/status: value must be one of 'new', 'active', false, 'archive'", `the description is YAML, where an unquoted off is false`},
		{"", "", "value must be one of 'ams1', 'ams2', 'ams3', 'blr1'", "the list of regions lacks the newer ones, which /v2/regions has"},
		{"POST", "/v2/droplets", "/ssh_keys: got null, want array", "godo sends null where none are given"},
		{"POST", "/v2/droplets", "/volumes/", "godo sends objects with an id, not ids"},
		{"POST", "/v2/droplets/{droplet_id}/actions", "value must be one of 'enable_backups', 'disable_backups', 'reboot'", "the list of types lacks change_backup_policy, which the text has"},
		{"POST", "/v2/droplets/actions", "'oneOf' failed, subschemas 0, 1 matched", "an action without further fields fits the schemas of two types"},
	}, volumeDeviations()...)
}
