// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The sizes that POST /volumes takes, in GB of 2^30 bytes (https://docs.hetzner.cloud,
// "Create a Volume").
const (
	minVolumeSize = 10
	maxVolumeSize = 10240
)

// volumeName is the rule of the description of POST /volumes.
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9](?:[-_.a-zA-Z0-9]{0,62}[a-zA-Z0-9])?$`)

// CheckForm implements [backends.VolumeStore]. There are no options of Hetzner's own:
// automount, the API's only one, belongs to an attachment, not to a volume.
func (v volumes) CheckForm(spec backends.VolumeSpec) []*backends.Error {
	issues := backends.Validate(nil, spec.Options, backends.Path{attribute})
	if spec.Name != "" && !volumeName.MatchString(spec.Name) {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "The name %q can't be used: it is not 1 to 64 letters, "+
			"digits, dots, underscores and hyphens with a letter or digit at both ends.", spec.Name).At("name"))
	}
	if issue := checkVolumeSize(spec); issue != nil {
		issues = append(issues, issue)
	}
	switch spec.Filesystem {
	case "", filesystemNone, hcloud.VolumeFormatExt4, hcloud.VolumeFormatXFS:
	default:
		issues = append(issues, backends.Errorf(backends.InvalidInput, "There is no filesystem %q.", spec.Filesystem).At("filesystem").
			WithRemedy("Use ext4, xfs or none."))
	}
	return append(issues, checkLabels(spec.Labels, v.marks.prefix)...)
}

// filesystemNone asks for a volume that isn't formatted.
const filesystemNone = "none"

func checkVolumeSize(spec backends.VolumeSpec) *backends.Error {
	if !spec.Knows("size_gib") || spec.SizeGiB >= minVolumeSize && spec.SizeGiB <= maxVolumeSize {
		return nil
	}
	e := backends.Errorf(backends.InvalidInput, "Hetzner's volumes have %d to %d GiB, not %d.", minVolumeSize, maxVolumeSize, spec.SizeGiB).
		At("size_gib")
	e.Reason = backends.ReasonSize
	return e
}

// Check implements [backends.VolumeStore]: it reads the catalog for the region.
func (v volumes) Check(ctx context.Context, spec backends.VolumeSpec) ([]*backends.Error, error) {
	issues := v.CheckForm(spec)
	if spec.Region == "" {
		return issues, nil
	}
	catalog, err := v.catalog.Get(ctx)
	if err != nil {
		return issues, err
	}
	if _, _, _, issue := catalog.check("", spec.Region); issue != nil {
		issues = append(issues, issue)
	}
	return issues, nil
}

// Make implements [backends.VolumeStore] with one POST.
func (v volumes) Make(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
	what := "Creating volume " + spec.Name
	if issues := v.CheckForm(spec); len(issues) > 0 {
		return backends.Volume{}, issues[0]
	}
	if spec.Restores {
		// An empty volume must not pass for a restored one.
		e := backends.Errorf(backends.Unsupported, "Hetzner Cloud has no snapshots of volumes.").At("from_snapshot")
		e.Reason = backends.ReasonSnapshots
		return backends.Volume{}, e
	}
	marks := spec.Marks
	marks.Complete = false
	body := &schema.VolumeCreateRequest{
		Name: spec.Name, Size: int(spec.SizeGiB),
		Location: &schema.IDOrName{Name: spec.Region},
		Labels:   new(v.marks.write(spec.Labels, marks)),
	}
	if spec.Filesystem != "" && spec.Filesystem != filesystemNone {
		body.Format = &spec.Filesystem
	}

	var made *hcloud.Volume
	var deadline time.Time
	err := backends.Retry(ctx, backends.Making, func(ctx context.Context) error {
		var answered schema.VolumeCreateResponse
		answer, err := send(ctx, v.api, http.MethodPost, "/volumes", body, &answered)
		if err == nil && succeeded(answer) && answered.Volume.ID <= 0 {
			err = errNoObject
		}
		err = failure(ctx, what, answer, err)
		switch {
		case err == nil:
			made = hcloud.VolumeFromSchema(answered.Volume)
			return nil
		case isNameTaken(err):
			if deadline.IsZero() {
				deadline = time.Now().Add(backends.Scale(nameReleaseWindow))
			}
			return nameTaken(ctx, "volume", err, deadline, func(ctx context.Context) (*backends.About, error) {
				found, err := v.Named(ctx, spec.Name)
				if err != nil || len(found) == 0 {
					return nil, err
				}
				return new(found[0].About()), nil
			})
		default:
			return explainVolume(err, spec)
		}
	})
	if err != nil {
		return backends.Volume{}, err
	}
	return v.volume(made), nil
}

// explainVolume adds to a refused create what only the wish tells.
func explainVolume(err error, spec backends.VolumeSpec) error {
	e := backends.AsError(err)
	if e == nil {
		return err
	}
	out := *e
	switch {
	case e.Code == backends.NotFound:
		// The volume doesn't exist yet: it is the location that doesn't.
		out.Code, out.Reason = backends.ProviderError, backends.ReasonInvalid
		out.Remedy = "Check the region."
	case e.Reason == backends.ReasonCapacity:
		out.Message = fmt.Sprintf("%s There is no room for %d GiB in %s now.", e.Message, spec.SizeGiB, spec.Region)
		out.Remedy = "Try again later, or choose another region."
	}
	return &out
}
