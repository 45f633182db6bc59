// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The sizes of block volumes in GiB (OpenAPI, volumes_create; its upper limit is that
// of the resize action).
const (
	minVolumeSize = 1
	maxVolumeSize = 16384
)

// volumeName is what volumes and shares may be called.
var volumeName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// featureStorage marks regions that have block volumes.
const featureStorage = "storage"

// CheckForm implements [backends.VolumeStore].
func (v volumes) CheckForm(spec backends.VolumeSpec) []*backends.Error {
	issues := backends.Validate(volumeFields(v.tags.prefix), spec.Options, backends.Path{attribute})
	issues = append(issues, notOf("block", spec.Options, "performance_tier")...)
	if spec.Name != "" && !volumeName.MatchString(spec.Name) {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "The name %q can't be used: it is not 1 to 64 lower-case letters, "+
			"digits and hyphens that begin with a letter.", spec.Name).At("name"))
	}
	if spec.Knows("size_gib") && (spec.SizeGiB < minVolumeSize || spec.SizeGiB > maxVolumeSize) {
		issues = append(issues, sizeIssue("DigitalOcean's volumes have %d to %d GiB, not %d.", minVolumeSize, maxVolumeSize, spec.SizeGiB))
	}
	issues = append(issues, v.regionIssues(spec.Region)...)
	issues = append(issues, checkFilesystem(spec)...)
	return append(issues, v.tags.checkLabels(spec.Labels)...)
}

// Check implements [backends.VolumeStore]: it reads the catalog for the region.
func (v volumes) Check(ctx context.Context, spec backends.VolumeSpec) ([]*backends.Error, error) {
	issues := v.CheckForm(spec)
	if spec.Region == "" || !v.mayUse(spec.Region) {
		return issues, nil
	}
	catalog, err := v.catalog.Get(ctx)
	if err != nil {
		return issues, err
	}
	if issue := catalog.checkStorage(spec.Region); issue != nil {
		issues = append(issues, issue)
	}
	return issues, nil
}

// checkStorage reports a region that has no volumes, or none now.
func (c *catalog) checkStorage(region string) *backends.Error {
	if _, _, issue := c.check("", region); issue != nil {
		return issue
	}
	has := func(name string) bool {
		r := c.regions[name]
		return slices.Contains(r.Features, featureStorage) && r.Available
	}
	if has(region) {
		return nil
	}
	e := backends.Errorf(backends.InvalidInput, "The region %s has no block volumes.", region).At("region")
	if slices.Contains(c.regions[region].Features, featureStorage) {
		e = backends.Errorf(backends.CapacityUnavailable, "The region %s takes no new volumes now.", region).At("region")
		e.Reason = backends.ReasonCapacity
	}
	return e.WithRemedy("Use %s.", backends.Choice(slices.DeleteFunc(c.usable(), func(r string) bool { return !has(r) })))
}

// createVolume is the body of POST /v2/volumes. godo's own sends "" for what is
// left out, which the API's description has no place for.
type createVolume struct {
	Name            string   `json:"name"`
	Region          string   `json:"region"`
	SizeGigabytes   int64    `json:"size_gigabytes"`
	Description     string   `json:"description,omitempty"`
	SnapshotID      string   `json:"snapshot_id,omitempty"`
	FilesystemType  string   `json:"filesystem_type,omitempty"`
	FilesystemLabel string   `json:"filesystem_label,omitempty"`
	Tags            []string `json:"tags"`
}

// Make implements [backends.VolumeStore] with one POST. A volume from a snapshot has
// the snapshot's size and filesystem, whatever is asked for.
func (v volumes) Make(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
	what := "Creating volume " + spec.Name
	if issues := v.CheckForm(spec); len(issues) > 0 {
		return backends.Volume{}, issues[0]
	}
	marks := spec.Marks
	marks.Complete = false
	body := &createVolume{
		Name: spec.Name, Region: spec.Region, SizeGigabytes: spec.SizeGiB, Description: spec.Description,
		Tags: append(v.tags.write(marks), foreign(spec.Labels, spec.Options.Strings("tags"))...),
	}
	if spec.Restores {
		// An empty volume must not pass for a restored one.
		if err := checkObject(what, spec.Snapshot); err != nil {
			return backends.Volume{}, plain(err).At("from_snapshot")
		}
		body.SnapshotID = spec.Snapshot
	} else {
		body.FilesystemType, body.FilesystemLabel = formatted(spec.Filesystem), spec.Options.String("filesystem_label")
	}
	answer, err := call(ctx, v.Client, backends.Making, what,
		request{method: http.MethodPost, path: at("volumes"), body: body},
		func(a *volumeAnswer) bool { return a.Volume != nil && isObject(a.Volume.ID) })
	if err != nil {
		return backends.Volume{}, v.explain(ctx, err, spec)
	}
	made := v.volume(answer.Volume)
	if made.Marks.Claim == "" {
		// An answer that came before the tags did: they are what was asked for.
		made.Marks, made.Labels = v.tags.read(body.Tags), v.tags.labels(body.Tags)
	}
	return made, nil
}

// explain adds to a refused create what only the wish tells.
func (v volumes) explain(ctx context.Context, err error, spec backends.VolumeSpec) error {
	e := backends.AsError(err)
	switch {
	case e == nil:
		return err
	case e.Details["status"] == http.StatusConflict:
		return v.nameTaken(ctx, err, spec)
	case e.Code == backends.NotFound:
		// The volume doesn't exist yet: something it names doesn't.
		e = plain(err)
		e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
		if spec.Restores {
			e = e.At("from_snapshot").WithRemedy("Check that the snapshot %s still exists.", spec.Snapshot)
		}
		return e
	}
	return err
}

// nameTaken finds who holds the name in the region, as a [backends.NameTaken]. One that
// no list shows yet holds it without being named.
func (v volumes) nameTaken(ctx context.Context, refusal error, spec backends.VolumeSpec) error {
	found, err := v.Named(ctx, spec.Name)
	if err != nil {
		// Nothing was made; the look-up's own failure must not read as "perhaps".
		return fmt.Errorf("%w (looking for the name's holder failed: %w)", plain(refusal), err)
	}
	for _, o := range found {
		if o.Region == spec.Region {
			return &backends.NameTaken{Holder: o.About()}
		}
	}
	return &backends.NameTaken{Refusal: plain(refusal).WithRemedy("Run again, or choose another name: the API shows no volume of that name in %s.", spec.Region)}
}
