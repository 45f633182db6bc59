// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Wish is a machine to create.
type Wish struct {
	Pool reference.Reference // with the pool's keys: adopt and limits
	// Spec is the machine; its marks are set but for Complete. Its claim is fresh: the
	// same key and claim again is a retry and yields the same machine.
	Spec backends.MachineSpec
	// Fallbacks are offers that are tried, in their order, where the cloud has no room
	// for the spec's. A machine that was made with one of them is what was wanted.
	Fallbacks []string
	// SoldOut are those of its offers that the catalog says there is no room for. They
	// are passed over.
	SoldOut []string
	// Offer is the dearest of those offers in the catalog, for limits on prices; may be
	// nil.
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
		make: func(ctx context.Context) (backends.Machine, error) { return a.makeMachine(ctx, w) },
		prepare: func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
			return a.prepareMachine(pool, w.madeAs(m))(ctx, m)
		},
		lift: func(ctx context.Context, m backends.Machine) (backends.Machine, error) {
			if !m.Protected {
				return m, nil
			}
			return a.protect(ctx, m, false)
		},
		differs: func(m backends.Machine) []backends.DigestField {
			if m.Offer != "" && w.Spec.Offer != "" && m.Offer != w.madeAs(m).Offer {
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

// makeMachine makes the machine with the first of its offers that the cloud has room
// for. One that may be being made all the same is not made again.
func (a *Account) makeMachine(ctx context.Context, w Wish) (backends.Machine, error) {
	spec := w.Spec
	offers := slices.DeleteFunc(append([]string{spec.Offer}, w.Fallbacks...), func(offer string) bool {
		return slices.Contains(w.SoldOut, offer)
	})
	for i, offer := range offers {
		spec.Offer = offer
		m, err := a.Backend.MakeMachine(ctx, spec)
		if e := backends.AsError(err); i == len(offers)-1 || m.ID != "" || e == nil || e.Ambiguous || e.Reason != backends.ReasonCapacity {
			return m, err
		}
	}
	return a.Backend.MakeMachine(ctx, w.Spec) // all are sold out: it says so itself
}

// OfferOf is the offer of a machine in the catalog; nil where it isn't there, or the
// catalog can't be read.
func (a *Account) OfferOf(ctx context.Context, m backends.Machine) *backends.Offer {
	return a.offer(ctx, m.Offer, m.Region)
}

func (a *Account) offer(ctx context.Context, id, region string) *backends.Offer {
	offers, err := a.Backend.Offers(ctx, backends.OfferQuery{Region: region, Withdrawn: true})
	if err != nil {
		return nil
	}
	for _, o := range offers {
		if o.ID == id {
			return &o
		}
	}
	return nil
}

// Dearer is an offer in the catalog, if it costs more than the one that a machine has,
// as far as prices can be told; else nil.
func (a *Account) Dearer(ctx context.Context, had, offer, region string) *backends.Offer {
	is := a.offer(ctx, offer, region)
	was := a.offer(ctx, had, region)
	if is == nil || is.PricePerHour == nil || was != nil && was.PricePerHour != nil && is.PricePerHour.Cmp(was.PricePerHour) <= 0 {
		return nil
	}
	return is
}

// madeAs is the spec with the offer that a machine was made with, where that is one of
// the wish.
func (w Wish) madeAs(m backends.Machine) backends.MachineSpec {
	spec := w.Spec
	if slices.Contains(w.Fallbacks, m.Offer) {
		spec.Offer = m.Offer
	}
	return spec
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
	claim, want := m.Marks.Claim, wantedState(w.Spec.Start)
	settled, err := a.settle(ctx, pool, claim, m)
	if settled.ID != "" {
		m = settled
	}
	if err != nil || m.State == want || (m.State != backends.StateRunning && m.State != backends.StateStopped) {
		return m, err
	}
	return a.powerTo(ctx, pool, claim, m, want)
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
