// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"fmt"
)

// Backend is a cloud, reached with one account's configuration. All methods are
// safe for concurrent use, honour ctx, and fail with an [Error].
//
// Reads and idempotent calls retry by [Retry] inside the method; MakeMachine
// never sends a second request after one that may have been carried out.
type Backend interface {
	// Prove shows that the credentials work, with one cheap call.
	Prove(ctx context.Context) error

	// Offers lists what the query selects, each offer once per region. The catalog
	// behind it is fetched at most once in ten minutes.
	Offers(ctx context.Context, query OfferQuery) ([]Offer, error)

	// CheckForm reports everything that is wrong with a wish and that no call is
	// needed to see, each issue with its path (Path{"labels"},
	// Path{"hetzner_cloud", "networks", 0, "ip"}): a name or label that the cloud
	// takes from nobody, a malformed id, user data that is too long. Empty and
	// [Unknown] fields are passed over. It makes no call and resolves no secret, so
	// it also serves where the catalog can't be read, and changes that the catalog
	// has no say in.
	CheckForm(spec MachineSpec) []*Error

	// CheckMachine holds a wish against the catalog too, and against the objects of
	// the cloud that it names, and reports what it finds and what [Backend.CheckForm]
	// does at once. Empty and [Unknown] fields are passed
	// over. The error is for a catalog that can't be read; the issues of the form
	// come with it. It makes nothing.
	CheckMachine(ctx context.Context, spec MachineSpec) (Resolved, []*Error, error)

	// FindMachines are the managed machines that carry an idempotency key, by age,
	// the oldest first.
	FindMachines(ctx context.Context, key string) ([]Machine, error)

	// MakeMachine makes one machine, all of spec and its marks in the one call
	// (marks without Complete), and returns it before it runs. It does not look the
	// key up. A name that the cloud wants unique and another object holds is a
	// [NameTaken].
	//
	// With an error it returns the machine, as far as it is known, if the cloud may be
	// making it all the same and only the wait for that has ended (an interrupt, a
	// time-out): at least its id and our marks. It is recorded then, since nothing
	// but its id may lead to it, so that the next run finishes or deletes it. Should it
	// not be there then, it is gone; should its id be another's, it is a stranger. With
	// any other error the machine is the zero value.
	MakeMachine(ctx context.Context, spec MachineSpec) (Machine, error)

	// GetMachine is the machine with that id; NOT_FOUND when it is gone.
	GetMachine(ctx context.Context, id string) (Machine, error)

	// MarkMachine makes marks the machine's marks, as last seen in m, keeps what
	// isn't ours, and returns the machine as the cloud shows it then. With an error
	// it returns the machine as last seen.
	MarkMachine(ctx context.Context, m Machine, marks Marks) (Machine, error)

	// DeleteMachine asks the cloud to delete the machine. It returns before the
	// machine is gone; NOT_FOUND when it is gone already.
	DeleteMachine(ctx context.Context, m Machine) error
}

// Finisher is for a cloud where making a machine takes more than the one call:
// MakeMachine makes it findable by its key, FinishMachine does the rest.
type Finisher interface {
	// FinishMachine brings a machine that isn't complete to what spec wants. It is
	// called after MakeMachine and again when an interrupted create is taken up, so
	// it looks at what is there and does only what is missing. It doesn't wait for
	// the machine to run. With an error it returns the machine as last seen.
	FinishMachine(ctx context.Context, m Machine, spec MachineSpec) (Machine, error)
}

// Lister lists. Without it every read is a get.
type Lister interface {
	// ListMachines are the managed machines of an account or pool, in no order. A
	// machine can come twice when pages are read while others come and go.
	ListMachines(ctx context.Context, filter Filter) (Listing[Machine], error)
}

// Powerer changes power. It returns once the cloud has accepted the action; the
// machine's state shows when it is done.
type Powerer interface {
	// Power fails with UNSUPPORTED for an action that the cloud doesn't have.
	Power(ctx context.Context, m Machine, action PowerAction) error
}

// Reinstaller installs another image on the same machine and keeps its id and, as
// far as the cloud allows, its addresses. The disk is wiped. It returns when the
// cloud has done it, since the machine's state doesn't tell a reinstalled machine
// from one that waits for it; that the guest runs again is waited for by the caller.
type Reinstaller interface {
	Reinstall(ctx context.Context, m Machine, spec MachineSpec) error
}

