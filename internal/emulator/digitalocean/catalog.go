// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// catalog is what the cloud offers, to all projects.
type catalog struct {
	regions []wireRegion
	sizes   []wireSize
	// images are the public ones, retired ones too: Droplets keep them.
	images []*image
}

func newCatalog(now time.Time) catalog {
	c := catalog{regions: regions(), sizes: sizes(), images: publicImages(now)}
	for _, size := range c.sizes {
		for _, slug := range size.Regions {
			i := slices.IndexFunc(c.regions, func(r wireRegion) bool { return r.Slug == slug })
			if i >= 0 {
				c.regions[i].Sizes = append(c.regions[i].Sizes, size.Slug)
			}
		}
	}
	return c
}

func catalogRoutes() []route {
	return []route{
		{"GET", "/regions", http.StatusOK, listRegions},
		{"GET", "/sizes", http.StatusOK, listSizes},
	}
}

// findRegion finds a region; ok tells whether there is one.
func (c *catalog) findRegion(slug string) (r wireRegion, ok bool) {
	i := slices.IndexFunc(c.regions, func(r wireRegion) bool { return r.Slug == slug })
	if i < 0 {
		return wireRegion{Slug: slug, Features: []string{}, Sizes: []string{}}, false
	}
	return c.regions[i], true
}

// region is a region's JSON, which is never null.
func (c *catalog) region(slug string) wireRegion {
	r, _ := c.findRegion(slug)
	return r
}

// hasFeature tells whether a region has a feature, e.g. "storage".
func (r wireRegion) hasFeature(feature string) bool { return slices.Contains(r.Features, feature) }

func (c *catalog) findSize(slug string) (s wireSize, ok bool) {
	i := slices.IndexFunc(c.sizes, func(s wireSize) bool { return s.Slug == slug })
	if i < 0 {
		return wireSize{Slug: slug, Regions: []string{}, DiskInfo: []wireDisk{}}, false
	}
	return c.sizes[i], true
}

func listRegions(c *call) (any, error) {
	return list(c, "regions", c.s.catalog.regions, func(r wireRegion) any { return r })
}

func listSizes(c *call) (any, error) {
	return list(c, "sizes", c.s.catalog.sizes, func(s wireSize) any { return s })
}

// place finds the region for a new Droplet: the one that was asked for, the
// first fitting one of a prefix such as "nyc", or without a wish any one.
func (c *catalog) place(wish string, size wireSize) (wireRegion, error) {
	fits := func(r wireRegion) bool { return r.Available && slices.Contains(size.Regions, r.Slug) }
	if r, ok := c.findRegion(wish); ok {
		switch {
		case !r.Available:
			return r, unprocessable("Region is not available")
		case !fits(r):
			return r, unprocessable("Size is not available in this region.")
		}
		return r, nil
	}
	known := false
	for _, r := range c.regions {
		if !strings.HasPrefix(r.Slug, wish) {
			continue
		}
		known = true
		if fits(r) {
			return r, nil
		}
	}
	if !known || strings.ContainsAny(wish, "0123456789") {
		return wireRegion{}, unprocessable("You specified an invalid region for Droplet creation.")
	}
	return wireRegion{}, unprocessable("Size is not available in this region.")
}

// featureStorage is the feature of regions with block volumes.
const featureStorage = "storage"

func regions() []wireRegion {
	all := []wireRegion{}
	add := func(slug, name string) {
		all = append(all, wireRegion{
			Name: name, Slug: slug, Available: true, Sizes: []string{},
			Features: []string{"backups", "ipv6", "metadata", "install_agent", featureStorage, "image_transfer"},
		})
	}
	add("nyc1", "New York 1")
	add("nyc2", "New York 2")
	add("nyc3", "New York 3")
	add("ams3", "Amsterdam 3")
	add("sfo2", "San Francisco 2")
	add("sfo3", "San Francisco 3")
	add("sgp1", "Singapore 1")
	add("lon1", "London 1")
	add("fra1", "Frankfurt 1")
	add("tor1", "Toronto 1")
	add("blr1", "Bangalore 1")
	add("syd1", "Sydney 1")
	add("atl1", "Atlanta 1")
	add("ric1", "Richmond 1")
	for i := range all {
		switch all[i].Slug {
		case "sfo2":
			all[i].Available = false
		case "ric1":
			all[i].Features = slices.DeleteFunc(all[i].Features, func(f string) bool { return f == featureStorage })
		}
	}
	return all
}
