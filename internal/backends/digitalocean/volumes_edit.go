// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// A volume's name can't be changed (the API has no call for it), and neither can a
// snapshot's: PUT /v2/images knows images of Droplets only. Its tags can.
var (
	_ backends.VolumeLabeler   = volumes{}
	_ backends.VolumeProtector = volumes{}
)

// LabelOptions implements [backends.VolumeLabeler].
func (volumes) LabelOptions() []string { return []string{"tags"} }

// Relabel implements [backends.VolumeLabeler] by the tags that differ. Those to come go
// on before those to go come off, so that what selects by tags never sees the volume
// without any.
func (v volumes) Relabel(ctx context.Context, o backends.Volume, from, to backends.VolumeSpec) (backends.Volume, error) {
	what := "Tagging " + calledVolume(o)
	was, wish := tagWish{from.Labels, from.Options}, tagWish{to.Labels, to.Options}
	if wish.silent() || len(was.tags())+len(wish.tags()) == 0 {
		return o, nil
	}
	read := func() (*godo.Volume, error) {
		answer, err := call(ctx, v.Client, backends.Idempotent, what, request{method: http.MethodGet, path: at("volumes", o.ID)},
			func(a *volumeAnswer) bool { return a.Volume != nil && a.Volume.ID == o.ID })
		if err != nil {
			return nil, err
		}
		return answer.Volume, nil
	}
	if err := checkObject(what, o.ID); err != nil {
		return o, err
	}
	now, err := read()
	if err != nil {
		return o, err
	}
	is := tagged{godo.VolumeResourceType, o.ID}
	on, off := tagChange(now.Tags, was, wish)
	for _, tag := range on {
		if err := v.tagWith(ctx, what, is, tag); err != nil {
			return o, err
		}
	}
	for _, tag := range off {
		if err := v.untag(ctx, what, is, tag); err != nil {
			return o, err
		}
	}
	if len(on)+len(off) > 0 {
		if now, err = read(); err != nil {
			return o, err
		}
	}
	return v.volume(now), nil
}

// Protect implements [backends.VolumeProtector] by the tag that protects Droplets too.
func (v volumes) Protect(ctx context.Context, o backends.Volume, protected bool) error {
	what := "Protecting " + calledVolume(o)
	if !protected {
		what = "Lifting the protection of " + calledVolume(o)
	}
	if err := checkObject(what, o.ID); err != nil {
		return err
	}
	return v.protect(ctx, what, tagged{godo.VolumeResourceType, o.ID}, protected)
}

// hasTag tells whether a tag is among others. The API ignores case.
func hasTag(tags []string, tag string) bool {
	return slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, tag) })
}
