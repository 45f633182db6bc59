// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Need is something without which a case is skipped.
type Need string

// The needs that are abilities, in the words of [backends.Capabilities].
const (
	NeedList             Need = "list"
	NeedPower            Need = "power"
	NeedReinstall        Need = "reinstall"
	NeedEdit             Need = "edit"
	NeedResize           Need = "resize"
	NeedProtection       Need = "deletionProtection"
	NeedVolumes          Need = "volumes"
	NeedSharedVolumes    Need = "sharedVolumes"
	NeedSnapshots        Need = "snapshots"
	NeedSharedSnapshots  Need = "sharedSnapshots"
	NeedSelectiveDestroy Need = "selectiveDestroy"
)

// The other needs.
const (
	NeedTidying          Need = "tidying"
	NeedPhases           Need = "lists by phase"
	NeedNetwork          Need = "network"
	NeedObservablePower  Need = "observable power"
	NeedWrongCredentials Need = "wrong credentials"
)

// Case is one sentence of the contract.
type Case struct {
	Name  string // kind/what, lower case
	About string // the sentence
	Needs []Need
	// Vital: when it fails, the others can't tell anything and are skipped.
	Vital bool
	// Run is nil when the backend keeps the sentence; an error says how it doesn't.
	// It leaves what it made to the runner.
	Run func(ctx context.Context, t *Trial) error
}

// Cases are all cases, in the order in which they run: what is cheap and what the
// others rest on comes first.
func Cases() []Case {
	return slices.Concat(definitionCases(), catalogCases(), createCases(), takeOverCases(),
		readCases(), markCases(), changeCases(), editCases(), deleteCases(),
		diskCases(blockDisks), volumeCases(), volumeEditCases(), attachCases(), goingCases(), diskCases(sharedDisks), shareCases(),
		snapshotCases(blockDisks), blockSnapshotCases(), snapshotCases(sharedDisks), sharedSnapshotCases(), tidyCases())
}

// missing says why a case can't be run on a subject; "" when it can.
func (s *Subject) missing(need Need, b backends.Backend) string {
	switch need {
	case NeedTidying:
		if _, ok := b.(backends.Tidier); !ok {
			return "the cloud keeps nothing of deleted objects that would have to be tidied up"
		}
	case NeedPhases:
		if _, ok := b.(backends.PhaseLister); !ok {
			return "the cloud can't select machines by what they are waited for"
		}
	case NeedNetwork:
		if s.Network == "" {
			return "no network was given"
		}
	case NeedWrongCredentials:
		if s.WrongSecrets == nil {
			return "no wrong credential was given"
		}
	case NeedObservablePower:
		if s.PowerUnobservable {
			return "the subject's power is not observable"
		}
	default:
		if !slices.Contains(backends.Capabilities(b), string(need)) {
			return fmt.Sprintf("the backend has no %q", need)
		}
	}
	return ""
}

// skipped ends a case that finds only while it runs that it can't be.
type skipped string

func (s skipped) Error() string { return string(s) }

// wrong says how the contract is broken.
func wrong(format string, args ...any) error { return fmt.Errorf(format, args...) }

// wantCode is wrong unless err has one of the codes.
func wantCode(what string, err error, codes ...backends.Code) error {
	for _, code := range codes {
		if backends.HasCode(err, code) {
			return nil
		}
	}
	if err == nil {
		return wrong("%s succeeded; it must fail with %s", what, codes[0])
	}
	return wrong("%s must fail with %s; it failed with: %w", what, codes[0], err)
}
