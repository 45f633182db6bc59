// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var (
	tenantForm  = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)             // spec: tenant ids
	accountForm = regexp.MustCompile(`^[a-z0-9._-]{1,63}$`)                  // the specification, "Create an account"
	volumeForm  = regexp.MustCompile(`^[a-z](?:[-a-z0-9]{0,40}[a-z0-9])?$`)  // the specification, providerVolumes
	quotable    = regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._ -]{0,39}$`) // what a message may repeat
	machineMax  = 256
)

// TenantProblem tells what is wrong with a tenant's id; "" when nothing is.
func TenantProblem(tenant string) string {
	if !tenantForm.MatchString(tenant) {
		return "A tenant id is 1 to 128 letters, digits and . _ : -."
	}
	return ""
}

// AccountNameProblem tells what is wrong with an account's name; "" when nothing is.
func AccountNameProblem(name string) string {
	if !accountForm.MatchString(name) {
		return "An account name is 1 to 63 lower-case letters, digits, dots, underscores and hyphens."
	}
	return ""
}

// PoolNameProblem tells what is wrong with a pool's name; "" when nothing is.
func PoolNameProblem(name string) string {
	if !accountForm.MatchString(name) {
		return "A pool name is 1 to 63 lower-case letters, digits, dots, underscores and hyphens."
	}
	return ""
}

// InstanceNameProblem tells what is wrong with an instance's name; "" when nothing
// is: see [backends.HostnameProblem].
func InstanceNameProblem(name string) string { return backends.HostnameProblem(name) }

// VolumeNameProblem tells what is wrong with a volume's name; "" when nothing is.
func VolumeNameProblem(name string) string {
	if !volumeForm.MatchString(name) {
		return "A volume name is 1 to 42 lower-case letters, digits and hyphens, a letter first and no hyphen last."
	}
	return ""
}

// SnapshotNameProblem tells what is wrong with a snapshot's name; "" when nothing is.
func SnapshotNameProblem(name string) string {
	if !volumeForm.MatchString(name) {
		return "A snapshot name is 1 to 42 lower-case letters, digits and hyphens, a letter first and no hyphen last."
	}
	return ""
}

// MachineIDProblem tells what is wrong with a cloud's id of a machine; "" when
// nothing is.
func MachineIDProblem(id string) string {
	if id == "" || len(id) > machineMax || !utf8.ValidString(id) || strings.ContainsFunc(id, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return "A machine id is 1 to 256 bytes of printable text."
	}
	return ""
}

// quote repeats a piece of the input in a message when it can't be a credential:
// a name-like text, shorter than any vendor's token.
func quote(text string) string {
	if quotable.MatchString(text) {
		return `"` + text + `"`
	}
	return "what stands there"
}
