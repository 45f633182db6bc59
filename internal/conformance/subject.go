// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"cmp"
	"context"
	"regexp"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// The times of a run where a [Subject] sets none.
const (
	DefaultCaseTimeout    = 15 * time.Minute
	DefaultCleanupTimeout = 5 * time.Minute
)

// The sizes of volumes in GiB where a [Subject] sets none: the least that the known
// clouds make. Growth is by how much they are grown.
const (
	DefaultVolumeGiB = 10
	DefaultShareGiB  = 50
	Growth           = 10
)

// Subject is what the cases are run against. Account, Environment, Offer, Image
// and Prefix are required.
type Subject struct {
	// Account names the account, its cloud and its configuration: a parsed account
	// uri.
	Account reference.Reference
	// Environment is what the backend gets. A nil transport is the real network.
	Environment backends.Environment

	Offer  string // an offer that create accepts
	Image  string // an image that create accepts with that offer
	Region string // where machines are made; "" is the account's
	// Options are the cloud's own options of the machines, such as a network;
	// manifest defaults are filled in.
	Options backends.Values

	// Network is the cloud's own id of a network in the region of the shared volumes,
	// which are made in it. Without it they aren't tested.
	Network string
	// ShareRegion is where shared volumes are made; "" is where the machines are, which
	// is where block volumes are made always.
	ShareRegion string
	// VolumeGiB and ShareGiB are the sizes of block and shared volumes, which must be
	// able to grow by [Growth]; 0 is [DefaultVolumeGiB] and [DefaultShareGiB].
	VolumeGiB, ShareGiB int64

	// Prefix begins the names of everything that is made: 1 to 24 lower-case letters,
	// digits and inner hyphens, a letter first. No two runs at the same time may share
	// it.
	Prefix string

	// PowerUnobservable: the backend can act on power and not report it, so whether a
	// machine stopped isn't looked at. (The specification's powerObservable: false.)
	PowerUnobservable bool
	// WrongSecrets resolves references to a credential that the cloud must refuse.
	// Without it that isn't tested.
	WrongSecrets backends.Secrets

	// Only selects cases by name; nil selects all.
	Only *regexp.Regexp

	CaseTimeout    time.Duration // of one case; 0 is [DefaultCaseTimeout]
	CleanupTimeout time.Duration // of cleaning up after one; 0 is [DefaultCleanupTimeout]

	// Claim makes the claims of a case, n counting from 0; nil makes random ones. A
	// recording needs the same ones again at its replay: see [FixedClaims].
	Claim func(caseName string, n int) string

	// Progress is told each result when it is there, in order; may be nil.
	Progress func(Result)
}

var prefixForm = regexp.MustCompile(`^[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?$`)

// PrefixProblem tells what is wrong with a prefix; "" when nothing is.
func PrefixProblem(prefix string) string {
	if !prefixForm.MatchString(prefix) {
		return "A prefix is 1 to 24 lower-case letters, digits and hyphens, a letter first and a letter or digit last."
	}
	return ""
}

// check finds what keeps a run from starting.
func (s *Subject) check() error {
	invalid := func(problem string) error { return backends.Errorf(backends.InvalidInput, "%s", problem) }
	switch {
	case s.Account.Kind != reference.KindAccount || s.Account.Definition() == nil:
		return invalid("The subject's account is not a parsed account uri.")
	case s.Environment.Secrets == nil:
		return invalid("The subject's environment has no secrets.")
	case s.Offer == "":
		return invalid("The subject has no offer.")
	case s.Image == "":
		return invalid("The subject has no image.")
	case s.VolumeGiB < 0 || s.ShareGiB < 0:
		return invalid("The subject's volumes have a negative size.")
	}
	if problem := PrefixProblem(s.Prefix); problem != "" {
		return invalid(problem)
	}
	return nil
}

// region is where the subject's machines are made.
func (s *Subject) region() string {
	if s.Region != "" {
		return s.Region
	}
	return s.Account.Definition().Region(s.Account.FullConfig())
}

// volumeRegion is where the subject's volumes of a kind are made.
func (s *Subject) volumeRegion(kind backends.VolumeKind) string {
	if kind == backends.SharedVolume && s.ShareRegion != "" {
		return s.ShareRegion
	}
	return s.region()
}

// sizeGiB is the size of the subject's volumes of a kind.
func (s *Subject) sizeGiB(kind backends.VolumeKind) int64 {
	if kind == backends.SharedVolume {
		return cmp.Or(s.ShareGiB, DefaultShareGiB)
	}
	return cmp.Or(s.VolumeGiB, DefaultVolumeGiB)
}

type caseKey struct{}

// CaseOf is the name of the case on whose behalf a request is made, "" outside of
// any. The context of every request says it, cleaning up included, so that a
// recording can tell the requests of cases apart.
func CaseOf(ctx context.Context) string {
	name, _ := ctx.Value(caseKey{}).(string)
	return name
}
