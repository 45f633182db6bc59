// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// notReplaced is a check of a plan that leaves the volume as it is, or records
// something in place.
type notReplaced struct{}

// CheckPlan implements [plancheck.PlanCheck].
func (notReplaced) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != volumeResource {
			continue
		}
		if actions := change.Change.Actions; !actions.NoOp() && !actions.Update() {
			resp.Error = fmt.Errorf("the plan has the actions %v for the volume", actions)
		}
	}
}

// replaceLines are attributes, those that others name again left out.
func replaceLines(lines, others []string) []string {
	key := func(line string) string { k, _, _ := strings.Cut(line, " "); return k }
	out := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return slices.ContainsFunc(others, func(o string) bool { return key(o) == key(line) })
	})
	return append(out, others...)
}
