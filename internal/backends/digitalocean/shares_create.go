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

// minShareSize is the smallest share of any tier in GiB; what a tier takes is in the
// account's options. maxShareSize only bounds what is sent: it is far above any tier.
const (
	minShareSize = 50
	maxShareSize = math.MaxInt32
)

// CheckForm implements [backends.VolumeStore].
func (s shares) CheckForm(spec backends.VolumeSpec) []*backends.Error {
	issues := backends.Validate(volumeFields(s.tags.prefix), spec.Options, backends.Path{attribute})
	issues = append(issues, notOf("shared", spec.Options, "tags", "filesystem_label")...)
	if spec.Restores {
		e := backends.Errorf(backends.Unsupported, "DigitalOcean makes no share from a snapshot.").At("from_snapshot")
		e.Reason = backends.ReasonSnapshots
		e.Details = map[string]any{"reason": string(e.Reason)}
		issues = append(issues, e)
	}
	if issue := checkShareBounds(spec.SizeGiB); issue != nil && spec.Knows("size_gib") {
		issues = append(issues, issue)
	}
	issues = append(issues, s.regionIssues(spec.Region)...)
	if spec.Network != "" {
		if problem := checkVPC(spec.Network); problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("network_id"))
		}
	}
	if len(spec.Labels) > 0 {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "A share of DigitalOcean has no tags, so it can't have labels.").At("labels"))
	}
	return issues
}

// checkShareBounds reports a size that no tier takes.
func checkShareBounds(size int64) *backends.Error {
	if size >= minShareSize && size <= maxShareSize {
		return nil
	}
	return sizeIssue("A share of DigitalOcean has at least %d GiB, and the account's limit at most, not %d.", minShareSize, size)
}

// Check implements [backends.VolumeStore]: it reads the options of shares, which are
// the account's, and the VPC.
func (s shares) Check(ctx context.Context, spec backends.VolumeSpec) ([]*backends.Error, error) {
	issues := s.CheckForm(spec)
	options, err := s.shareOptions.Get(ctx)
	switch {
	case backends.HasReason(err, backends.ReasonPermission) || backends.HasCode(err, backends.NotFound):
		options = &godo.NfsOptions{} // a token that may not read them: the creating call decides
	case err != nil:
		return issues, err
	}
	if s.mayUse(spec.Region) {
		issues = append(issues, checkShareRegion(spec.Region, options)...)
	}
	if spec.Knows("size_gib") && checkShareBounds(spec.SizeGiB) == nil && !backends.IsUnknown(spec.Options["performance_tier"]) {
		issues = append(issues, checkShareSize(spec.SizeGiB, spec.Options.String("performance_tier"), options)...)
	}
	if spec.Network == "" || checkVPC(spec.Network) != "" {
		return issues, nil
	}
	issue, err := s.checkNetwork(ctx, spec.Network, spec.Region)
	return append(issues, issue...), err
}

func checkShareRegion(region string, options *godo.NfsOptions) []*backends.Error {
	if region == "" || len(options.SupportedRegions) == 0 || slices.Contains(options.SupportedRegions, region) {
		return nil
	}
	return []*backends.Error{backends.Errorf(backends.InvalidInput, "There are no shares in the region %q.", region).At("region").
		WithRemedy("Use %s.", backends.Choice(slices.Sorted(slices.Values(options.SupportedRegions))))}
}

func checkShareSize(size int64, tier string, options *godo.NfsOptions) []*backends.Error {
	tier = cmp.Or(tier, tierStandard)
	for _, t := range options.PerformanceTiers {
		least, most := min(t.MinSizeGib, maxShareSize), min(t.MaxSizeGib, maxShareSize)
		if t.Tier == tier && (size < int64(least) || most > 0 && size > int64(most)) {
			return []*backends.Error{sizeIssue("A share of the performance tier %s has %d to %d GiB, not %d.", tier, least, most, size)}
		}
	}
	return nil
}

// checkNetwork reports a VPC that isn't there, or is elsewhere.
func (s shares) checkNetwork(ctx context.Context, vpc, region string) ([]*backends.Error, error) {
	r := reference{referred{vpcKind, vpc}, []backends.Path{{"network_id"}}}
	problem, err := s.lookUp(ctx, r.referred, "")
	if err != nil {
		return nil, err
	}
	if is, err := s.referred.Get(ctx, r.referred); err == nil && region != "" && is.region != "" && is.region != region {
		problem = fmt.Sprintf("The VPC %s is in %s, and the share is to be in %s.", vpc, is.region, region)
	}
	return r.issues(problem), nil
}

func (s shares) fetchOptions(ctx context.Context) (*godo.NfsOptions, error) {
	return call(ctx, s.Client, backends.Idempotent, "Reading the options of shares",
		request{method: http.MethodGet, path: at("nfs", "options")},
		func(o *godo.NfsOptions) bool {
			return len(o.PerformanceTiers) > 0 && !slices.Contains(o.PerformanceTiers, nil) && len(o.SupportedRegions) > 0
		})
}

// Make implements [backends.VolumeStore] with one POST.
func (s shares) Make(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
	what := "Creating share " + spec.Name
	if issues := s.CheckForm(spec); len(issues) > 0 {
		return backends.Volume{}, issues[0]
	}
	name, err := markedName(idShare, spec.Marks)
	if err != nil {
		return backends.Volume{}, err
	}
	body := &godo.NfsCreateRequest{
		Name: name, SizeGib: int(spec.SizeGiB), Region: spec.Region, VpcIDs: []string{spec.Network},
		PerformanceTier: spec.Options.String("performance_tier"),
	}
	answer, err := call(ctx, s.Client, backends.Making, what, request{method: http.MethodPost, path: at("nfs"), body: body},
		func(a *shareAnswer) bool { return a.Share != nil && isObject(a.Share.ID) && a.Share.Name == name })
	if backends.HasCode(err, backends.NotFound) {
		// The share doesn't exist yet: the VPC doesn't.
		e := plain(err)
		e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
		return backends.Volume{}, e.At("network_id").WithRemedy("Check that the VPC is of the account's team.")
	}
	if err != nil {
		return backends.Volume{}, err
	}
	return share(answer.Share), nil
}
