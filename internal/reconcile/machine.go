// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Wish is a machine to create.
type Wish struct {
	Pool reference.Reference // with the pool's keys: adopt and limits
	// Spec is the machine; its marks are set but for Complete. Its claim is fresh: the
	// same key and claim again is a retry and yields the same machine.
	Spec backends.MachineSpec
	// Offer is the spec's offer in the catalog, for limits on prices; may be nil.
	Offer *backends.Offer
	// Protect is the wish for deletion protection at an adoption; nil leaves it alone.
	Protect *bool
	// Refusal is why the machine can't be made now, such as an offer that is out of
	// stock; nil when it can. It doesn't keep what exists from being taken up or over.
	Refusal error
}

// Created is what became of a wish. With an error it holds what is there all the
// same: a machine with an id exists and must be recorded, unless the error is a
// CONFLICT.
type Created struct {
	Machine backends.Machine
	// Adopted: a complete machine was taken over, so what failed after that must
	// never have it replaced.
	Adopted bool
	// AsWanted: the machine is as it was wanted; only its completion mark could not be
	// written, which an update makes up for.
	AsWanted bool
}

// Create makes a machine, or takes up, or takes over the one that carries the
// wish's key, by the rules of DESIGN.md §6, and waits until it runs (or, when the
// spec doesn't start it, is there and stopped).
func (a *Account) Create(ctx context.Context, w Wish) (Created, error) {
	pool := w.Pool.PoolRef().ID()
	made, err := a.machines.create(ctx, recipe[backends.Machine]{
		pool: w.Pool, marks: w.Spec.Marks, refusal: w.Refusal,
		reserve: func(ctx context.Context) (func(), error) {
			return a.Reserve(ctx, w.Pool, w.Spec.Marks.Key, w.Offer)
		},
		make:    func(ctx context.Context) (backends.Machine, error) { return a.Backend.MakeMachine(ctx, w.Spec) },
		prepare: a.prepareMachine(pool, w.Spec),
		lift: func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
			if !m.Protected {
				return m, nil
			}
			return a.protect(ctx, m, false)
		},
		differs: func(m backends.Machine) []backends.DigestField {
			if m.Offer != "" && w.Spec.Offer != "" && m.Offer != w.Spec.Offer {
				return []backends.DigestField{backends.DigestOffer} // it was resized
			}
			return nil
		},
		adopted: func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
			return a.adoptedMachine(ctx, pool, m, w)
		},
	})
	return Created{Machine: made.object, Adopted: made.adopted, AsWanted: made.asWanted}, err
}

// prepareMachine brings a machine to completion: what making left to do, the wait,
// and protection. The machine is locked by the caller.
func (a *Account) prepareMachine(pool string, spec backends.MachineSpec) func(context.Context, backends.Machine) (backends.Machine, error) {
	return func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
		claim := m.Marks.Claim
		if f, ok := a.Backend.(backends.Finisher); ok {
			done, err := f.FinishMachine(ctx, m, spec)
			if done.ID != "" {
				m = done
			}
			if err != nil {
				return m, err
			}
			a.machines.reader.wrote(m)
		}
		m, err := a.awaitState(ctx, pool, claim, m, wantedState(spec.Start))
		if err != nil || !spec.Protected || m.Protected {
			return m, err
		}
		return a.protect(ctx, m, true)
	}
}

// adoptedMachine gives a machine that was taken over the protection and the power
// that are wanted.
func (a *Account) adoptedMachine(ctx context.Context, pool string, m backends.Machine, w Wish) (backends.Machine, error) {
	if w.Protect != nil && *w.Protect != m.Protected {
		protected, err := a.protect(ctx, m, *w.Protect)
		if err != nil {
			return m, err
		}
		m = protected
	}
	want := wantedState(w.Spec.Start)
	if m.State == want || (m.State != backends.StateRunning && m.State != backends.StateStopped) {
		return m, nil
	}
	return a.powerTo(ctx, pool, m.Marks.Claim, m, want)
}

func (a *Account) protect(ctx context.Context, m backends.Machine, on bool) (backends.Machine, error) {
	p, ok := a.Backend.(backends.Protector)
	if !ok {
		return m, backends.Errorf(backends.Unsupported, "%s has no deletion protection.", a.Definition.Title).At("deletion_protection")
	}
	if err := p.Protect(ctx, m, on); err != nil {
		return m, err
	}
	m.Protected = on
	a.machines.reader.wrote(m)
	return m, nil
}

// Objects are the managed machines of an account or pool, as a list that begins
// now shows them, the oldest first; those being deleted are left out. A cloud
// that can't list has none to show.
func (a *Account) Objects(ctx context.Context, filter backends.Filter) ([]backends.Machine, error) {
	return a.machines.objects(ctx, filter)
}

// Find is the machine of a pool that carries a key, as a recent list shows it; nil
// when there is none.
func (a *Account) Find(ctx context.Context, pool, key string) (*backends.Machine, error) {
	return a.machines.recent(ctx, pool, key)
}

// Read is a machine of a pool as a recent list shows it, for a refresh.
// NOT_FOUND when it is gone.
func (a *Account) Read(ctx context.Context, pool, id string) (backends.Machine, error) {
	return a.machines.refresh(ctx, pool, id)
}

// ReadOwned is Read for what a state knows of. Where another machine has got the id
// since, it is NOT_FOUND.
func (a *Account) ReadOwned(ctx context.Context, o Owned) (backends.Machine, error) {
	m, err := a.machines.refresh(ctx, o.Pool, o.ID)
	if err == nil && !m.Partial && a.machines.isStrangers(m.About(), o) {
		return backends.Machine{}, a.machines.reader.gone(o.ID)
	}
	return m, err
}
