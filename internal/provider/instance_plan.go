// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ModifyPlan fills in what is known, checks what is created or changes, and
// decides between in place and replacement. It runs again during apply, so it is
// deterministic and plans no value of the catalog.
func (r *instanceResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	state, err := newRecord(req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if req.Plan.Raw.IsNull() {
		if state.truth("deletion_protection") {
			report(&resp.Diagnostics, protectedError(state))
		}
		return
	}
	plan, config, err := newRecords(req.Plan.Raw, req.Config.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	p := &instancePlan{
		instanceDifference: differenceOf(ctx, plan.clone(), state, config, req.Private),
		resource:           r, diags: &resp.Diagnostics,
	}
	if plan.isKnown("pool") {
		ref, account, err := r.data.openPool(plan.text("pool"))
		if err != nil {
			report(&resp.Diagnostics, inAttribute("pool", plan.text("pool"), err))
			return
		}
		p.pool, p.account = &ref, account
	}
	if req.State.Raw.IsNull() {
		p.create(ctx)
	} else {
		p.update(ctx)
	}
	resp.Plan.Raw = p.plan.raw()
	for _, name := range p.replace {
		resp.RequiresReplace.Append(path.Root(name))
	}
}

func protectedError(state record) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The instance %q has deletion protection, so it can't be destroyed or replaced.", state.text("name"))
	e.Reason = backends.ReasonProtected
	return e.WithRemedy("Set deletion_protection = false and apply that first.")
}

// instancePlan is one run of ModifyPlan.
type instancePlan struct {
	instanceDifference
	resource *instanceResource
	diags    *diag.Diagnostics
	pool     *reference.Reference // nil while it isn't known
	account  *reconcile.Account
	replace  []string // the attributes that force a replacement
}

func (p *instancePlan) create(ctx context.Context) {
	for name := range instanceOutputs() {
		p.plan.setUnknown(name)
	}
	if p.config.isNull("region") {
		p.plan.setUnknown("region")
		if p.account != nil {
			p.plan.setText("region", p.account.Region)
		}
	}
	if p.pool == nil {
		return
	}
	if p.plan.has("name") {
		p.plan.setText("id", p.pool.InstanceRef(p.plan.text("name"), "").ID())
	}
	p.checkOptions()
	spec := p.spec()
	resolved, ok := p.check(ctx, spec, func(*backends.Error) bool { return true })
	if !ok || !p.plan.has("name") {
		return
	}
	_, err := p.account.Reserve(ctx, *p.pool, spec.Marks.Key, resolved.Offer)
	switch {
	case backends.HasCode(err, backends.QuotaExceeded):
		warn(p.diags, err, "The apply would be refused", "The limit is checked again, and enforced, when the machine is created.")
	case unreadable(err):
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
	default:
		report(p.diags, err)
	}
}

// spec is what is known of the wish.
func (p *instancePlan) spec() backends.MachineSpec {
	userData, _ := userDataOf(p.config)
	return instanceSpec(p.plan, *p.pool, p.account.Definition, userData)
}

// check holds a wish against the catalog and reports the issues that concern the
// caller. ok is false when it could not be checked or is wrong.
func (p *instancePlan) check(ctx context.Context, spec backends.MachineSpec,
	concerns func(*backends.Error) bool) (resolved backends.Resolved, ok bool) {
	resolved, issues, err := p.account.Backend.CheckMachine(ctx, spec)
	switch {
	case backends.HasReason(err, backends.ReasonSecret):
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		return resolved, false
	case err != nil:
		report(p.diags, err)
		return resolved, false
	}
	issues = slices.DeleteFunc(issues, func(e *backends.Error) bool { return !concerns(e) })
	reportIssues(p.diags, issues)
	for _, w := range resolved.Warnings {
		p.diags.AddWarning("Worth a look", w)
	}
	return resolved, len(issues) == 0
}

// checkOptions refuses another cloud's options.
func (p *instancePlan) checkOptions() {
	reportIssues(p.diags, foreignOptions(p.resource.registry, p.plan, p.account.Definition))
}

// foreignOptions are the options in a record that aren't of the pool's cloud.
func foreignOptions(registry *backends.Registry, r record, own *backends.Definition) []*backends.Error {
	var issues []*backends.Error
	for _, d := range registry.All() {
		if v, ok := r.values[d.Attribute()]; ok && d.ID != own.ID && v.IsKnown() && !v.IsNull() {
			e := backends.Errorf(backends.InvalidInput, "The pool is on %s, which takes no %s options.", own.Title, d.Attribute())
			issues = append(issues, e.At(d.Attribute()).
				WithRemedy("Remove the %s attribute, or choose a pool on %s.", d.Attribute(), d.Title))
		}
	}
	return issues
}

func (p *instancePlan) update(ctx context.Context) {
	for name := range instanceOutputs() {
		p.plan.values[name] = p.state.values[name]
	}
	if p.config.isNull("region") {
		p.plan.values["region"] = p.state.values["region"]
	}
	p.planPool()
	p.planReplacement()
	p.planImage(ctx)
	p.planUserData(ctx)
	if p.differs("power") || p.state.text("state") == string(backends.StatePending) {
		p.plan.setUnknown("state")
		p.plan.setUnknown("message")
	}
	if p.imported() {
		p.plan.setUnknown("claim")
	}
	p.warnRecorded()
	if p.pool != nil {
		p.checkOptions()
	}
	if len(p.replace) > 0 && p.state.truth("deletion_protection") {
		report(p.diags, protectedError(p.state))
	}
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

func (p *instancePlan) planReplacement() {
	for _, name := range []string{"name", "offer", "region"} {
		if p.differs(name) {
			p.replace = append(p.replace, name)
		}
	}
	if p.networkID() {
		p.replace = append(p.replace, "network_id")
	}
}

func (p *instancePlan) planImage(ctx context.Context) {
	if !p.image() {
		return
	}
	switch p.plan.text("on_image_change") {
	case onChangeReplace:
		p.replace = append(p.replace, "image")
	case onChangeReinstall:
		p.planReinstall(ctx, "image")
	default:
		p.diags.AddAttributeWarning(path.Root("image"), "Recorded only", "The new image is recorded and takes effect at the next creation, since on_image_change is ignore.")
	}
}

func (p *instancePlan) planUserData(ctx context.Context) {
	if !p.userData() {
		return
	}
	switch p.plan.text("on_user_data_change") {
	case onChangeReplace:
		p.replace = append(p.replace, "user_data", "user_data_wo_version")
	case onChangeReinstall:
		if p.account != nil && !slices.Contains(backends.Capabilities(p.account.Backend), "reinstallUserData") {
			report(p.diags, backends.Errorf(backends.Unsupported, "%s can't give a reinstalled machine new user data.", p.account.Definition.Title).
				At("on_user_data_change").WithRemedy("Use ignore or replace."))
			return
		}
		p.planReinstall(ctx, "")
	default:
		p.diags.AddWarning("Recorded only", "The new user data is recorded and takes effect at the next creation, since on_user_data_change is ignore.")
	}
}

// planReinstall plans a reinstallation in place, and says what it costs.
func (p *instancePlan) planReinstall(ctx context.Context, attribute string) {
	p.plan.setUnknown("image_id")
	p.plan.setUnknown("state")
	p.plan.setUnknown("message")
	if len(p.replace) > 0 {
		return
	}
	p.diags.AddWarning("The disk is wiped", fmt.Sprintf("The machine %s (%q) is reinstalled in place: it keeps its id and addresses, and everything on its disk is lost.",
		p.state.text("machine_id"), p.state.text("name")))
	if p.account == nil {
		return
	}
	if _, ok := p.account.Backend.(backends.Reinstaller); !ok {
		report(p.diags, backends.Errorf(backends.Unsupported, "%s can't reinstall a machine.", p.account.Definition.Title).
			At("on_image_change").WithRemedy("Use ignore or replace."))
		return
	}
	// The offer is looked up for its architecture; that it may be out of stock now
	// doesn't concern a machine that exists.
	p.check(ctx, p.spec(), func(e *backends.Error) bool {
		return len(e.Path) == 0 || e.Path[0] == attribute
	})
}

// warnRecorded tells of changes that are recorded and take effect at the next
// creation only.
func (p *instancePlan) warnRecorded() {
	if len(p.replace) > 0 {
		return
	}
	names := []string{"labels"}
	for _, d := range p.resource.registry.All() {
		if len(d.Manifest.Machine) > 0 {
			names = append(names, d.Attribute())
		}
	}
	for _, name := range names {
		if p.differs(name) && (!p.imported() || !p.state.isNull(name)) {
			p.diags.AddAttributeWarning(path.Root(name), "Recorded only", fmt.Sprintf("The change of %s is recorded and takes effect at the next creation; the machine is left as it is.", name))
		}
	}
	if p.sshKeys() {
		p.diags.AddAttributeWarning(path.Root("ssh_keys"), "Recorded only", "The new ssh_keys are recorded and take effect at the next creation; change them on the running machine yourself.")
	}
}

// ValidateConfig checks what the configuration alone can tell.
func (r *instanceResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	config, err := newRecord(req.Config.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	var given []string
	for _, d := range r.registry.All() {
		if raw, ok := config.values[d.Attribute()]; ok && !raw.IsNull() {
			given = append(given, d.Attribute())
			reportIssues(&resp.Diagnostics, backends.Validate(d.Manifest.Machine, instanceOptions(config, d), backends.Path{d.Attribute()}))
		}
	}
	if len(given) > 1 {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidInput, "Options of more than one cloud are given: %s.", fmt.Sprint(given)).
			WithRemedy("Keep those of the pool's cloud."))
	}
	if config.has("user_data") && config.has("user_data_wo") {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidInput, "user_data and user_data_wo exclude each other.").
			WithRemedy("Keep user_data_wo if the user data holds anything secret."))
	}
	if userData, known := userDataOf(config); known && config.isKnown("ssh_keys") {
		spec := backends.MachineSpec{Name: config.text("name"), UserData: userData, SSHKeys: config.texts("ssh_keys")}
		if _, err := spec.CloudInit(); err != nil {
			report(&resp.Diagnostics, err)
		}
	}
	if config.has("pool") {
		ref, err := reference.ParseKind(r.registry, reference.KindPool, config.text("pool"))
		if err != nil {
			report(&resp.Diagnostics, inAttribute("pool", config.text("pool"), err))
		} else if d, ok := r.registry.Lookup(ref.Cloud); ok {
			reportIssues(&resp.Diagnostics, foreignOptions(r.registry, config, d))
		}
	}
}