// UserDataReinstaller is a [Reinstaller] that can hand the guest new user data.
type UserDataReinstaller interface {
	Reinstaller
	ReinstallWithUserData(ctx context.Context, m Machine, spec MachineSpec) error
}

// Remaker is for a cloud where a reinstallation destroys the machine and makes another
// under its id. A run that ended in between leaves none, which the next one makes.
type Remaker interface {
	Reinstaller
	// RemakeMachine is MakeMachine under the id of a machine that is gone. It is a
	// CONFLICT where something else has that id by now.
	RemakeMachine(ctx context.Context, id string, spec MachineSpec) (Machine, error)
}

// Sweeper is for a cloud where something that is made for a machine is kept apart from
// it, such as a file with its user data. It goes when the machine is deleted; a
// Sweeper also finds it when the machine was deleted by someone else.
type Sweeper interface {
	// SweepMachine removes what is kept for a machine with that key, which is gone.
	SweepMachine(ctx context.Context, key string) error
}

// Protector switches the cloud's deletion protection and waits for it.
type Protector interface {
	Protect(ctx context.Context, m Machine, protected bool) error
}

// Addresser is for a cloud whose answers about machines don't hold their addresses.
type Addresser interface {
	// PlannedAddresses are those that a wish fixes, known before the machine exists.
	PlannedAddresses(spec MachineSpec) []Address
	// ReadAddresses asks the guest. It doesn't wait; a guest that can't be asked has
	// none.
	ReadAddresses(ctx context.Context, m Machine) ([]Address, error)
}

// Diagnoser explains a machine that doesn't reach the state it should: it returns
// the error of an asynchronous action that failed since the machine was last
// changed, nil when it knows none.
type Diagnoser interface {
	Diagnose(ctx context.Context, m Machine) error
}

// NameTaken is the error of a name that another object of the cloud holds: a
// CONFLICT.
type NameTaken struct {
	// Holder holds it. Without an ID the cloud refuses the name and shows nothing that
	// has it, since its lists lag, or the credentials don't see it.
	Holder About
	// Refusal is what the cloud answered, where the holder isn't known.
	Refusal *Error
}

// Error says who holds the name.
func (e *NameTaken) Error() string { return e.Unwrap().Error() }

// Unwrap is the error in the contract's terms.
func (e *NameTaken) Unwrap() error {
	if e.Holder.ID == "" && e.Refusal != nil {
		return e.Refusal
	}
	holder := "an object that is not managed by Better Compute"
	if m := e.Holder.Marks; m.Managed {
		holder = fmt.Sprintf("a %s of the pool whose id is %s (account %s)", e.Holder.Noun, m.Pool, m.Account)
	}
	out := Errorf(Conflict, "The name %q is taken in the cloud by %s: %s.", e.Holder.Name, holder, e.Holder.ID).
		WithRemedy("Choose another name.")
	out.Details = map[string]any{e.Holder.Noun + "_id": e.Holder.ID}
	return out
}

// Capabilities are the abilities of a backend, in the specification's words,
// sorted.
func Capabilities(b Backend) []string {
	var out []string
	if _, ok := b.(Protector); ok {
		out = append(out, "deletionProtection")
	}
	if _, ok := b.(Editor); ok {
		out = append(out, "edit")
	}
	if _, ok := b.(Lister); ok {
		out = append(out, "list")
	}
	if _, ok := b.(Powerer); ok {
		out = append(out, "power")
	}
	if _, ok := b.(Reinstaller); ok {
		out = append(out, "reinstall")
	}
	if _, ok := b.(UserDataReinstaller); ok {
		out = append(out, "reinstallUserData")
	}
	if _, ok := b.(Resizer); ok {
		out = append(out, "resize")
	}
	if _, ok := b.(SelectiveDestroyer); ok {
		out = append(out, "selectiveDestroy")
	}
	if _, ok := b.(SharedSnapshotter); ok {
		out = append(out, "sharedSnapshots")
	}
	if _, ok := b.(SharedVolumer); ok {
		out = append(out, "sharedVolumes")
	}
	if _, ok := b.(Snapshotter); ok {
		out = append(out, "snapshots")
	}
	if _, ok := b.(Volumer); ok {
		out = append(out, "volumes")
	}
	return out
}

// Secrets resolves secret references.
type Secrets interface {
	// Resolve is the value behind a reference. An error never holds the value; its
	// code is INVALID_CONFIG and its reason secret.
	Resolve(ctx context.Context, reference string) (string, error)
	// Forget drops a value that the cloud refused, so that the next Resolve asks again.
	Forget(reference string)
}
