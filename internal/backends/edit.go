// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"reflect"
	"slices"
)

// Editor changes a machine in place: its name, its labels, its private network and
// the cloud's own options. Without it the name and the network replace a machine, and
// the rest is recorded only.
//
// What an edit leaves out is left alone: a wish whose Labels are nil, whose Network is
// empty or that lacks an option says nothing about it, and the machine keeps what it
// has. An empty list is a wish: none of ours. Where a machine can have several of a
// thing (labels, tags, firewalls, networks), those that the earlier wish named and the
// new one doesn't are taken away, those that the new one names are put there, and all
// others are another tool's and stay.
//
// The offer, the image, the region, keys, user data, power and protection aren't an
// Editor's: see [Resizer], [Reinstaller], [Powerer] and [Protector].
type Editor interface {
	// PlanEdit says what it takes to bring a machine from one wish to another: one
	// effect for every input that differs. [Differing] names them. It makes no call and
	// is deterministic. Values that aren't known yet ([Unknown]) are taken to become
	// others; that they may replace nothing is its caller's to see to.
	PlanEdit(from, to MachineSpec) []Effect

	// CheckEdit reports what would keep the edit from being made, as far as calls that
	// change nothing can tell: a name that another object holds ([NameTaken] in an
	// [Error]'s chain, at name). What [Backend.CheckMachine] reports needn't be
	// repeated. Warnings are what is worth a look and stops nothing. The error is for
	// what can't be asked. A plan calls it once for a machine that changes.
	CheckEdit(ctx context.Context, m Machine, from, to MachineSpec) (warnings []string, issues []*Error, err error)

	// Shown is what the cloud shows of the inputs that to says something about: to, with
	// the machine's own name, network, labels and options in the place of the wished. Of
	// labels, tags and other things that a machine can have several of, it has those
	// that to names and the machine has; an option that can't be read is as to says. A
	// plan that takes over a machine it knows nothing of plans the edit from there.
	Shown(ctx context.Context, m Machine, to MachineSpec) (MachineSpec, error)

	// Edit brings the machine from one wish to another, and returns it as the cloud
	// shows it then. It looks at the machine first and does only what is missing, so
	// that an edit that was interrupted anywhere is finished by calling it again, also
	// from another wish than the one it began with, or with from equal to to. It is
	// called in these cases too, and should cost one read then. A call that needs the
	// machine off is preceded by off, and only where the call has to be made.
	//
	// to.Marks are those that the machine carries at the end, Claim and Complete
	// included. With another name their key is another one: where name and marks can't
	// be written by one call, the new key goes on before the name changes, and the old
	// one off after that, so that every step shows that it isn't finished. A
	// name that another object holds is a [NameTaken], before anything was changed.
	//
	// With an error it returns the machine as last seen.
	Edit(ctx context.Context, m Machine, from, to MachineSpec, off PowerDown) (Machine, error)
}

// Resizer gives a machine another offer in place. Without it another offer replaces
// the machine.
type Resizer interface {
	// CheckResize reports what keeps the machine from becoming to.Offer, at plan time:
	// another architecture, a disk smaller than the machine's, an offer that its region
	// doesn't have, each at offer with near alternatives as the remedy. Warnings say
	// what a resize does besides: a disk that grows and never shrinks again, one that
	// stays smaller than the offer's. That the machine restarts is said above the
	// contract. growDisk is the user's resize_disk. The error is for a catalog or a
	// machine that can't be read.
	CheckResize(ctx context.Context, m Machine, to MachineSpec, growDisk bool) (warnings []string, issues []*Error, err error)

	// Resize makes the machine one of to.Offer, and returns it as the cloud shows it
	// then. It looks at the machine first: one that is of that offer already is left
	// alone, and off isn't called. The disk grows only with growDisk. Whether the machine
	// runs afterwards is its caller's to see to. With an error it returns the machine as
	// last seen.
	Resize(ctx context.Context, m Machine, to MachineSpec, growDisk bool, off PowerDown) (Machine, error)
}

// PowerDown switches the machine off that is being edited or resized, the guest asked
// first, and returns once it is off. Of one that is off it does nothing. Whoever gave
// it switches the machine on again, also after an error.
type PowerDown func(ctx context.Context) error

// Takes is what it takes to change an input of a machine.
type Takes int

// What it may take.
const (
	// InPlace: the machine runs on.
	InPlace Takes = iota
	// Restart: the machine is switched off for it and on again.
	Restart
	// NextCreation: this cloud reads the input when a machine is made. A change is
	// recorded, with a warning.
	NextCreation
	// Replace: the machine is destroyed and another one made. It is for what must not
	// merely be recorded: where a machine is, not what it has.
	Replace
)

// Effect is what becomes of one changed input.
type Effect struct {
	// Path is the input: {"name"}, {"labels"}, {"network_id"}, or one of the cloud's own
	// at its first level, {"hetzner_cloud", "networks"}.
	Path  Path
	Takes Takes
	// Addresses: the machine's addresses may be others afterwards, so that a plan doesn't
	// know them.
	Addresses bool
	// Note is what a plan says about it besides, a sentence such as "The public IPv4
	// address is released and can't be had again." It may be empty.
	Note string
}

// Differing are the inputs an [Editor] is asked about in which to differs from from,
// as the paths of [Effect]: the name, labels, network, and the options of a manifest's
// fields below attribute, in this order. What to leaves out doesn't differ, nor does an
// order without a meaning. A value that isn't known yet does, but for an attribute of
// which nothing is known.
func Differing(from, to MachineSpec, attribute string, fields []Field) []Path {
	var out []Path
	if to.Name != from.Name || !to.Knows("name") {
		out = append(out, Path{"name"})
	}
	if to.Labels != nil && !sameLabels(from.Labels, to.Labels) || !to.Knows("labels") {
		out = append(out, Path{"labels"})
	}
	if to.Network != "" && to.Network != from.Network || !to.Knows("network_id") {
		out = append(out, Path{"network_id"})
	}
	for _, f := range fields {
		want, wished := to.Options[f.Name]
		if wished && !sameValue(f, from.Options[f.Name], want) {
			out = append(out, Path{attribute, f.Name})
		}
	}
	return out
}

func sameLabels(a, b map[string]string) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// sameValue compares two values of a field; sets without their order.
func sameValue(f Field, a, b any) bool {
	switch f.Type {
	case TypeStringSet:
		x, y := textsOf(a), textsOf(b)
		slices.Sort(x)
		slices.Sort(y)
		return (a == nil) == (b == nil) && known(a) && known(b) && slices.Equal(slices.Compact(x), slices.Compact(y))
	case TypeObject:
		x, xOK := a.(Values)
		y, yOK := b.(Values)
		return xOK && yOK && sameObject(f.Fields, x, y)
	case TypeObjectList:
		x, xOK := a.([]any)
		y, yOK := b.([]any)
		return xOK && yOK && slices.EqualFunc(x, y, func(v, w any) bool {
			return sameValue(Field{Type: TypeObject, Fields: f.Fields}, v, w)
		})
	default:
		return known(a) && known(b) && reflect.DeepEqual(a, b)
	}
}

func sameObject(fields []Field, a, b Values) bool {
	for _, f := range fields {
		v, inA := a[f.Name]
		w, inB := b[f.Name]
		if inA != inB || inA && !sameValue(f, v, w) {
			return false
		}
	}
	return true
}

func textsOf(v any) []string { return Values{"": v}.Strings("") }
