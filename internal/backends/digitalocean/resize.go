// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var _ backends.Resizer = (*Client)(nil)

// CheckResize implements [backends.Resizer]. The disk that the Droplet has is asked for:
// it may be another than its size's.
func (c *Client) CheckResize(ctx context.Context, m backends.Machine, to backends.MachineSpec, growDisk bool) (
	warnings []string, issues []*backends.Error, err error) {
	if to.Offer == "" {
		return nil, nil, nil
	}
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, err := c.droplet(ctx, "Reading "+called(m), m.ID)
	if err != nil {
		return nil, nil, err
	}
	now := c.machine(d)
	if now.Offer == to.Offer {
		return nil, nil, nil
	}
	size, issue := catalog.checkResize(now, d.Disk, to.Offer)
	switch {
	case issue != nil:
		issues = append(issues, issue)
	case size.Disk <= d.Disk:
	case growDisk:
		warnings = append(warnings, fmt.Sprintf(
			"The disk grows from %d to %d GB, and can't be made smaller again: the Droplet can't become one of a size with a smaller disk any more.", d.Disk, size.Disk))
	default:
		warnings = append(warnings, fmt.Sprintf(
			"The disk stays at %d GB, though %s comes with %d GB, so that the resize can be undone. To grow it, for good, set resize_disk = true in the same apply.", d.Disk, to.Offer, size.Disk))
	}
	return warnings, issues, nil
}

// checkResize tells what keeps a Droplet with a disk of so many GB from becoming one of
// another size.
func (c *catalog) checkResize(m backends.Machine, disk int, offer string) (*godo.Size, *backends.Error) {
	size, _, issue := c.check(offer, m.Region)
	now := c.sizes[m.Offer]
	refuse := func(format string, args ...any) *backends.Error {
		return backends.Errorf(backends.InvalidInput, format, args...).At("offer").
			WithRemedy("In %s use %s.", m.Region, backends.Choice(c.resizableTo(m, disk, size)))
	}
	switch {
	case size == nil || issue != nil && issue.Path.String() != "offer":
		return nil, issue
	case issue != nil:
		// What can be had instead must fit this Droplet.
		return nil, issue.WithRemedy("In %s use %s.", m.Region, backends.Choice(c.resizableTo(m, disk, size)))
	case size.Disk < disk:
		return nil, refuse("%s has a disk of %d GB, and that of %s has %d GB: a disk can't be made smaller.", offer, size.Disk, called(m), disk)
	case now != nil && gpuCount(size) < gpuCount(now):
		return nil, refuse("%s has fewer GPUs than %s, and DigitalOcean can't take GPUs from a Droplet.", offer, m.Offer)
	case now != nil && gpuCount(now) == 0 && gpuCount(size) > 0:
		return nil, refuse("%s has GPUs and %s hasn't, and DigitalOcean can't add GPUs to a Droplet.", offer, m.Offer)
	}
	return size, nil
}

func gpuCount(s *godo.Size) int {
	if s.GPUInfo == nil {
		return 0
	}
	return s.GPUInfo.Count
}

// resizableTo are the sizes that a Droplet can be given in its region, those nearest in
// price to a wished one first chosen and then sorted by price.
func (c *catalog) resizableTo(m backends.Machine, disk int, wished *godo.Size) []string {
	now := c.sizes[m.Offer]
	fits := slices.DeleteFunc(c.alternatives(m.Region), func(name string) bool {
		s := c.sizes[name]
		return name == m.Offer || name == wished.Slug || s.Disk < disk || now != nil && gpuCount(s) != gpuCount(now)
	})
	price := func(name string) float64 { return c.sizes[name].PriceHourly }
	slices.SortStableFunc(fits, func(a, b string) int {
		return cmp.Compare(math.Abs(price(a)-wished.PriceHourly), math.Abs(price(b)-wished.PriceHourly))
	})
	fits = fits[:min(backends.Nearest, len(fits))]
	slices.SortStableFunc(fits, func(a, b string) int { return cmp.Compare(price(a), price(b)) })
	return fits
}

// resizeAction is the body of a resize. With Disk it can't be undone.
type resizeAction struct {
	Type string `json:"type"`
	Size string `json:"size"`
	Disk bool   `json:"disk"`
}

// Resize implements [backends.Resizer]: one action, with the Droplet off, which leaves
// it off.
func (c *Client) Resize(ctx context.Context, m backends.Machine, to backends.MachineSpec, growDisk bool, off backends.PowerDown) (
	backends.Machine, error) {
	what := "Resizing " + called(m) + " to " + to.Offer
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return m, err
	}
	d, err := c.droplet(ctx, what, m.ID)
	if err != nil {
		return m, err
	}
	m = c.machine(d)
	if m.Offer == to.Offer {
		return m, nil
	}
	// A plan may not have known the offer, and nobody's machine is switched off for a
	// call that will be refused.
	if _, issue := catalog.checkResize(m, d.Disk, to.Offer); issue != nil {
		return m, issue
	}
	for try := 1; ; try++ {
		if err := off(ctx); err != nil {
			return m, err
		}
		resized, err := c.event(ctx, what, d.ID, resizeAction{"resize", to.Offer, growDisk},
			func(d *godo.Droplet) bool { return c.machine(d).Offer == to.Offer })
		if resized != nil {
			m = c.machine(resized)
		}
		// What an earlier run began, such as switching it on again, ends before the
		// resize begins, and can undo what off has found.
		if !says(err, http.StatusUnprocessableEntity, textMustBeOff) || try == resizeTries {
			return m, err
		}
	}
}

// resizeTries bounds how often a Droplet is switched off for a resize.
const resizeTries = 3
