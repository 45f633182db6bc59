// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"cmp"
	"math/big"
	"slices"
)

// Offer is a size that can be bought in one region.
type Offer struct {
	ID           string // what a pool's flavor or an instance's offer names
	Kind         Kind
	Region       string
	VCPU         int64
	MemoryGiB    float64
	DiskGiB      int64 // 0 when the offer has no disk of its own
	GPUs         []GPU
	PricePerHour *big.Rat // gross; nil where the cloud has no prices
	Currency     string   // ISO 4217; "" where the cloud has no prices
	Available    bool     // false: out of stock now
}

// GPU is a number of graphics processors of one model.
type GPU struct {
	Model string
	Count int64
}

// OfferQuery selects offers. The zero value selects all on sale; an impossible query
// selects none.
type OfferQuery struct {
	Kind         Kind
	Region       string
	GPUModel     string
	MinGPUs      int64   // 0 to 64
	MinVCPU      int64   // 0 to 1024
	MinMemoryGiB float64 // 0 to 16384
	// Withdrawn selects also what the cloud doesn't sell to new machines any more, or
	// will soon not: to price what runs. Such an offer is Available as long as it can
	// be bought.
	Withdrawn bool
}

// Matches tells whether an offer is one the query selects.
func (q OfferQuery) Matches(o Offer) bool {
	var gpus int64
	for _, g := range o.GPUs {
		if q.GPUModel == "" || g.Model == q.GPUModel {
			gpus += g.Count
		}
	}
	return (q.Kind == "" || q.Kind == o.Kind) &&
		(q.Region == "" || q.Region == o.Region) &&
		(q.GPUModel == "" || gpus > 0) &&
		gpus >= q.MinGPUs && o.VCPU >= q.MinVCPU && o.MemoryGiB >= q.MinMemoryGiB
}

// SortOffers sorts by price, those without one last, then by id and region.
func SortOffers(offers []Offer) {
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(comparePrices(a.PricePerHour, b.PricePerHour),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Region, b.Region))
	})
}

func comparePrices(a, b *big.Rat) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Cmp(b)
	}
}
