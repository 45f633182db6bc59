// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// namedInstance is one element of a volume's `instances`: a uri, and the machine
// that it names. Attachments are compared by the machine: the same one may be
// spelled with or without its id, and with another configuration of its account.
type namedInstance struct {
	index   int // among the elements
	uri     string
	ref     reference.Reference
	machine string // the cloud's id; "" while nothing is known to carry the instance's key
}

// namedInstances reads the elements of `instances` that are known. The error is of
// all that is wrong with them by themselves: no uri of an instance, or the same
// instance twice. With an account, one of another account is refused too.
func namedInstances(registry *backends.Registry, r record, account *reference.Reference) ([]namedInstance, error) {
	var out []namedInstance
	var wrong []error
	for i, uri := range r.texts("instances") {
		ref, err := reference.ParseKind(registry, reference.KindInstance, uri)
		switch {
		case err != nil:
			wrong = append(wrong, inAttribute("instances", uri, err))
			continue
		case account != nil && ref.AccountID() != account.AccountID():
			wrong = append(wrong, backends.Errorf(backends.InvalidInput, "The instance %q is of another account (%s) than the volume (%s).",
				ref.Instance, accountName(ref), accountName(*account)).At("instances", i).
				WithRemedy("A volume is attached to instances of its own account: name one of those, or make the volume in a pool of that account."))
		}
		out = append(out, namedInstance{index: i, uri: uri, ref: ref, machine: ref.MachineID})
	}
	return out, errors.Join(append(wrong, repeated(out))...)
}

// recordedInstances are the instances that a state names. They were checked when
// they were recorded. The machine of one that is named without it is the one that
// the state saw: it may be gone by now, or going.
func recordedInstances(registry *backends.Registry, state record) []namedInstance {
	named, _ := namedInstances(registry, state, nil)
	for i, n := range named {
		for _, row := range attachmentsOf(state) {
			if n.machine == "" && row["instance_id"] == n.ref.ID() {
				named[i].machine, _ = row["machine_id"].(string)
			}
		}
	}
	return named
}

func accountName(r reference.Reference) string {
	return r.Cloud + "://" + r.Tenant + "/" + r.Account
}

// repeated is the error of an instance that stands there twice, by its id or by its
// machine.
func repeated(named []namedInstance) error {
	for i, n := range named {
		for _, m := range named[:i] {
			if n.ref.ID() == m.ref.ID() || n.machine != "" && n.machine == m.machine {
				return backends.Errorf(backends.InvalidInput, "instances names the instance %q twice.", n.ref.Instance).At("instances", n.index).
					WithRemedy("Name it once, by bettercompute_instance.<name>.uri.")
			}
		}
	}
	return nil
}

// tooMany is the error of a block volume that is to be on more than one instance.
func tooMany(kind backends.VolumeKind, named []namedInstance) error {
	if kind != backends.BlockVolume || len(named) < 2 {
		return nil
	}
	return backends.Errorf(backends.InvalidInput, "A block volume is on at most one instance; instances names %d.", len(named)).At("instances", named[1].index).
		WithRemedy("Name one, or make the volume with kind = \"shared\" where the cloud has shared volumes.")
}

// lookUp finds the machines of those instances that are named without one, by their
// keys.
func lookUp(ctx context.Context, account *reconcile.Account, named []namedInstance) error {
	for i, n := range named {
		if n.machine != "" {
			continue
		}
		m, err := account.Find(ctx, n.ref.PoolRef().ID(), n.ref.ID())
		if err != nil {
			return err
		}
		if m != nil {
			named[i].machine = m.ID
		}
	}
	return nil
}

// machines are the cloud's ids of the machines that are known.
func machines(named []namedInstance) []string {
	var out []string
	for _, n := range named {
		if n.machine != "" {
			out = append(out, n.machine)
		}
	}
	return out
}

// sameMachines tells whether two lists name the same instances: by their machines,
// or by their ids where no machine is known.
func sameMachines(a, b []namedInstance) bool {
	return len(a) == len(b) && len(missing(a, b)) == 0 && len(missing(b, a)) == 0
}

// missing are those of a that b doesn't name.
func missing(a, b []namedInstance) []namedInstance {
	var out []namedInstance
	for _, n := range a {
		if !slices.ContainsFunc(b, n.same) {
			out = append(out, n)
		}
	}
	return out
}

// same tells whether both are the same machine. An instance that was made anew has
// the id of the old one and another machine.
func (n namedInstance) same(m namedInstance) bool {
	if n.machine != "" && m.machine != "" {
		return n.machine == m.machine
	}
	return n.ref.ID() == m.ref.ID()
}

// checkAttachable refuses instances that can't have the volume: ones without a
// machine, of another region or network, or being deleted. It reads their machines.
func checkAttachable(ctx context.Context, account *reconcile.Account, spec backends.VolumeSpec, named []namedInstance) (
	[]*backends.Error, error) {
	var issues []*backends.Error
	// The paths of what comes back are the indexes here.
	read := make([]*backends.Machine, 0, len(named))
	for _, n := range named {
		for len(read) < n.index {
			read = append(read, nil)
		}
		if n.machine == "" {
			issues = append(issues, noMachine(n))
			continue
		}
		m, err := account.Read(ctx, n.ref.PoolRef().ID(), n.machine)
		switch {
		case backends.HasCode(err, backends.NotFound):
			issues = append(issues, noMachine(n))
			continue
		case err != nil:
			return issues, err
		}
		read = append(read, &m)
	}
	return append(issues, account.CheckAttachable(spec, read)...), nil
}

func noMachine(n namedInstance) *backends.Error {
	return backends.Errorf(backends.InvalidInput, "The instance %q has no machine in the cloud.", n.ref.Instance).At("instances", n.index).
		WithRemedy("Use the attribute uri of an instance of this configuration, or check the names in the uri.")
}
