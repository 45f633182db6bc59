// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"regexp"
	"strings"
)

// MaxHostname is what a machine's name may have in bytes: it is the guest's
// hostname, and Linux takes 64 with the NUL (hostname(7)).
const MaxHostname = 63

// hostnameLabel is one label of RFC 1123 §2.1, in lower case as DESIGN.md §5 wants it.
var hostnameLabel = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$`)

// HostnameProblem tells what is wrong with a machine's name, which is the guest's
// hostname too; "" when nothing is. The rule stands here alone: schema, uris and
// clouds ask it. A cloud that takes less checks the rest itself.
func HostnameProblem(name string) string {
	if len(name) > MaxHostname {
		return "An instance name has at most 63 characters."
	}
	for label := range strings.SplitSeq(name, ".") {
		if !hostnameLabel.MatchString(label) {
			return "An instance name is a hostname: lower-case letters, digits and hyphens, a letter or digit first and last, parts joined by dots."
		}
	}
	return ""
}
