// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/digitalocean/godo"
	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// currency is that of all prices of the API.
const currency = "USD"

// catalog is what can be bought: the sizes, and the regions that the account may
// use.
type catalog struct {
	sizes   map[string]*godo.Size
	regions map[string]*godo.Region
	// allowed are the account's regions; nil: all.
	allowed []string
}

func (c *Client) fetchCatalog(ctx context.Context) (*catalog, error) {
	var sizes []godo.Size
	var regions []godo.Region
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		sizes, err = list(ctx, c, "Reading the sizes", at("sizes"), nil, "sizes", func(s godo.Size) bool { return s.Slug != "" })
		return err
	})
	group.Go(func() (err error) {
		regions, err = list(ctx, c, "Reading the regions", at("regions"), nil, "regions", func(r godo.Region) bool { return r.Slug != "" })
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &catalog{sizes: map[string]*godo.Size{}, regions: map[string]*godo.Region{}, allowed: c.regions}
	for i := range sizes {
		out.sizes[sizes[i].Slug] = &sizes[i]
	}
	for i := range regions {
		out.regions[regions[i].Slug] = &regions[i]
	}
	return out, nil
}

// allows tells whether the account may use a region.
func (c *catalog) allows(region string) bool {
	return len(c.allowed) == 0 || slices.Contains(c.allowed, region)
}

// usable are the regions that the account may use and that there are, sorted.
func (c *catalog) usable() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.regions)), func(r string) bool { return !c.allows(r) })
}

// standing is how a size stands in a region.
type standing int

const (
	absent  standing = iota // not sold there
	soldOut                 // no new Droplets of it, or none there, now
	onSale
)

// at is how a size stands in a region: it is on sale when it is available, the
// region is, and the size names the region.
func (c *catalog) at(s *godo.Size, region string) standing {
	r := c.regions[region]
	switch {
	case r == nil || !slices.Contains(s.Regions, region):
		return absent
	case !s.Available || !r.Available:
		return soldOut
	default:
		return onSale
	}
}

// offer is a size in a region as an offer. A price is the same in all regions.
func (c *catalog) offer(s *godo.Size, region string) backends.Offer {
	o := backends.Offer{
		ID: s.Slug, Kind: backends.KindVPS, Region: region,
		VCPU: int64(s.Vcpus), MemoryGiB: float64(s.Memory) / 1024, DiskGiB: int64(s.Disk),
		Available: c.at(s, region) == onSale,
	}
	if g := s.GPUInfo; g != nil && g.Count > 0 {
		o.GPUs = []backends.GPU{{Model: g.Model, Count: int64(g.Count)}}
	}
	if s.PriceHourly > 0 {
		// The shortest decimal that is the API's number: 0.00893, not its binary neighbour.
		if price, ok := new(big.Rat).SetString(strconv.FormatFloat(s.PriceHourly, 'f', -1, 64)); ok {
			o.PricePerHour, o.Currency = price, currency
		}
	}
	return o
}

// offers are the offers of the account's regions. DigitalOcean announces no
// withdrawals: a size that isn't sold any more isn't available, or names no region.
// A Droplet keeps its price then, so with withdrawn such a size is an offer of all
// regions.
func (c *catalog) offers(withdrawn bool) []backends.Offer {
	var out []backends.Offer
	for _, s := range c.sizes {
		for _, region := range c.usable() {
			if withdrawn || c.at(s, region) != absent {
				out = append(out, c.offer(s, region))
			}
		}
	}
	backends.SortOffers(out)
	return out
}

// Offers implements [backends.Backend].
func (c *Client) Offers(ctx context.Context, query backends.OfferQuery) ([]backends.Offer, error) {
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(catalog.offers(query.Withdrawn), func(o backends.Offer) bool { return !query.Matches(o) }), nil
}

// check holds an offer and a region, either of which may be unknown (""), against
// the catalog.
func (c *catalog) check(name, region string) (s *godo.Size, offer *backends.Offer, issue *backends.Error) {
	switch r := c.regions[region]; {
	case region == "":
	case !c.allows(region):
		issue = backends.Errorf(backends.InvalidInput, "The region %q is not among the account's regions.", region).At("region").
			WithRemedy("Use %s, or add it to the account's regions.", backends.Choice(c.usable()))
	case r == nil:
		issue = backends.Errorf(backends.InvalidInput, "There is no region %q at DigitalOcean.", region).At("region").
			WithRemedy("Use %s.", backends.Choice(c.usable()))
	}
	if issue != nil {
		region = ""
	}
	if name == "" {
		return nil, nil, issue
	}
	s = c.sizes[name]
	if s == nil {
		if issue == nil {
			issue = backends.Errorf(backends.InvalidInput, "There is no size %q at DigitalOcean.", name).At("offer").
				WithRemedy("Use %s.", backends.Choice(backends.Near(name, c.alternatives(region), backends.Nearest)))
		}
		return nil, nil, issue
	}
	if region == "" {
		return s, nil, issue
	}
	switch c.at(s, region) {
	case absent:
		remedy := "In " + region + " use " + backends.Choice(c.alternativesTo(s, region)) + "."
		if elsewhere := c.regionsOf(s); len(elsewhere) > 0 {
			remedy = name + " is offered in " + backends.Choice(elsewhere) + "; i" + remedy[1:]
		}
		return s, nil, backends.Errorf(backends.InvalidInput, "%s is not offered in %s.", name, region).At("offer").WithRemedy("%s", remedy)
	case soldOut:
		issue = backends.Errorf(backends.CapacityUnavailable, "New Droplets of the size %s can't be had in %s now.", name, region).At("offer").
			WithRemedy("In %s use %s, or wait.", region, backends.Choice(c.alternativesTo(s, region)))
		if !c.regions[region].Available {
			issue = backends.Errorf(backends.CapacityUnavailable, "The region %s takes no new Droplets now.", region).At("region").
				WithRemedy("Use %s, or wait.", backends.Choice(c.regionsOf(s)))
		}
		issue.Reason = backends.ReasonCapacity
	}
	o := c.offer(s, region)
	return s, &o, issue
}

// alternatives are the sizes that can be had in a region (anywhere when it is ""),
// the cheapest first.
func (c *catalog) alternatives(region string) []string {
	var out []string
	for _, o := range c.offers(false) {
		if (region == "" || o.Region == region) && o.Available && !slices.Contains(out, o.ID) {
			out = append(out, o.ID)
		}
	}
	return out
}

// alternativesTo are a few sizes that are no smaller, with GPUs if it has some, the
// cheapest first; failing that, any of the region.
func (c *catalog) alternativesTo(s *godo.Size, region string) []string {
	var like []string
	all := slices.DeleteFunc(c.alternatives(region), func(name string) bool { return name == s.Slug })
	for _, name := range all {
		o := c.sizes[name]
		if (o.GPUInfo != nil) == (s.GPUInfo != nil) && o.Vcpus >= s.Vcpus && o.Memory >= s.Memory && o.Disk >= s.Disk {
			like = append(like, name)
		}
	}
	if len(like) == 0 {
		like = all
	}
	return like[:min(backends.Nearest, len(like))]
}

// regionsOf are the account's regions where a size can be had.
func (c *catalog) regionsOf(s *godo.Size) []string {
	return slices.DeleteFunc(c.usable(), func(r string) bool { return c.at(s, r) != onSale })
}
