// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"
)

// The prefixes of ids.
const (
	accountPrefix  = "pacct_"
	poolPrefix     = "pool_"
	instancePrefix = "inst_"
	volumePrefix   = "pvol_"
	snapshotPrefix = "psnap_"
)

// idLength is the number of characters after the prefix: 130 bits of a hash.
const idLength = 26

// crockford is Crockford's base32 in lower case: no i, l, o and u.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// makeID hashes the parts, NUL-separated: no name can hold a NUL, so two lists of
// parts never run into the same text.
func makeID(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + crockford.EncodeToString(sum[:])[:idLength]
}

// AccountID is the id of an account: pacct_…. The cloud is the definition's id.
func AccountID(tenant, cloud, name string) string {
	return makeID(accountPrefix, tenant, cloud, name)
}

// PoolID is the id of a pool: pool_….
func PoolID(accountID, name string) string { return makeID(poolPrefix, accountID, name) }

// InstanceID is the id of an instance: inst_….
func InstanceID(poolID, name string) string { return makeID(instancePrefix, poolID, name) }

// VolumeID is the id of a volume: pvol_….
func VolumeID(poolID, name string) string { return makeID(volumePrefix, poolID, name) }

// SnapshotID is the id of a snapshot: psnap_….
func SnapshotID(volumeID, name string) string { return makeID(snapshotPrefix, volumeID, name) }

var idForm = regexp.MustCompile(`^(pacct|pool|inst|pvol|psnap)_[0-9A-Za-z]*$`)

// kindOfID tells what an id names, for who writes one where a uri belongs.
func kindOfID(text string) (Kind, bool) {
	m := idForm.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return map[string]Kind{
		"pacct": KindAccount, "pool": KindPool, "inst": KindInstance, "pvol": KindVolume, "psnap": KindSnapshot,
	}[m[1]], true
}
