// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"math/big"
	"slices"
	"time"
)

// catalog is what the cloud offers. Its dates are set when it is made, so that
// what is deprecated stays so whatever the clock says.
type catalog struct {
	locations []wireLocation
	// types holds withdrawn ones too: servers keep them.
	types     []wireServerType
	withdrawn map[int64]bool
	images    []wireImage
	vat       *big.Rat
	vatRate   string
}

func newCatalog(now time.Time, vatRate string) catalog {
	c := catalog{
		locations: locations(),
		withdrawn: map[int64]bool{},
		images:    systemImages(now),
		vatRate:   vatRate,
	}
	rate, ok := new(big.Rat).SetString(vatRate)
	if !ok {
		rate = new(big.Rat)
	}
	c.vat = rate.Quo(rate, big.NewRat(100, 1))
	c.types = c.serverTypes(now)
	return c
}

// price makes a price of a net amount: net with ten digits, gross with sixteen,
// as the API writes them.
func (c *catalog) price(net string) wirePrice {
	amount, ok := new(big.Rat).SetString(net)
	if !ok {
		amount = new(big.Rat)
	}
	gross := new(big.Rat).Mul(amount, new(big.Rat).Add(big.NewRat(1, 1), c.vat))
	return wirePrice{Net: amount.FloatString(10), Gross: gross.FloatString(16)}
}

func (c *catalog) typeByID(id int64) wireServerType {
	i := slices.IndexFunc(c.types, func(t wireServerType) bool { return t.ID == id })
	if i < 0 {
		return wireServerType{Prices: []wireTypePrice{}, Locations: []wireTypeLocation{}}
	}
	return c.types[i]
}

func (c *catalog) locationByID(id int64) wireLocation {
	i := slices.IndexFunc(c.locations, func(l wireLocation) bool { return l.ID == id })
	if i < 0 {
		return wireLocation{}
	}
	return c.locations[i]
}

// findType finds a type that is still offered somewhere.
func (c *catalog) findType(reference idOrName) (wireServerType, bool) {
	for _, t := range c.types {
		if reference.is(t.ID, t.Name) && !c.withdrawn[t.ID] {
			return t, true
		}
	}
	return wireServerType{}, false
}

func (c *catalog) findLocation(reference idOrName) (wireLocation, bool) {
	for _, l := range c.locations {
		if reference.is(l.ID, l.Name) {
			return l, true
		}
	}
	return wireLocation{}, false
}

func (c *catalog) inStock(typeID, locationID int64) bool {
	return slices.ContainsFunc(c.typeByID(typeID).Locations, func(at wireTypeLocation) bool {
		return at.ID == locationID && at.Available
	})
}

// past tells whether nothing new can be made any more.
func past(d *wireDeprecation, now time.Time) bool {
	if d == nil {
		return false
	}
	until, err := time.Parse(time.RFC3339, d.UnavailableAfter)
	return err == nil && now.After(until)
}

func locations() []wireLocation {
	return []wireLocation{
		{1, "fsn1", "Falkenstein DC Park 1", "DE", "Falkenstein", 50.47612, 12.370071, "eu-central"},
		{2, "nbg1", "Nuremberg DC Park 1", "DE", "Nuremberg", 49.452102, 11.076665, "eu-central"},
		{3, "hel1", "Helsinki DC Park 1", "FI", "Helsinki", 60.169855, 24.938379, "eu-central"},
		{4, "ash", "Ashburn, VA", "US", "Ashburn, VA", 39.045821, -77.487073, "us-east"},
		{5, "hil", "Hillsboro, OR", "US", "Hillsboro, OR", 45.54222, -122.951924, "us-west"},
		{6, "sin", "Singapore", "SG", "Singapore", 1.283333, 103.833333, "ap-southeast"},
	}
}

func listLocations(c *call) (any, error) {
	all := make([]row, len(c.s.catalog.locations))
	for i, l := range c.s.catalog.locations {
		all[i] = row{object: object{ID: l.ID, Name: l.Name}, wire: func() any { return l }}
	}
	return c.list("locations", all, "id", "name")
}

func getLocation(c *call) (any, error) {
	l := c.s.catalog.locationByID(c.id())
	if l.ID == 0 {
		return nil, notFound("location", c.id())
	}
	return map[string]any{"location": l}, nil
}

func listServerTypes(c *call) (any, error) {
	var all []row
	for _, t := range c.s.catalog.types {
		if !c.s.catalog.withdrawn[t.ID] {
			all = append(all, row{object: object{ID: t.ID, Name: t.Name}, wire: func() any { return t }})
		}
	}
	return c.list("server_types", all, "id", "name")
}

func getServerType(c *call) (any, error) {
	t := c.s.catalog.typeByID(c.id())
	if t.ID == 0 || c.s.catalog.withdrawn[t.ID] {
		return nil, notFound("server type", c.id())
	}
	return map[string]any{"server_type": t}, nil
}

func listISOs(c *call) (any, error) { return c.list("isos", nil) }

func getISO(c *call) (any, error) { return nil, notFound("iso", c.id()) }
