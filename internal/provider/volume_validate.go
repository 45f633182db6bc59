// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// checkWords holds those inputs against their rules that the cores check no more once
// a plan is made: one that the plan doesn't know passes its validator.
func checkWords(plan record) []*backends.Error {
	var issues []*backends.Error
	refuse := func(name, problem string) {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At(name))
	}
	if problem := reference.VolumeNameProblem(plan.text("name")); plan.has("name") && problem != "" {
		refuse("name", problem)
	}
	if utf8.RuneCountInString(plan.text("description")) > descriptionLength {
		refuse("description", fmt.Sprintf("A description has at most %d characters.", descriptionLength))
	}
	if !slices.Contains([]backends.VolumeKind{"", backends.BlockVolume, backends.SharedVolume}, kindOf(plan)) {
		refuse("kind", "A volume's kind is block or shared.")
	}
	if !slices.Contains([]string{"", filesystemNone, filesystemExt4, filesystemXFS}, plan.text("filesystem")) {
		refuse("filesystem", "A filesystem is ext4, xfs or none.")
	}
	return issues
}

// ValidateConfig checks what the configuration alone can tell.
func (r *volumeResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	config, err := newRecord(refuseNulls(&resp.Diagnostics, req.Config.Raw))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	var given []string
	for _, d := range r.registry.All() {
		if raw, ok := config.values[d.Attribute()]; ok && !raw.IsNull() {
			given = append(given, d.Attribute())
			reportIssues(&resp.Diagnostics, backends.Validate(d.Manifest.Volume, volumeOptions(config, d), backends.Path{d.Attribute()}))
		}
	}
	if len(given) > 1 {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidInput, "Options of more than one cloud are given: %s.", fmt.Sprint(given)).
			WithRemedy("Keep those of the pool's cloud."))
	}
	var pool *reference.Reference
	if config.has("pool") {
		ref, err := reference.ParseKind(r.registry, reference.KindPool, config.text("pool"))
		if err != nil {
			report(&resp.Diagnostics, inAttribute("pool", config.text("pool"), err))
		} else if d, ok := r.registry.Lookup(ref.Cloud); ok {
			pool = &ref
			reportIssues(&resp.Diagnostics, foreignOptions(r.registry, config, d))
		}
	}
	named, err := namedInstances(r.registry, config, pool)
	report(&resp.Diagnostics, err)
	if err == nil {
		report(&resp.Diagnostics, tooMany(kindOf(config), named))
	}
	if config.has("from_snapshot") {
		_, err := snapshotOf(r.registry, config, pool)
		report(&resp.Diagnostics, err)
	}
}
