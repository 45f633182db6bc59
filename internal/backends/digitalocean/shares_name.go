// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"regexp"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Shares and their snapshots have no tags, so that their marks are in their names
// (DESIGN.md §6): bc-KEY-POOL-ACCOUNT-CLAIM, the ids without their prefixes, the
// last three by their first characters. That is 62 characters of 64.
const (
	markedPrefix = "bc"
	keyLength    = 26 // all of an id behind its prefix
	shortLength  = 10 // of a pool's and an account's
)

// The prefixes of the ids that are in names (DESIGN.md §4).
const (
	idAccount  = "pacct_"
	idPool     = "pool_"
	idShare    = "pvol_"
	idSnapshot = "psnap_"
)

var (
	// idForm is an id behind its prefix: lower-case Crockford base32.
	idForm    = regexp.MustCompile(`^[0-9a-hjkmnp-tv-z]+$`)
	claimForm = regexp.MustCompile(`^[0-9a-z]+$`)
	// markedForm is read strictly: a name that merely looks like one of ours would
	// make a stranger's share ours.
	markedForm = regexp.MustCompile(`^` + markedPrefix +
		`-([0-9a-hjkmnp-tv-z]{26})-([0-9a-hjkmnp-tv-z]{10})-([0-9a-hjkmnp-tv-z]{10})-([0-9a-z]{10})$`)
)

// markedName is the name that holds marks. kind is the prefix of the key.
func markedName(kind string, m backends.Marks) (string, error) {
	bare := func(id, prefix string, length int) (string, bool) {
		rest, ok := strings.CutPrefix(id, prefix)
		if !ok || len(rest) < length || !idForm.MatchString(rest) {
			return "", false
		}
		return rest[:length], true
	}
	key, okKey := bare(m.Key, kind, keyLength)
	pool, okPool := bare(m.Pool, idPool, shortLength)
	account, okAccount := bare(m.Account, idAccount, shortLength)
	if !okKey || len(m.Key) != len(kind)+keyLength || !okPool || !okAccount ||
		len(m.Claim) < backends.FixedClaimLength || !claimForm.MatchString(m.Claim) {
		return "", backends.Errorf(backends.InvalidState, "The marks of %q can't be put into a name.", m.Key)
	}
	return strings.Join([]string{markedPrefix, key, pool, account, m.Claim[:backends.FixedClaimLength]}, "-"), nil
}

// namedMarks are the marks that a name holds; the zero value when it holds none.
func namedMarks(kind, name string) backends.Marks {
	parts := markedForm.FindStringSubmatch(name)
	if parts == nil {
		return backends.Marks{}
	}
	return backends.Marks{
		Managed: true, Fixed: true,
		Key: kind + parts[1], Pool: idPool + parts[2], Account: idAccount + parts[3], Claim: parts[4],
	}
}
