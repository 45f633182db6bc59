// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// DefaultTagPrefix is the managed marker, and what all our other tags begin with.
const DefaultTagPrefix = "better-compute"

// maxTag is the API's longest tag.
const maxTag = 255

// tagForm is what a tag may be (OpenAPI, tags_create). A tag has one name: what the
// clouds with labels call key and value is joined by a colon.
var tagForm = regexp.MustCompile(`^[a-zA-Z0-9_:-]+$`)

// The tags of [backends.Marks], behind the prefix and a colon. Those with a value
// have another colon and the value.
const (
	tagKey      = "key"
	tagAccount  = "account"
	tagPool     = "pool"
	tagDigest   = "digest"
	tagClaim    = "claim"
	tagVolume   = "volume"            // of a snapshot: its volume's name
	tagGoes     = "goes-with-machine" // of a volume, without a value
	tagComplete = "complete"          // without a value
)

// tagNames writes marks as tags and reads them back. The API ignores the case of
// tags and answers with the first spelling there ever was (doctl#333), so ours are
// lower case and what comes back is compared so.
type tagNames struct{ prefix string }

// name is a tag of ours: a mark, and its value if it has one.
func (t tagNames) name(mark ...string) string {
	return strings.ToLower(strings.Join(append([]string{t.prefix}, mark...), ":"))
}

// ours tells whether a tag is one of our marks, or would read as one.
func (t tagNames) ours(tag string) bool {
	tag = strings.ToLower(tag)
	return tag == t.prefix || strings.HasPrefix(tag, t.prefix+":")
}

// read is the zero value for an object without the managed marker. Of two values of
// one mark the smallest counts: so two who take over at the same time agree on who
// has won (DESIGN.md §6).
func (t tagNames) read(tags []string) backends.Marks {
	var m backends.Marks
	for _, tag := range tags {
		tag = strings.ToLower(tag)
		if tag == t.prefix {
			m.Managed = true
			continue
		}
		rest, ok := strings.CutPrefix(tag, t.prefix+":")
		if !ok {
			continue
		}
		mark, value, _ := strings.Cut(rest, ":")
		least := func(field *string) {
			m.Doubled = m.Doubled || value != "" && *field != "" && value != *field
			if value != "" && (*field == "" || value < *field) {
				*field = value
			}
		}
		switch mark {
		case tagKey:
			if other := max(m.Key, value); m.Key != "" && m.Key != value {
				m.OtherKey = other
			}
			least(&m.Key)
		case tagAccount:
			least(&m.Account)
		case tagPool:
			least(&m.Pool)
		case tagDigest:
			least(&m.Digest)
		case tagClaim:
			least(&m.Claim)
		case tagVolume:
			least(&m.Volume)
		case tagGoes:
			m.GoesWithMachine = true
		case tagComplete:
			m.Complete = true
		}
	}
	if !m.Managed {
		return backends.Marks{}
	}
	return m
}

// write is the tags of marks, in the order in which they are put on an object that
// exists: whoever finds it by the managed marker then finds all but completeness.
// An empty mark has no tag.
func (t tagNames) write(m backends.Marks) []string {
	var out []string
	valued := func(mark, value string) {
		if value != "" {
			out = append(out, t.name(mark, value))
		}
	}
	plain := func(set bool, mark ...string) {
		if set {
			out = append(out, t.name(mark...))
		}
	}
	valued(tagKey, m.Key)
	valued(tagAccount, m.Account)
	valued(tagPool, m.Pool)
	valued(tagDigest, m.Digest)
	valued(tagVolume, m.Volume)
	plain(m.GoesWithMachine, tagGoes)
	valued(tagClaim, m.Claim)
	plain(m.Managed)
	plain(m.Complete, tagComplete)
	return out
}

// labels are the tags that aren't marks, as labels: what [labelTag] makes a tag of,
// and the tag itself as a label without a value where that would not lead back to
// it, or where two tags would be one label.
func (t tagNames) labels(tags []string) map[string]string {
	out := map[string]string{}
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		if t.ours(tag) {
			continue
		}
		key, value, _ := strings.Cut(tag, ":")
		if _, taken := out[key]; taken || key == "" || labelTag(key, value) != tag {
			key, value = tag, ""
		}
		out[key] = value
	}
	return out
}

// labelTag is a label as a tag.
func labelTag(key, value string) string {
	if value == "" {
		return key
	}
	return key + ":" + value
}

// foreign are the tags of a wish that aren't marks, each once.
func foreign(labels map[string]string, raw []string) []string {
	var out []string
	add := func(tag string) {
		if !slices.ContainsFunc(out, func(t string) bool { return strings.EqualFold(t, tag) }) {
			out = append(out, tag)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		add(labelTag(key, labels[key]))
	}
	for _, tag := range raw {
		add(tag)
	}
	return out
}

// checkTag says what is wrong with a user's tag.
func checkTag(tag, prefix string) string {
	switch {
	case len(tag) > maxTag || !tagForm.MatchString(tag):
		return "The tag " + strconv.Quote(tag) + " can't be used: a tag of DigitalOcean is 1 to 255 letters, digits, colons, underscores and hyphens."
	case (tagNames{prefix}).ours(tag):
		return "The tag " + strconv.Quote(tag) + " is reserved: " + prefix +
			" and all that begins with " + prefix + ": are not for tags of your own."
	}
	return ""
}

// checkLabels reports the labels that can't be tags, or that are not the user's to
// set, in the order of their keys. Nothing is mangled: what a tag can't hold is
// refused.
func (t tagNames) checkLabels(labels map[string]string) []*backends.Error {
	var issues []*backends.Error
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		tag := labelTag(key, labels[key])
		problem := checkTag(tag, t.prefix)
		other, taken := seen[strings.ToLower(tag)]
		switch {
		case strings.Contains(key, ":"):
			problem = "The label key " + strconv.Quote(key) + " can't have a colon: it is what divides key and value in a tag of DigitalOcean."
		case key == "" || problem != "" && !t.ours(tag):
			problem = "The label " + strconv.Quote(key) + " = " + strconv.Quote(labels[key]) + " can't be the tag " + strconv.Quote(tag) +
				": a tag of DigitalOcean is 1 to 255 letters, digits, colons, underscores and hyphens."
		case problem == "" && taken:
			problem = "The labels " + strconv.Quote(other) + " and " + strconv.Quote(key) + " are one tag: DigitalOcean ignores the case of tags."
		}
		if problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("labels"))
		}
		seen[strings.ToLower(tag)] = key
	}
	return issues
}
