// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// errNoImage keeps "no such image" out of the cache, since an image may be made
// at any time.
var errNoImage = errors.New("no such image")

// imageCache remembers what an image's name or id means. A name is looked up
// without an architecture: the answer then holds the image of each, and can tell
// "wrong architecture" from "unknown" without a second call.
type imageCache struct {
	api    *hcloud.Client
	names  *backends.Cached[[]string]
	lookup *backends.CachedByKey[string, []*hcloud.Image]
}

func newImageCache(api *hcloud.Client) *imageCache {
	c := &imageCache{api: api}
	c.names = &backends.Cached[[]string]{Lifetime: catalogLifetime, Fetch: c.fetchNames}
	c.lookup = &backends.CachedByKey[string, []*hcloud.Image]{Lifetime: catalogLifetime, Fetch: c.fetch}
	return c
}

// get is every image that a name or id means; none is no error.
func (c *imageCache) get(ctx context.Context, image string) ([]*hcloud.Image, error) {
	found, err := c.lookup.Get(ctx, image)
	if errors.Is(err, errNoImage) {
		return nil, nil
	}
	return found, err
}

func (c *imageCache) fetch(ctx context.Context, image string) ([]*hcloud.Image, error) {
	what := fmt.Sprintf("Reading the image %s", image)
	if id, ok := parseID(image); ok {
		var body schema.ImageGetResponse
		err := get(ctx, c.api, what, fmt.Sprintf("/images/%d", id), &body, func() bool { return body.Image.ID == id })
		if backends.HasCode(err, backends.NotFound) {
			return nil, errNoImage
		}
		if err != nil {
			return nil, err
		}
		return []*hcloud.Image{hcloud.ImageFromSchema(body.Image)}, nil
	}
	found, err := all(ctx, what,
		func(ctx context.Context, number int) ([]*hcloud.Image, *hcloud.Response, error) {
			return c.api.Image.List(ctx, hcloud.ImageListOpts{
				ListOpts: hcloud.ListOpts{Page: number, PerPage: perPage}, Name: image, IncludeDeprecated: true,
			})
		})
	// A server that ignores the filter must not choose the image.
	found = slices.DeleteFunc(found, func(i *hcloud.Image) bool { return i.Name != image || i.ID <= 0 })
	if err == nil && len(found) == 0 {
		err = errNoImage
	}
	return found, err
}

// fetchNames are the names of the images that Hetzner supplies.
func (c *imageCache) fetchNames(ctx context.Context) ([]string, error) {
	found, err := all(ctx, "Reading the images",
		func(ctx context.Context, number int) ([]*hcloud.Image, *hcloud.Response, error) {
			return c.api.Image.List(ctx, hcloud.ImageListOpts{
				ListOpts: hcloud.ListOpts{Page: number, PerPage: perPage},
				Type:     []hcloud.ImageType{hcloud.ImageTypeSystem, hcloud.ImageTypeApp},
			})
		})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range found {
		if i.Name != "" {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ofArchitecture chooses among images of one name: the newest of the architecture.
// "" takes any, but only if there is no choice.
func ofArchitecture(images []*hcloud.Image, architecture hcloud.Architecture) *hcloud.Image {
	if architecture == "" {
		if len(images) == 1 {
			return images[0]
		}
		return nil
	}
	var best *hcloud.Image
	for _, i := range images {
		if i.Architecture == architecture && (best == nil || i.ID > best.ID) {
			best = i
		}
	}
	return best
}

func architectures(images []*hcloud.Image) string {
	var out []string
	for _, i := range images {
		out = append(out, string(i.Architecture))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// resolveImage finds the image of a wish for a server type (nil: not known yet).
// The issue is what makes it unusable, the warning what is worth a look.
func (c *Client) resolveImage(ctx context.Context, image string, t *hcloud.ServerType) (
	id, warning string, issue *backends.Error, err error) {
	found, err := c.images.get(ctx, image)
	if err != nil {
		return "", "", nil, err
	}
	if len(found) == 0 {
		names, err := c.images.names.Get(ctx)
		if err != nil {
			return "", "", nil, err
		}
		return "", "", backends.Errorf(backends.InvalidInput, "There is no image %q in the project.", image).At("image").
			WithRemedy("Use %s, or a snapshot's numeric id.", backends.Choice(backends.Near(image, names, backends.Nearest))), nil
	}
	var architecture hcloud.Architecture
	if t != nil {
		architecture = t.Architecture
	}
	chosen := ofArchitecture(found, architecture)
	switch {
	case chosen == nil && t == nil:
		return "", "", nil, nil // the architecture decides later
	case chosen == nil:
		return "", "", backends.Errorf(backends.InvalidInput, "The image %q exists for %s only, and %s is %s.",
			image, architectures(found), t.Name, architecture).At("image").
			WithRemedy("Choose an image for %s, or an offer of the other architecture.", architecture), nil
	}
	return strconv.FormatInt(chosen.ID, 10), imageWarning(image, chosen), imageIssue(image, chosen, t), nil
}

func imageIssue(name string, i *hcloud.Image, t *hcloud.ServerType) *backends.Error {
	withdrawn := i.Deprecation != nil && !i.Deprecation.UnavailableAfter.IsZero() &&
		time.Now().After(i.Deprecation.UnavailableAfter)
	switch {
	case !i.Deleted.IsZero():
		return backends.Errorf(backends.InvalidInput, "The image %q was deleted on %s.", name, day(i.Deleted)).At("image")
	case withdrawn:
		return backends.Errorf(backends.InvalidInput, "The image %q was withdrawn on %s.", name, day(i.Deprecation.UnavailableAfter)).At("image")
	case i.Status != "" && i.Status != hcloud.ImageStatusAvailable:
		return backends.Errorf(backends.InvalidInput, "The image %q can't be used: its status is %s.", name, i.Status).At("image")
	case t != nil && float64(i.DiskSize) > float64(t.Disk):
		return backends.Errorf(backends.InvalidInput, "The image %q needs a disk of %g GB, and %s has %d GB.", name, i.DiskSize, t.Name, t.Disk).
			At("image").WithRemedy("Choose a larger offer.")
	}
	return nil
}

func imageWarning(name string, i *hcloud.Image) string {
	switch {
	case i.Deprecation != nil && !i.Deprecation.UnavailableAfter.IsZero():
		return fmt.Sprintf("The image %q is deprecated and will be withdrawn on %s.", name, day(i.Deprecation.UnavailableAfter))
	case i.IsDeprecated() || !i.Deprecated.IsZero(): //nolint:staticcheck // Answers of before September 2026 have only this field.
		return fmt.Sprintf("The image %q is deprecated.", name)
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
