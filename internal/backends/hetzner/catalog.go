// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// catalog is what can be bought: the server types with their locations and
// prices, and the currency of the project's owner. It comes from /server_types
// and /pricing; /datacenters, which the specification names, answers 410 since
// October 2026.
type catalog struct {
	types    map[string]*hcloud.ServerType
	currency string
}

var (
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	// priceForm is the API's decimal text, bounded: [big.Rat] would also read
	// fractions and exponents that fill the memory.
	priceForm   = regexp.MustCompile(`^[0-9]{1,12}(?:\.[0-9]{1,40})?$`)
	errCurrency = errors.New("the prices have no currency")
)

// priceList is what we read of GET /pricing. The library's Pricing.Get panics when
// the answer has fewer types of floating than of primary IPs (v2.52.0,
// primaryIPPricingFromSchema).
type priceList struct {
	Pricing struct {
		Currency string `json:"currency"`
	} `json:"pricing"`
}

func (c *Client) fetchCatalog(ctx context.Context) (*catalog, error) {
	var types []*hcloud.ServerType
	var pricing priceList
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		const what = "Reading the server types"
		types, err = all(ctx, what,
			func(ctx context.Context, number int) ([]*hcloud.ServerType, *hcloud.Response, error) {
				return c.api.ServerType.List(ctx, hcloud.ServerTypeListOpts{
					ListOpts: hcloud.ListOpts{Page: number, PerPage: perPage},
				})
			})
		return err
	})
	group.Go(func() (err error) {
		pricing, err = request(ctx, backends.Idempotent, "Reading the prices",
			func(ctx context.Context) (priceList, *hcloud.Response, error) {
				var p priceList
				answer, err := send(ctx, c.api, http.MethodGet, "/pricing", nil, &p)
				if err == nil && succeeded(answer) && !currencyForm.MatchString(p.Pricing.Currency) {
					err = errCurrency
				}
				return p, answer, err
			})
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &catalog{types: make(map[string]*hcloud.ServerType, len(types)), currency: pricing.Pricing.Currency}
	for _, t := range types {
		if t.Name != "" {
			out.types[t.Name] = t
		}
	}
	return out, nil
}

// locations are the locations that any server type has, sorted.
func (c *catalog) locations() []string {
	seen := map[string]bool{}
	for _, t := range c.types {
		for _, l := range t.Locations {
			seen[l.Location.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// standing is how a server type stands in a location.
type standing int

const (
	absent     standing = iota // not sold there
	gone                       // withdrawn, past the day
	deprecated                 // sold until a day to come
	soldOut                    // temporarily out of stock
	onSale
)

// at is how a server type stands in a location, and the day it is withdrawn there
// if one is announced. A deprecation of the whole type counts where the location
// has none: the API phases that form out.
func at(t *hcloud.ServerType, location string) (standing, time.Time) {
	for _, l := range t.Locations {
		if l.Location.Name != location {
			continue
		}
		info := l.Deprecation
		if info == nil {
			info = t.Deprecation
		}
		switch {
		case info != nil && !info.UnavailableAfter.IsZero() && time.Now().After(info.UnavailableAfter):
			return gone, info.UnavailableAfter
		case !l.Available && info == nil:
			return soldOut, time.Time{}
		case !l.Available:
			return soldOut, info.UnavailableAfter
		case info != nil:
			return deprecated, info.UnavailableAfter
		default:
			return onSale, time.Time{}
		}
	}
	return absent, time.Time{}
}

// isDeprecated tells whether a withdrawal is announced, in stock or not.
func isDeprecated(t *hcloud.ServerType, location string) bool {
	for _, l := range t.Locations {
		if l.Location.Name == location {
			return l.Deprecation != nil || t.Deprecation != nil
		}
	}
	return false
}

// offer is a server type in a location as an offer. A price is per location, and
// a location may have a price without selling the type: callers ask [at] first.
func (c *catalog) offer(t *hcloud.ServerType, location string) backends.Offer {
	state, _ := at(t, location)
	o := backends.Offer{
		ID: t.Name, Kind: backends.KindVPS, Region: location,
		VCPU: int64(t.Cores), MemoryGiB: float64(t.Memory), DiskGiB: int64(t.Disk),
		Currency:  c.currency,
		Available: state == onSale || state == deprecated,
	}
	for _, p := range t.Pricings {
		if p.Location != nil && p.Location.Name == location && priceForm.MatchString(p.Hourly.Gross) {
			if price, ok := new(big.Rat).SetString(p.Hourly.Gross); ok {
				o.PricePerHour = price
			}
		}
	}
	if o.PricePerHour == nil {
		o.Currency = ""
	}
	return o
}

// offers are the offers that can be ordered now or when they are back in stock:
// types that are being withdrawn are left out, as the specification wants, unless
// they are asked for. A server keeps its price where its type isn't sold any more,
// so then a location with no more than a price counts too.
func (c *catalog) offers(withdrawn bool) []backends.Offer {
	var out []backends.Offer
	for _, t := range c.types {
		for _, location := range locationsOf(t, withdrawn) {
			if state, _ := at(t, location); !withdrawn && (state == gone || isDeprecated(t, location)) {
				continue
			}
			out = append(out, c.offer(t, location))
		}
	}
	backends.SortOffers(out)
	return out
}

// locationsOf are the locations that a type names, those with only a price if asked
// for.
func locationsOf(t *hcloud.ServerType, priced bool) []string {
	var out []string
	for _, l := range t.Locations {
		out = append(out, l.Location.Name)
	}
	for _, p := range t.Pricings {
		if priced && p.Location != nil && !slices.Contains(out, p.Location.Name) {
			out = append(out, p.Location.Name)
		}
	}
	return out
}

// Offers implements [backends.Backend]. There are no GPUs and no metal here: the
// query decides that by itself.
func (c *Client) Offers(ctx context.Context, query backends.OfferQuery) ([]backends.Offer, error) {
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(catalog.offers(query.Withdrawn), func(o backends.Offer) bool { return !query.Matches(o) }), nil
}
