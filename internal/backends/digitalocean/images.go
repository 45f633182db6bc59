// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// errNoImage keeps "no such image" out of the cache, since an image may be made at
// any time.
var errNoImage = errors.New("no such image")

// imageCache remembers what an image's slug or id means.
type imageCache struct {
	client *Client
	names  *backends.Cached[[]string]
	lookup *backends.CachedByKey[string, *godo.Image]
}

func newImageCache(client *Client) *imageCache {
	c := &imageCache{client: client}
	c.names = &backends.Cached[[]string]{Lifetime: catalogLifetime, Fetch: c.fetchNames}
	c.lookup = &backends.CachedByKey[string, *godo.Image]{Lifetime: catalogLifetime, Fetch: c.fetch}
	return c
}

// get is the image; nil when there is none.
func (c *imageCache) get(ctx context.Context, image string) (*godo.Image, error) {
	found, err := c.lookup.Get(ctx, image)
	if errors.Is(err, errNoImage) {
		return nil, nil
	}
	return found, err
}

type imageAnswer struct {
	Image *godo.Image `json:"image"`
}

// fetch reads an image. The API takes ids and slugs in the same place.
func (c *imageCache) fetch(ctx context.Context, image string) (*godo.Image, error) {
	id, isID := parseID(image)
	answer, err := call(ctx, c.client, backends.Idempotent, "Reading the image "+image,
		request{method: http.MethodGet, path: at("images", image)},
		func(a *imageAnswer) bool {
			// A server that looks at something else must not choose the image.
			return a.Image != nil && a.Image.ID > 0 && (isID && a.Image.ID == id || a.Image.Slug == image)
		})
	if backends.HasCode(err, backends.NotFound) {
		return nil, errNoImage
	}
	if err != nil {
		return nil, err
	}
	return answer.Image, nil
}

// fetchNames are the slugs of the distributions that DigitalOcean supplies.
func (c *imageCache) fetchNames(ctx context.Context) ([]string, error) {
	found, err := list(ctx, c.client, "Reading the images", at("images"), url.Values{"type": {"distribution"}}, "images",
		func(i godo.Image) bool { return i.ID > 0 })
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range found {
		if i.Slug != "" {
			names = append(names, i.Slug)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// resolveImage finds the image of a wish for a size and a region (nil and "": not
// known yet). The issue is what makes it unusable.
func (c *Client) resolveImage(ctx context.Context, image string, s *godo.Size, region string) (*godo.Image, *backends.Error, error) {
	if image == "" {
		return nil, backends.Errorf(backends.InvalidInput, "An image is required.").At("image"), nil
	}
	found, err := c.images.get(ctx, image)
	if err != nil {
		return nil, nil, err
	}
	if found == nil {
		names, err := c.images.names.Get(ctx)
		if err != nil {
			return nil, nil, err
		}
		return nil, backends.Errorf(backends.InvalidInput, "There is no image %q.", image).At("image").
			WithRemedy("Use a slug such as %s, or the numeric id of a snapshot or custom image of the account's team.",
				backends.Choice(backends.Near(image, names, backends.Nearest))), nil
	}
	return found, imageIssue(image, found, s, region), nil
}

func imageIssue(name string, i *godo.Image, s *godo.Size, region string) *backends.Error {
	switch {
	case i.Status != "" && i.Status != "available":
		return backends.Errorf(backends.InvalidInput, "The image %q can't be used: its status is %s.", name, backends.Printable(i.Status)).
			At("image")
	case region != "" && len(i.Regions) > 0 && !slices.Contains(i.Regions, region):
		return backends.Errorf(backends.InvalidInput, "The image %q is not in %s.", name, region).At("image").
			WithRemedy("It is in %s. A snapshot or custom image can be added to more regions in the control panel.", backends.Choice(i.Regions))
	case s != nil && i.MinDiskSize > s.Disk:
		return backends.Errorf(backends.InvalidInput, "The image %q needs a disk of %d GB, and %s has %d GB.",
			name, i.MinDiskSize, s.Slug, s.Disk).At("image").WithRemedy("Choose a larger offer.")
	}
	return nil
}

// imageOf is an image as requests name it: an id as a number, anything else as the
// slug that it is.
func imageOf(image string) godo.DropletCreateImage {
	if id, ok := parseID(image); ok {
		return godo.DropletCreateImage{ID: id}
	}
	return godo.DropletCreateImage{Slug: image}
}
