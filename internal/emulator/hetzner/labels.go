// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The forms of names and labels, from the API's description of labels and of
// the server's name.
var (
	labelName    = regexp.MustCompile(`^[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$`)
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	hostnamePart = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$`)
)

const reservedPrefix = "hetzner.cloud"

// checkLabels reports labels that break the rules.
func checkLabels(problems *fields, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problem := labelKeyProblem(key); problem != "" {
			problems.add("labels", "label key '%s' is invalid: %s", key, problem)
		} else if prefix, _, found := strings.Cut(key, "/"); found && (prefix == reservedPrefix || strings.HasSuffix(prefix, "."+reservedPrefix)) {
			problems.add("labels", "label key '%s' has a reserved prefix", key)
		}
		if problem := labelValueProblem(labels[key]); problem != "" {
			problems.add("labels", "label value '%s' is invalid: %s", labels[key], problem)
		}
	}
}

// labelKeyProblem says what is wrong with a key, nothing when it is good.
func labelKeyProblem(key string) string {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	switch {
	case !labelName.MatchString(name):
		return "a name has 1 to 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or digit"
	case found && !isSubdomain(prefix):
		return "a prefix is a DNS subdomain of at most 253 characters"
	}
	return ""
}

func labelValueProblem(value string) string {
	if value == "" || labelName.MatchString(value) {
		return ""
	}
	return "a value is empty or has up to 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or digit"
}

func isSubdomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for part := range strings.SplitSeq(text, ".") {
		if !dnsLabel.MatchString(part) {
			return false
		}
	}
	return true
}

// checkHostname reports a server name that is no hostname as RFC 1123 has it.
func checkHostname(problems *fields, name string) {
	problem := ""
	switch {
	case name == "":
		problem = "must not be empty"
	case len(name) > 253:
		problem = "must have at most 253 characters"
	default:
		for part := range strings.SplitSeq(name, ".") {
			if !hostnamePart.MatchString(part) {
				problem = fmt.Sprintf("'%s' is not a valid hostname as per RFC 1123", name)
				break
			}
		}
	}
	if problem != "" {
		problems.add("name", "%s", problem)
	}
}
