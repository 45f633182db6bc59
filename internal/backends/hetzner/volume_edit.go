// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"maps"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var (
	_ backends.VolumeRenamer   = volumes{}
	_ backends.VolumeLabeler   = volumes{}
	_ backends.VolumeProtector = volumes{}
)

// Rename implements [backends.VolumeRenamer] with one PUT of the name and all labels.
// A name whose holder is being deleted is waited for.
func (v volumes) Rename(ctx context.Context, o backends.Volume, name string, marks backends.Marks) (backends.Volume, error) {
	what := "Renaming " + calledVolume(o) + " to " + name
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return o, err
	}
	opts := hcloud.VolumeUpdateOpts{Name: name, Labels: v.marks.write(o.Labels, marks)}
	var renamed *hcloud.Volume
	var deadline time.Time
	err = backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) (err error) {
		renamed, err = v.put(ctx, what, id, opts)
		if !isNameTaken(err) {
			return err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(backends.Scale(nameReleaseWindow))
		}
		return nameTaken(ctx, "volume", err, deadline, func(ctx context.Context) (*backends.About, error) {
			found, err := v.Named(ctx, name)
			if err != nil || len(found) == 0 {
				return nil, err
			}
			return new(found[0].About()), nil
		})
	})
	if err != nil {
		return o, err
	}
	return v.volume(renamed), nil
}

// put changes a volume's name or labels once.
func (v volumes) put(ctx context.Context, what string, id int64, opts hcloud.VolumeUpdateOpts) (*hcloud.Volume, error) {
	updated, answer, err := v.api.Volume.Update(ctx, &hcloud.Volume{ID: id}, opts)
	if err == nil && succeeded(answer) && updated.ID != id {
		err = errNoObject
	}
	return updated, failure(ctx, what, answer, err)
}

// LabelOptions implements [backends.VolumeLabeler]: there are no options of Hetzner's own.
func (volumes) LabelOptions() []string { return nil }

// Relabel implements [backends.VolumeLabeler] with one PUT, which replaces all labels,
// so that those of others are sent along.
func (v volumes) Relabel(ctx context.Context, o backends.Volume, from, to backends.VolumeSpec) (backends.Volume, error) {
	if to.Labels == nil {
		return o, nil
	}
	labels := maps.Clone(o.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for key := range from.Labels {
		delete(labels, key)
	}
	maps.Copy(labels, to.Labels)
	if maps.Equal(labels, o.Labels) {
		return o, nil
	}
	wanted := o
	wanted.Labels = labels
	labelled, err := v.Mark(ctx, wanted, o.Marks)
	if err != nil {
		return o, err
	}
	return labelled, nil
}

// Protect implements [backends.VolumeProtector].
func (v volumes) Protect(ctx context.Context, o backends.Volume, protected bool) error {
	what := "Changing the protection of " + calledVolume(o)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return err
	}
	return v.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		return v.api.Volume.ChangeProtection(ctx, &hcloud.Volume{ID: id}, hcloud.VolumeChangeProtectionOpts{Delete: &protected})
	}, waitForEnd)
}
