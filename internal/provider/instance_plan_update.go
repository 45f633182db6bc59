// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

func (p *instancePlan) update(ctx context.Context) {
	for name := range instanceOutputs() {
		p.plan.values[name] = p.state.values[name]
	}
	if p.config.isNull("region") {
		p.plan.values["region"] = p.state.values["region"]
	}
	p.planPool()
	if p.changes("region") {
		p.replace = append(p.replace, "region")
	}
	p.planOffer()
	p.planEdits(ctx)
	p.planImage()
	p.planUserData()
	switch {
	case p.seen.HalfMade:
		// Finishing it may still give it addresses.
		p.plan.setUnknown("image_id", "urn", "addresses", "ipv4", "ipv6", "private_ipv4", "address", "state", "message")
	case p.reinstall != "" || p.mayReinstall():
		p.plan.setUnknown("image_id", "state", "message")
	case p.differs("power"), p.unfinished(), p.imported() && p.state.text("state") == string(backends.StatePending):
		p.plan.setUnknown("state", "message")
	}
	if p.imported() {
		p.plan.setUnknown("claim")
	}
	p.refuseReplacement()
	if len(p.replace) > 0 && p.account != nil {
		// The cores ask for a replacement's plan twice, and show no warnings of the second time.
		warnGoingWith(ctx, p.diags, p.account, p.state.text("name"), p.state.text("machine_id"))
	}
	p.planReinstall(ctx)
	p.warnEdits()
	p.warnRecorded()
	p.checkChanges(ctx)
}

// planPool keeps what the pool's own keys don't touch, follows an account that
// changed, and replaces the machine for another pool. A pool that isn't known yet
// never replaces it: should it turn out to be another one, the apply is refused.
func (p *instancePlan) planPool() {
	if p.pool == nil {
		p.plan.setUnknown("uri")
		return
	}
	recorded, err := reference.ParseKind(p.resource.registry, reference.KindInstance, p.state.text("uri"))
	if err != nil {
		report(p.diags, err)
		return
	}
	was, is := recorded.PoolRef(), p.pool.PoolRef()
	switch {
	case was.ID() != is.ID():
		p.replace = append(p.replace, "pool")
	case was.String() == is.String() && !p.state.isNull("pool"):
		p.plan.values["pool"] = p.state.values["pool"]
	default:
		p.plan.setText("uri", is.InstanceRef(p.state.text("name"), p.state.text("machine_id")).String())
	}
}

func (p *instancePlan) planImage() {
	if !p.image() {
		return
	}
	switch p.plan.text("on_image_change") {
	case onChangeReplace:
		p.replace = append(p.replace, "image")
	case onChangeReinstall:
		p.reinstall = "on_image_change"
	default:
		p.diags.AddAttributeWarning(path.Root("image"), "Recorded only",
			"The new image is recorded and takes effect at the next creation or reinstallation, since on_image_change is ignore.")
	}
}

func (p *instancePlan) planUserData() {
	if !p.userData() {
		return
	}
	switch p.plan.text("on_user_data_change") {
	case onChangeReplace:
		p.replace = append(p.replace, "user_data", "user_data_wo_version")
	case onChangeReinstall:
		p.reinstall = "on_user_data_change"
	default:
		p.diags.AddWarning("Recorded only", "The new user data is recorded and takes effect at the next creation, since on_user_data_change is ignore.")
	}
}

// refuseReplacement reports replacements and reinstallations that must not be.
func (p *instancePlan) refuseReplacement() {
	switch {
	case len(p.replace) == 0 && (p.reinstall == "" || !p.imported()):
	case mustStay(p.state, p.seen):
		report(p.diags, protectedError(p.state))
	case p.imported():
		what := "replaced for a change of " + strings.Join(p.replace, ", ")
		if slices.Contains(p.replace, "offer") && p.seen.Offer != "" {
			what += fmt.Sprintf(" (its offer is %q)", p.seen.Offer)
		}
		if len(p.replace) == 0 {
			what = "reinstalled"
		}
		report(p.diags, backends.Errorf(backends.InvalidState, "The machine was imported and is not taken over yet, so it can't be %s.", what).
			WithRemedy("Make the configuration match the machine and apply once, which takes it over; change it then. "+
				"For the image, on_image_change = \"ignore\" lets it be as it is."))
	}
}

