// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"strings"
	"time"
)

// Object is a thing in a cloud that carries [Marks]: a [Machine], a [Volume] or a
// [Snapshot]. The rules of DESIGN.md §6 are the same for all of them, and know no
// more of one than this.
type Object interface{ About() About }

// About is what all kinds of objects have in common.
type About struct {
	Noun      string // what messages call it: machine, volume, snapshot
	ID        string // the cloud's own, as text
	Name      string
	State     State
	Message   string // why the state is error or unknown
	Created   time.Time
	Protected bool // deletion protection
	Marks     Marks
}

// Going tells whether the object is being deleted, or is gone.
func (a About) Going() bool { return a.State == StateDeleting || a.State == StateDeleted }

// Filter says what a list holds. Managed objects only, always. The zero value is
// everything managed that the credentials show.
type Filter struct {
	Account string // of this account's id
	Pool    string // of this pool's id
	// Phase narrows a list to the objects that are waited for. It is set only where the
	// cloud can select so: see [PhaseLister].
	Phase Phase
}

// Phase is a part of an object's life in which it is waited for.
type Phase string

// The phases.
const (
	PhaseMaking Phase = "making" // not marked complete yet
	PhaseGoing  Phase = "going"  // being deleted
)

// Holds tells whether an object with these marks is one that the filter selects, by
// all but its phase.
func (f Filter) Holds(m Marks) bool {
	same := func(id, shown string) bool {
		return id == "" || id == shown || m.Fixed && shown != "" && strings.HasPrefix(id, shown)
	}
	return m.Managed && same(f.Account, m.Account) && same(f.Pool, m.Pool)
}

// Marks is what every object we make carries in the cloud (DESIGN.md §6).
type Marks struct {
	Managed bool
	Key     string // the idempotency key: the resource's id
	Account string // the account's id
	Pool    string // the pool's id
	// Digest says what the object was made from; see [Digest].
	Digest string
	// Claim is a random token, also in the state of who owns the object.
	Claim string
	// Complete is written last.
	Complete bool
	// GoesWithMachine, of a volume: it is deleted with the machine that it is
	// attached to.
	GoesWithMachine bool
	// Volume, of a snapshot: the name of its volume, which it may outlive.
	Volume string
	// Fixed: the cloud has neither labels nor tags for such objects, so their marks are
	// in their names and never change. Then Account and Pool are the first characters
	// of the ids, Claim has [FixedClaimLength] characters, Digest is worked out from
	// what the object shows, and Complete follows its state. Such an object is adopted
	// by recording the claim that it has.
	Fixed bool
	// Doubled: the cloud shows two values of one mark, as a change leaves that was cut
	// off between putting one on and taking the other off. Marks are written without it,
	// and whoever writes them leaves one value of each.
	Doubled bool
	// OtherKey is the second key of an object that is Doubled by a rename which was cut
	// off. Under which of the two it is meant to be isn't known here: it is found by both.
	OtherKey string
}

// Carries tells whether an object with these marks carries a key.
func (m Marks) Carries(key string) bool { return m.Key == key || key != "" && m.OtherKey == key }

// OnePerKey is a store of a cloud that lets only one object with a key exist, since its
// names are unique where the key's name is: then nobody looks for a second one.
type OnePerKey interface{ OnePerKey() }

// ReusedIDs is a [Backend] whose machines' ids can be given to others later (a VMID).
// What has an id and doesn't carry our marks is then a stranger's, and ours is gone,
// unless it has the name of ours; elsewhere it is ours with its marks taken away.
type ReusedIDs interface{ IDsAreReused() }

// PhaseLister is a [Lister] whose cloud can select machines by their [Phase], so that
// waiting for some of a large pool doesn't list all of it.
type PhaseLister interface{ ListsPhases() }

// FixedClaimLength is the length of a claim that is in an object's name.
const FixedClaimLength = 10

// Tidier is for a cloud that keeps something of marks when no object carries them
// any more, such as tags.
type Tidier interface {
	// Tidy removes what the cloud keeps of those marks that are set (Key, Claim,
	// Digest, Volume, Account, Pool), as far as nothing carries them.
	Tidy(ctx context.Context, marks Marks) error
}
