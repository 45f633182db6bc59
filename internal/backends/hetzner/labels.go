// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// reservedPrefix is the vendor's own (https://docs.hetzner.cloud, "Labels").
const reservedPrefix = "hetzner.cloud"

const (
	maxLabelPart   = 63
	maxLabelPrefix = 253
)

// labelPart is a label's name or a value that isn't empty; labelPrefixForm the DNS
// subdomain before the "/". The library's own check lets malformed prefixes pass.
var (
	labelPart       = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	labelPrefixForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$`)
)

// checkLabels reports the user's labels that Hetzner would refuse, or that are not
// the user's to set, in the order of their keys.
func checkLabels(labels map[string]string, ours string) []*backends.Error {
	var issues []*backends.Error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		problem := checkLabelKey(key, ours)
		if problem == "" {
			problem = checkLabelValue(key, labels[key])
		}
		if problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("labels"))
		}
	}
	return issues
}

func checkLabelKey(key, ours string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	}
	switch {
	case prefixed && (strings.EqualFold(prefix, ours) || strings.EqualFold(prefix, reservedPrefix)):
		return fmt.Sprintf("The label key %q has a reserved prefix: %s/ and %s/ are not for labels of your own.", key, ours, reservedPrefix)
	case prefixed && (len(prefix) > maxLabelPrefix || !labelPrefixForm.MatchString(prefix)):
		return fmt.Sprintf("The label key %q has a prefix that is not a domain name in lower case.", key)
	case len(name) > maxLabelPart || !labelPart.MatchString(name):
		return fmt.Sprintf("The label key %q can't be used: it is not 1 to 63 letters, digits, dots, underscores and hyphens with a letter or digit at both ends.", key)
	}
	return ""
}

func checkLabelValue(key, value string) string {
	if value != "" && (len(value) > maxLabelPart || !labelPart.MatchString(value)) {
		return fmt.Sprintf("The label %q can't have its value: %q is neither empty nor 1 to 63 letters, digits, dots, underscores and hyphens with a letter or digit at both ends.", key, value)
	}
	return ""
}
