// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ledger holds what this process has promised itself per pool, so that creates
// that run at the same time don't pass a limit together. A booking is by key:
// once the object shows in the pool's list it is counted there, and once only.
type ledger struct {
	mu    sync.Mutex
	pools map[string]map[string]booking // pool id → key
}

// booking is what one object takes of a pool's limits.
type booking struct {
	instances int64
	price     *big.Rat // per hour; nil if unknown
	diskGiB   int64
}

func (l *ledger) book(pool, key string, b booking) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pools == nil {
		l.pools = map[string]map[string]booking{}
	}
	if l.pools[pool] == nil {
		l.pools[pool] = map[string]booking{}
	}
	before, booked := l.pools[pool][key]
	l.pools[pool][key] = b
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pools[pool], key)
		if booked {
			l.pools[pool][key] = before
		}
	}
}

// drop forgets what an object that is gone had booked.
func (l *ledger) drop(pool, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pools[pool], key)
}

func (l *ledger) others(pool, key string) map[string]booking {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := maps.Clone(l.pools[pool])
	delete(out, key)
	return out
}

// Reserve books one more machine in a pool that has limits, and fails with
// QUOTA_EXCEEDED when the pool's machines in the cloud, the machines booked by
// this process and this one pass a limit. release takes the booking back; one
// whose machine was made can stay.
func (a *Account) Reserve(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) (release func(), err error) {
	return a.reserve(ctx, &a.shared.booked, pool, key, machineBooking(offer))
}

// Plan is Reserve for what a plan would create. It books apart from what is really
// being created: what is planned may never be.
func (a *Account) Plan(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) error {
	_, err := a.reserve(ctx, &a.shared.planned, pool, key, machineBooking(offer))
	return err
}

// Fits tells whether a machine that takes the place of the one with its key fits
// the pool's limits beside what is in the cloud now. What else is planned doesn't
// count: a plan that also removes machines must not be refused for them.
func (a *Account) Fits(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) error {
	_, err := a.reserve(ctx, &ledger{}, pool, key, machineBooking(offer))
	return err
}

// ReserveResize books what a machine costs that is resized to a dearer offer, and fails
// with QUOTA_EXCEEDED where the pool's limit of the price doesn't allow it. The machine
// is there, so the limit of their number isn't asked.
func (a *Account) ReserveResize(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) (
	release func(), err error) {
	pool.Limits.Instances = nil
	return a.Reserve(ctx, pool, key, offer)
}

// FitsResize is Fits for a machine that is resized.
func (a *Account) FitsResize(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) error {
	pool.Limits.Instances = nil
	return a.Fits(ctx, pool, key, offer)
}

// PlanVolume is Plan for a volume, which counts with the size that it has or will
// have.
func (a *Account) PlanVolume(ctx context.Context, pool reference.Reference, key string, sizeGiB int64) error {
	_, err := a.reserve(ctx, &a.shared.planned, pool, key, booking{diskGiB: sizeGiB})
	return err
}

// FitsVolume is Fits for a volume.
func (a *Account) FitsVolume(ctx context.Context, pool reference.Reference, key string, sizeGiB int64) error {
	_, err := a.reserve(ctx, &ledger{}, pool, key, booking{diskGiB: sizeGiB})
	return err
}

func machineBooking(offer *backends.Offer) booking {
	b := booking{instances: 1}
	if offer != nil {
		b.price = offer.PricePerHour
	}
	return b
}

