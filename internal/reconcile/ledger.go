// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ledger holds what this process has promised itself per pool, so that creates
// that run at the same time don't pass a limit together. A reservation is by key:
// once the machine shows in the pool's list it is counted there, and once only.
type ledger struct {
	mu    sync.Mutex
	pools map[string]map[string]*big.Rat // pool id → key → price per hour, nil if unknown
}

func (l *ledger) reserve(pool, key string, price *big.Rat) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pools == nil {
		l.pools = map[string]map[string]*big.Rat{}
	}
	if l.pools[pool] == nil {
		l.pools[pool] = map[string]*big.Rat{}
	}
	l.pools[pool][key] = price
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pools[pool], key)
	}
}

func (l *ledger) others(pool, key string) map[string]*big.Rat {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]*big.Rat{}
	for k, p := range l.pools[pool] {
		if k != key {
			out[k] = p
		}
	}
	return out
}

// Reserve books one more machine in a pool that has limits, and fails with
// QUOTA_EXCEEDED when the pool's machines in the cloud, the machines booked by
// this process and this one pass a limit. release takes the booking back; one
// whose machine was made can stay.
func (a *Account) Reserve(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) (release func(), err error) {
	return a.reserve(ctx, &a.shared.booked, pool, key, offer)
}

// Plan is Reserve for what a plan would create. It books apart from what is really
// being created: what is planned may never be.
func (a *Account) Plan(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) error {
	_, err := a.reserve(ctx, &a.shared.planned, pool, key, offer)
	return err
}

// Fits tells whether a machine that takes the place of the one with its key fits
// the pool's limits beside what is in the cloud now. What else is planned doesn't
// count: a plan that also removes machines must not be refused for them.
func (a *Account) Fits(ctx context.Context, pool reference.Reference, key string, offer *backends.Offer) error {
	_, err := a.reserve(ctx, &ledger{}, pool, key, offer)
	return err
}

func (a *Account) reserve(ctx context.Context, l *ledger, pool reference.Reference, key string,
	offer *backends.Offer) (release func(), err error) {
	limits := pool.Limits
	if limits.Instances == nil && limits.Price() == nil {
		return func() {}, nil
	}
	var price *big.Rat
	if offer != nil {
		price = offer.PricePerHour
	}
	poolID := pool.PoolRef().ID()
	release = l.reserve(poolID, key, price)
	if err := a.checkLimits(ctx, l, pool, poolID, key, price); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (a *Account) checkLimits(ctx context.Context, l *ledger, pool reference.Reference, poolID, key string, price *big.Rat) error {
	existing := map[string]backends.Machine{}
	if a.reader.lister != nil {
		v, err := a.reader.list(ctx, backends.Filter{Pool: poolID}, time.Now().Add(-refreshAge))
		if err != nil {
			return err
		}
		for _, m := range v.machines {
			if m.Marks.Key != key && m.State != backends.StateDeleting && m.State != backends.StateDeleted {
				existing[m.Marks.Key] = m
			}
		}
	}
	booked := l.others(poolID, key)
	for k := range existing {
		delete(booked, k)
	}
	if limit := pool.Limits.Instances; limit != nil {
		if have := int64(len(existing) + len(booked)); have+1 > *limit {
			return overLimit("instances", fmt.Sprintf("The pool %q may have %d instances and has %d, those being created included.", pool.Pool, *limit, have))
		}
	}
	if limit := pool.Limits.Price(); limit != nil {
		total, err := a.priceOf(ctx, existing)
		if err != nil {
			return err
		}
		for _, p := range booked {
			addPrice(total, p)
		}
		have := decimal(total)
		addPrice(total, price)
		if total.Cmp(limit) > 0 {
			return overLimit("price_per_hour", fmt.Sprintf("The pool %q may cost %s an hour and costs %s, machines being created included; this one adds %s.",
				pool.Pool, decimal(limit), have, decimal(price)))
		}
	}
	return nil
}

// decimal is a price as people write it, to eight places.
func decimal(price *big.Rat) string {
	if price == nil {
		return "an unknown price"
	}
	text := price.FloatString(8)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func overLimit(name, message string) error {
	e := backends.Errorf(backends.QuotaExceeded, "%s", message).
		WithRemedy("Raise limits.%s of the pool, or remove an instance first.", name)
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
