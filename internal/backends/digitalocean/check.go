// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// maxUserDataKiB is the API's limit.
const maxUserDataKiB = 64

// CheckMachine implements [backends.Backend]. It reads the catalog, the image, and
// the VPC and SSH keys that the wish names: all at the same time, each once in ten
// minutes. A wish without such names costs no call for them.
func (c *Client) CheckMachine(ctx context.Context, spec backends.MachineSpec) (backends.Resolved, []*backends.Error, error) {
	issues := c.CheckForm(spec)
	var out backends.Resolved
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(lookupsAtOnce)
	var catalog *catalog
	if spec.Offer != "" || spec.Image != "" || spec.Region != "" {
		group.Go(func() (err error) {
			catalog, err = c.catalog.Get(groupCtx)
			return err
		})
	}
	if spec.Image != "" {
		group.Go(func() error {
			_, err := c.images.get(groupCtx, spec.Image) // warms the cache while the catalog is on its way
			return err
		})
	}
	named := references(spec)
	problems := make([]string, len(named))
	for i, r := range named {
		group.Go(func() (err error) {
			problems[i], err = c.lookUp(groupCtx, r.referred, spec.Region)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, issues, err
	}
	for i, r := range named {
		issues = append(issues, r.issues(problems[i])...)
	}
	if catalog == nil {
		return out, issues, nil
	}

	size, offer, issue := catalog.check(spec.Offer, spec.Region)
	out.Offer = offer
	if issue != nil {
		issues = append(issues, issue)
	}
	if spec.Image != "" {
		region := spec.Region
		if issue != nil && issue.Path.String() == "region" {
			region = "" // one issue for it is enough
		}
		image, issue, err := c.resolveImage(ctx, spec.Image, size, region)
		if err != nil {
			return out, issues, err
		}
		if image != nil {
			out.ImageID = strconv.Itoa(image.ID)
		}
		if issue != nil {
			issues = append(issues, issue)
		}
	}
	return out, issues, nil
}

// CheckForm implements [backends.Backend]. The options are held against the manifest
// again: what a plan didn't know was checked by nobody yet.
func (c *Client) CheckForm(spec backends.MachineSpec) []*backends.Error {
	issues := backends.Validate(machineFields(c.tags.prefix), spec.Options, backends.Path{attribute})
	if problem := backends.HostnameProblem(spec.Name); spec.Name != "" && problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "The name %q can't be used. %s", spec.Name, problem).At("name"))
	}
	if spec.Network != "" {
		if problem := checkVPC(spec.Network); problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("network_id"))
		}
	}
	if issue := checkBackups(spec.Options); issue != nil {
		issues = append(issues, issue)
	}
	issues = append(issues, c.tags.checkLabels(spec.Labels)...)
	return append(issues, spec.CheckUserData("DigitalOcean", maxUserDataKiB)...)
}

// checkBackups refuses a policy that the API would drop, or a plan that it can't
// follow.
func checkBackups(options backends.Values) *backends.Error {
	policy := options.Object("backup_policy")
	switch {
	case policy == nil:
		return nil
	case !backends.IsUnknown(options["backups"]) && !options.Bool("backups"):
		return backends.Errorf(backends.InvalidInput, "A backup_policy without backups has no effect.").At(attribute, "backup_policy").
			WithRemedy("Set backups = true too.")
	case policy.String("plan") == "daily" && policy.Has("weekday"):
		return backends.Errorf(backends.InvalidInput, "Daily backups have no weekday.").At(attribute, "backup_policy", "weekday")
	}
	return nil
}
