// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// offerChecks is what the catalog says about the offers that a machine may be made
// with.
type offerChecks struct {
	// resolved and issues are of the wish itself, but for an offer that is out of stock
	// while a fallback is to be had.
	resolved backends.Resolved
	issues   []*backends.Error
	// soldOut are the offers that can't be had now, and dearest is the one of the others
	// that costs most.
	soldOut []string
	dearest *backends.Offer
	all     []backends.Offer
}

// of is an offer that was checked, by its id.
func (c offerChecks) of(id string) *backends.Offer {
	for _, o := range c.all {
		if o.ID == id {
			return &o
		}
	}
	return nil
}

// checkOffers holds a wish with each of its offers against the catalog. A fallback is
// blamed for what the wish isn't wrong in with its own offer.
func checkOffers(ctx context.Context, b backends.Backend, spec backends.MachineSpec, fallbacks []string) (offerChecks, error) {
	var out offerChecks
	var err error
	if out.resolved, out.issues, err = b.CheckMachine(ctx, spec); err != nil {
		return out, err
	}
	out.add(out.resolved.Offer)
	first := slices.IndexFunc(out.issues, isSoldOut)
	if first >= 0 {
		out.soldOut = append(out.soldOut, spec.Offer)
	} else {
		out.consider(out.resolved.Offer)
	}
	own := slices.Clone(out.issues)
	available := false
	for i, name := range fallbacks {
		other := spec
		other.Offer = name
		resolved, issues, err := b.CheckMachine(ctx, other)
		if err != nil {
			return out, err
		}
		issues = slices.DeleteFunc(issues, func(e *backends.Error) bool {
			return slices.ContainsFunc(own, func(o *backends.Error) bool { return o.Error() == e.Error() })
		})
		if slices.ContainsFunc(issues, isSoldOut) {
			out.soldOut = append(out.soldOut, name)
		}
		wrong := slices.DeleteFunc(issues, isSoldOut)
		for _, e := range wrong {
			at := *e.At("offer_fallbacks", i)
			if len(e.Path) > 0 && e.Path.String() != "offer" {
				at.Message = fmt.Sprintf("%s doesn't go with %s: %s", name, e.Path, e.Message)
			}
			out.issues = append(out.issues, &at)
		}
		out.add(resolved.Offer)
		if len(wrong) == 0 && !slices.Contains(out.soldOut, name) {
			available = true
			out.consider(resolved.Offer)
		}
	}
	if first >= 0 && available {
		e := out.issues[first]
		out.issues = slices.Delete(out.issues, first, first+1)
		out.resolved.Warnings = append(out.resolved.Warnings, e.Message+" A fallback is to be had.")
	}
	return out, nil
}

func isSoldOut(e *backends.Error) bool { return e.Reason == backends.ReasonCapacity }

func (c *offerChecks) add(o *backends.Offer) {
	if o != nil {
		c.all = append(c.all, *o)
	}
}

// consider takes in an offer that the machine may be made with. One without a price is
// as dear as any.
func (c *offerChecks) consider(o *backends.Offer) {
	switch {
	case o == nil:
	case c.dearest == nil, o.PricePerHour != nil && c.dearest.PricePerHour != nil && o.PricePerHour.Cmp(c.dearest.PricePerHour) > 0:
		c.dearest = o
	}
}