func (a *Account) reserve(ctx context.Context, l *ledger, pool reference.Reference, key string, b booking) (release func(), err error) {
	limits := pool.Limits
	machines := b.instances > 0 && (limits.Instances != nil || limits.Price() != nil)
	disk := b.diskGiB > 0 && limits.DiskGiB != nil
	if !machines && !disk {
		return func() {}, nil
	}
	poolID := pool.PoolRef().ID()
	release = l.book(poolID, key, b)
	if machines {
		err = a.checkMachineLimits(ctx, l, pool, poolID, key, b)
	}
	if disk {
		err = a.checkDiskLimit(ctx, l, pool, poolID, key, b)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// held are a pool's objects in the cloud, by key, but for the one with that key.
func (k *kind[T]) held(ctx context.Context, poolID, key string) (map[string]T, error) {
	out := map[string]T{}
	if k == nil || k.reader.lists == nil {
		return out, nil
	}
	others, err := k.reader.list(ctx, backends.Filter{Pool: poolID}, time.Now().Add(-lookUpAge), func(o T) bool {
		a := o.About()
		return !a.Marks.Carries(key) && !a.Going()
	})
	switch {
	case k.optional && backends.HasReason(err, backends.ReasonPermission):
		return out, nil
	case err != nil:
		return nil, err
	}
	for _, o := range others {
		out[o.About().Marks.Key] = o
	}
	return out, nil
}

func (a *Account) checkMachineLimits(ctx context.Context, l *ledger, pool reference.Reference, poolID, key string, b booking) error {
	existing, err := a.machines.held(ctx, poolID, key)
	if err != nil {
		return err
	}
	booked := l.others(poolID, key)
	for k := range existing {
		delete(booked, k)
	}
	if limit := pool.Limits.Instances; limit != nil {
		have := int64(len(existing))
		for _, other := range booked {
			have += other.instances
		}
		if have+1 > *limit {
			noun := "instances"
			if *limit == 1 {
				noun = "instance"
			}
			return overLimit("instances", "an instance", fmt.Sprintf("The pool %q may have %d %s: %s taken, and one more is asked for. Those being created count.",
				pool.Pool, *limit, noun, are(have)))
		}
	}
	if limit := pool.Limits.Price(); limit != nil {
		total, err := a.priceOf(ctx, existing)
		if err != nil {
			return err
		}
		for _, other := range booked {
			addPrice(total, other.price)
		}
		have := decimal(total)
		addPrice(total, b.price)
		if total.Cmp(limit) > 0 {
			return overLimit("price_per_hour", "an instance", fmt.Sprintf("The pool %q may cost %s an hour: it costs %s, and this instance adds %s. Those being created count.",
				pool.Pool, decimal(limit), have, decimal(b.price)))
		}
	}
	return nil
}

// checkDiskLimit counts block and shared volumes with the sizes that they have or,
// while this process makes or grows them, will have.
func (a *Account) checkDiskLimit(ctx context.Context, l *ledger, pool reference.Reference, poolID, key string, b booking) error {
	booked := l.others(poolID, key)
	var have int64
	for _, k := range []*kind[backends.Volume]{a.volumes, a.shares} {
		existing, err := k.held(ctx, poolID, key)
		if err != nil {
			return err
		}
		for other, v := range existing {
			have += max(v.SizeGiB, booked[other].diskGiB)
			delete(booked, other)
		}
	}
	for _, other := range booked {
		have += other.diskGiB
	}
	if limit := *pool.Limits.DiskGiB; have+b.diskGiB > limit {
		return overLimit("disk_gib", "a volume", fmt.Sprintf("The pool %q may have %d GiB of volumes: %s taken, and %d more %s asked for. "+
			"Volumes being made or grown count, and the one that is asked for counts with its new size only.",
			pool.Pool, limit, are(have), b.diskGiB, verb(b.diskGiB)))
	}
	return nil
}

// are is a number with its verb.
func are(n int64) string { return fmt.Sprintf("%d %s", n, verb(n)) }

func verb(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// decimal is a price as people write it, to eight places.
func decimal(price *big.Rat) string {
	if price == nil {
		return "an unknown price"
	}
	text := price.FloatString(8)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func overLimit(name, one, message string) error {
	e := backends.Errorf(backends.QuotaExceeded, "%s", message).
		WithRemedy("Raise limits.%s of the pool, or remove %s first.", name, one)
	e.Details = map[string]any{"limit": name}
	return e
}

// priceOf adds up today's prices of machines; those whose offer is gone from the
// catalog can't be counted.
func (a *Account) priceOf(ctx context.Context, machines map[string]backends.Machine) (*big.Rat, error) {
	total := new(big.Rat)
	if len(machines) == 0 {
		return total, nil
	}
	offers, err := a.Backend.Offers(ctx, backends.OfferQuery{Withdrawn: true})
	if err != nil {
		return nil, err
	}
	type place struct{ offer, region string }
	prices := make(map[place]*big.Rat, len(offers))
	for _, o := range offers {
		prices[place{o.ID, o.Region}] = o.PricePerHour
	}
	for _, m := range machines {
		addPrice(total, prices[place{m.Offer, m.Region}])
	}
	return total, nil
}

func addPrice(total, price *big.Rat) {
	if price != nil {
		total.Add(total, price)
	}
}
