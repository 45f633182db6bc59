// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
)

// DigestField is one input that an object was made from, as a [Digest] names it.
type DigestField byte

// The fields of a digest.
const (
	DigestFilesystem DigestField = 'f'
	DigestImage      DigestField = 'i'
	DigestKind       DigestField = 'k'
	DigestNetwork    DigestField = 'n'
	DigestOffer      DigestField = 'o'
	DigestRegion     DigestField = 'r'
	DigestSSHKeys    DigestField = 's'
	DigestUserData   DigestField = 'u'

	// These two are compared with the object itself and are in no digest.
	DigestSize   DigestField = 'z'
	DigestVolume DigestField = 'v'
)

// String is the field's name as users write it.
func (f DigestField) String() string {
	switch f {
	case DigestFilesystem:
		return "filesystem"
	case DigestImage:
		return "image"
	case DigestKind:
		return "kind"
	case DigestNetwork:
		return "network_id"
	case DigestOffer:
		return "offer"
	case DigestRegion:
		return "region"
	case DigestSSHKeys:
		return "ssh_keys"
	case DigestUserData:
		return "user_data"
	case DigestSize:
		return "size_gib"
	case DigestVolume:
		return "volume"
	default:
		return string(f)
	}
}

// crockford is the lower-case Crockford base32 alphabet.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// digestLength is how many base32 characters stand for one field: 30 bits tell
// two values apart, and eight fields fit a label value of 63 characters.
const digestLength = 6

// Digest says in a label's or tag's space what an object was made from: per
// non-empty field its letter and a few characters of hash, in the order of the
// letters, joined by "-". The hash is salted with the object's key, so equal
// inputs of two objects look different. Only lower-case letters, digits and "-"
// occur: what every cloud's labels and tags allow.
func Digest(key string, fields map[DigestField]string) string {
	var parts []string
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if v := fields[f]; v != "" {
			parts = append(parts, string(f)+digestHash(key, f, v))
		}
	}
	return strings.Join(parts, "-")
}

func digestHash(key string, f DigestField, value string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + string(f) + "\x00" + value))
	var b [digestLength]byte
	for i := range b {
		b[i] = crockford[sum[i]&31]
	}
	return string(b[:])
}

// DigestDifference names the fields in which two digests differ, in the order of
// their letters.
func DigestDifference(a, b string) []DigestField {
	x, y := digestParts(a), digestParts(b)
	var out []DigestField
	for f := range x {
		if x[f] != y[f] {
			out = append(out, f)
		}
	}
	for f := range y {
		if _, ok := x[f]; !ok {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	return out
}

// DigestMatches tells whether a digest says that a field had that value.
func DigestMatches(digest, key string, f DigestField, value string) bool {
	part, ok := digestParts(digest)[f]
	if value == "" {
		return !ok
	}
	return ok && part == digestHash(key, f, value)
}

// DigestKeep is a digest in which one field says what it says in another digest.
func DigestKeep(digest, from string, f DigestField) string {
	parts := digestParts(digest)
	delete(parts, f)
	if kept, ok := digestParts(from)[f]; ok {
		parts[f] = kept
	}
	out := make([]string, 0, len(parts))
	for _, g := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, string(g)+parts[g])
	}
	return strings.Join(out, "-")
}

// DigestRekey is a digest as an object with another key has it: what was made under one
// name is the same under another. A field is told by the values that it may have had; one
// that had none of them is left out.
func DigestRekey(digest, from, to string, values map[DigestField][]string) string {
	fields := map[DigestField]string{}
	for f := range digestParts(digest) {
		for _, v := range values[f] {
			if DigestMatches(digest, from, f, v) {
				fields[f] = v
			}
		}
	}
	return Digest(to, fields)
}

func digestParts(digest string) map[DigestField]string {
	out := map[DigestField]string{}
	for part := range strings.SplitSeq(digest, "-") {
		if len(part) > 1 {
			out[DigestField(part[0])] = part[1:]
		}
	}
	return out
}
