// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The warnings of this file have the volume's name in their summaries: CLIs show one
// of several warnings with the same summary, and count the rest.

// warnReplacement says what a replacement does. The cores ask for its plan twice, and
// show no warnings of the second time, so this is the first. Of a replacement that the
// user asks for, by -replace or taint, a provider isn't told then.
func (p *volumePlan) warnReplacement(ctx context.Context) {
	if len(p.replace) == 0 || p.imported() {
		return
	}
	p.warnLoss()
	p.warnFilesystem()
	if p.account != nil {
		warnSnapshots(ctx, p.diags, p.account, kindOf(p.state), p.state.text("name"), p.state.text("volume_id"))
	}
}

// warnLoss says that a replacement loses the data, and what forces it.
func (p *volumePlan) warnLoss() {
	if p.goes {
		return // it is said already
	}
	p.diags.AddWarning(fmt.Sprintf("The volume's data is lost: %q", p.state.text("name")),
		fmt.Sprintf("The volume %q (%s) is replaced: it is deleted, and its data with it, and another one is made. What forces it: %s. To keep the data, undo that change.",
			p.state.text("name"), p.state.text("volume_id"), strings.Join(p.replace, ", ")))
}

// warnTaken says which machines that `instances` doesn't name a block volume is taken
// from, since it is to be on another one. Until then it stays there, as the refresh
// says.
func (p *volumePlan) warnTaken(had, want []namedInstance) {
	if kindOf(p.plan) != backends.BlockVolume {
		return // a share is mounted by many
	}
	coming := missing(want, had)
	to := quotedInstances(coming)
	switch {
	case !p.plan.isKnown("instances") && len(coming) == 0:
		to = "an instance that isn't made yet"
	case len(coming) == 0:
		return
	}
	ours := slices.Concat(machines(had), machines(want), pendingMachines(p.state))
	foreign := slices.DeleteFunc(attachedMachines(p.state), func(id string) bool { return slices.Contains(ours, id) })
	if len(foreign) == 0 {
		return
	}
	p.diags.AddWarning(fmt.Sprintf("Taken from another machine: %q", p.state.text("name")),
		fmt.Sprintf("The volume %q (%s) is attached to a machine that instances didn't name, and this plan moves it from the machine %s to %s. "+
			"What writes to it there must have stopped.", p.state.text("name"), p.state.text("volume_id"), strings.Join(foreign, ", "), to))
}

// quotedInstances are the names of instances in quotes.
func quotedInstances(named []namedInstance) string {
	names := make([]string, len(named))
	for i, n := range named {
		names[i] = fmt.Sprintf("%q", n.ref.Instance)
	}
	return strings.Join(names, ", ")
}