// planReinstall says what a reinstallation in place costs, and refuses one that
// can't be.
func (p *instancePlan) planReinstall(ctx context.Context) {
	if p.reinstall == "" || len(p.replace) > 0 {
		return
	}
	p.diags.AddWarning("The disk is wiped", fmt.Sprintf("The machine %q (%s) is reinstalled in place with the image %q: it keeps its id and addresses, and everything on its disk is lost.",
		p.state.text("name"), p.state.text("machine_id"), p.plan.text("image")))
	if mustStay(p.state, p.seen) && (!p.plan.isKnown("deletion_protection") || p.plan.truth("deletion_protection")) {
		report(p.diags, protectedError(p.state))
	}
	if p.account == nil {
		return
	}
	capability, what := "reinstall", "can't reinstall a machine"
	if p.reinstall == "on_user_data_change" {
		capability, what = "reinstallUserData", "can't give a reinstalled machine new user data"
	}
	if !slices.Contains(backends.Capabilities(p.account.Backend), capability) {
		report(p.diags, backends.Errorf(backends.Unsupported, "%s %s.", p.account.Definition.Title, what).
			At(p.reinstall).WithRemedy("Use ignore or replace."))
		return
	}
	// The offer is looked up for its architecture; that it may be sold out now doesn't
	// concern a machine that exists.
	_, issues, _ := p.check(ctx, p.spec())
	for _, e := range issues {
		if len(e.Path) > 0 && e.Path[0] == "image" {
			report(p.diags, e)
		}
	}
}

// checkChanges refuses what changes into something that no creation would take,
// although it is only recorded now.
func (p *instancePlan) checkChanges(ctx context.Context) {
	if p.pool == nil || len(p.replace) > 0 {
		return // a replacement is checked as a creation
	}
	p.checkOptions()
	if p.differs("deletion_protection") {
		p.checkProtection()
	}
	for _, e := range p.account.Backend.CheckForm(p.spec()) {
		changed := userDataChanged(p.plan, p.state) || p.differs("ssh_keys")
		if len(e.Path) > 0 {
			name, ok := e.Path[0].(string)
			changed = ok && p.differs(name)
		}
		if changed {
			report(p.diags, e)
		}
	}
	p.checkEdits(ctx)
}

// warnRecorded tells of changes that are recorded and take effect at the next
// creation only.
func (p *instancePlan) warnRecorded() {
	if len(p.replace) > 0 {
		return
	}
	var names []string
	if p.editor == nil {
		names = append(names, "labels")
		for _, d := range p.resource.registry.All() {
			if len(d.Manifest.Machine) > 0 {
				names = append(names, d.Attribute())
			}
		}
	}
	for _, name := range names {
		if p.differs(name) {
			p.diags.AddAttributeWarning(path.Root(name), "Recorded only",
				fmt.Sprintf("The change of %s is recorded and takes effect at the next creation; the machine is left as it is.", name))
		}
	}
	if p.state.truth("deletion_protection") && p.plan.isNull("deletion_protection") {
		p.diags.AddAttributeWarning(path.Root("deletion_protection"), "Protection stays on",
			"Without deletion_protection the cloud's protection is left as it is: on. To lift it, set deletion_protection = false.")
	}
	if p.sshKeys() {
		p.diags.AddAttributeWarning(path.Root("ssh_keys"), "Recorded only",
			"The new ssh_keys are recorded and take effect at the next creation; change them on the running machine yourself.")
	}
}
