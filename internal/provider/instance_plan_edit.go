// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// planEdits plans what an [backends.Editor] changes: name, labels, network and the
// cloud's own options. Where the cloud has none, name and network replace the machine,
// and the rest is recorded.
func (p *instancePlan) planEdits(ctx context.Context) {
	pool, account := p.place()
	if account == nil {
		return // what is recorded is read by then, or the plan has failed
	}
	editor, ok := account.Backend.(backends.Editor)
	if !ok {
		if p.changes("name") {
			p.replace = append(p.replace, "name")
		}
		if p.networkID() {
			p.replace = append(p.replace, "network_id")
		}
		return
	}
	p.editor = editor
	if p.changes("name") {
		p.planRename(*pool)
	}
	userData, _ := userDataOf(p.config)
	to := instanceSpec(p.plan, *pool, account.Definition, userData)
	for _, from := range p.editedFrom(ctx, *pool, account, to) {
		effects := editor.PlanEdit(from, to)
		if slices.ContainsFunc(effects, func(e backends.Effect) bool { return e.Takes == backends.Replace && !says(from, e.Path) }) {
			effects = editor.PlanEdit(p.completed(ctx, *pool, account, from, to), to)
		}
		for _, e := range effects {
			p.planEffect(e, to)
		}
	}
	if slices.ContainsFunc(p.effects, func(e backends.Effect) bool { return e.Addresses && e.Takes <= backends.Restart }) {
		p.plan.setUnknown("addresses", "ipv4", "ipv6", "private_ipv4", "address")
		if planned := account.PlannedAddresses(to); len(planned) > 0 {
			instanceAddresses(p.plan, planned)
		}
	}
}

// place is the pool and the account that the plan has, or, while those aren't known,
// those that the state has.
func (p *instancePlan) place() (*reference.Reference, *reconcile.Account) {
	if p.account != nil {
		return p.pool, p.account
	}
	ref, account, err := p.resource.data.open(reference.KindInstance, p.state.text("uri"))
	if err != nil {
		return nil, nil
	}
	pool := ref.PoolRef()
	return &pool, account
}

// planRename gives the machine another name, id and uri. One that was never taken over
// has no mark by which a run that is cut off could be told from another's.
func (p *instancePlan) planRename(pool reference.Reference) {
	if p.imported() {
		report(p.diags, backends.Errorf(backends.InvalidState, "The machine is called %q and is not taken over yet, so it can't be renamed.", p.state.text("name")).
			At("name").WithRemedy("Give the resource that name and apply once, which takes it over; rename it then."))
		return
	}
	ref := pool.InstanceRef(p.plan.text("name"), p.state.text("machine_id"))
	p.plan.setText("id", ref.ID())
	if p.pool != nil {
		p.plan.setText("uri", ref.String())
	}
	p.renames = true
}

// editedFrom are the wishes that the machine may come from. An imported one is asked
// what it is, so that taking it over plans no restart for what it has already.
func (p *instancePlan) editedFrom(ctx context.Context, pool reference.Reference, account *reconcile.Account,
	to backends.MachineSpec) []backends.MachineSpec {
	if p.imported() {
		if shown, ok := p.shown(ctx, pool, account, to); ok {
			return []backends.MachineSpec{shown}
		}
	}
	return editedFrom(p.instanceDifference, pool, account.Definition)
}

// completed is a wish with what the machine has where the wish says nothing and the
// next one does: to write down what a machine is replaces nothing.
func (p *instancePlan) completed(ctx context.Context, pool reference.Reference, account *reconcile.Account,
	from, to backends.MachineSpec) backends.MachineSpec {
	shown, ok := p.shown(ctx, pool, account, to)
	if !ok {
		return from
	}
	if from.Network == "" {
		from.Network = shown.Network
	}
	options := shown.Options.Clone()
	maps.Copy(options, from.Options)
	from.Options = options
	return from
}

// shown is what the machine is of what a wish says; ok is false where it can't be read.
func (p *instancePlan) shown(ctx context.Context, pool reference.Reference, account *reconcile.Account,
	to backends.MachineSpec) (_ backends.MachineSpec, ok bool) {
	machine := p.state.text("machine_id")
	if machine == "" {
		return to, false
	}
	m, err := account.Read(ctx, pool.PoolRef().ID(), machine)
	if err == nil && !m.Partial {
		if shown, err := p.editor.Shown(ctx, m, to); err == nil {
			return shown, true
		}
	}
	if unreadable(err) {
		p.resource.data.warnUnchecked(p.diags, account.URI, err)
	}
	return to, false
}

// says tells whether a wish says something about an input.
func says(spec backends.MachineSpec, path backends.Path) bool {
	if len(path) == 1 {
		return path.String() != "network_id" || spec.Network != ""
	}
	field, _ := path[1].(string)
	_, ok := spec.Options[field]
	return ok
}

// editedFrom are the wish of the state and, before it, those whose edit failed.
func editedFrom(is instanceDifference, pool reference.Reference, d *backends.Definition) []backends.MachineSpec {
	recorded := instanceSpec(is.state, pool, d, "")
	var out []backends.MachineSpec
	for _, a := range is.seen.Accepted.Attempts {
		out = append(out, a.spec(recorded))
	}
	return append(out, recorded)
}

// planEffect takes in what becomes of one input; the worst counts. What isn't known
// yet replaces nothing: should it turn out to, the apply is refused.
func (p *instancePlan) planEffect(e backends.Effect, to backends.MachineSpec) {
	name, ok := firstStep(e.Path)
	if !ok {
		return
	}
	if e.Takes == backends.Replace {
		if p.pathIsKnown(e.Path, to) && !slices.Contains(p.replace, name) {
			p.replace = append(p.replace, name)
		}
		return
	}
	i := slices.IndexFunc(p.effects, func(f backends.Effect) bool { return slices.Equal(f.Path, e.Path) })
	switch {
	case i < 0:
		p.effects = append(p.effects, e)
	case e.Takes == backends.Restart && p.effects[i].Takes == backends.InPlace:
		p.effects[i] = e
	}
}

func (p *instancePlan) pathIsKnown(path backends.Path, to backends.MachineSpec) bool {
	name, _ := firstStep(path)
	if len(path) == 1 {
		return p.plan.isKnown(name)
	}
	field, _ := path[1].(string)
	return backends.Values{field: to.Options[field]}.AllKnown()
}

// edits tells whether something is changed in place, or was to be.
func (p *instancePlan) edits() bool {
	return p.unfinished() || slices.ContainsFunc(p.effects, func(e backends.Effect) bool { return e.Takes <= backends.Restart })
}

// planOffer plans another offer: in place where the cloud can.
func (p *instancePlan) planOffer() {
	_, account := p.place()
	if account == nil {
		return
	}
	_, resizes := account.Backend.(backends.Resizer)
	switch {
	case p.offer() && !resizes:
		p.replace = append(p.replace, "offer")
	case p.offer():
		p.resizes = true
		p.plan.setText("offer_actual", p.plan.text("offer"))
		p.plan.setUnknown("price_per_hour", "currency")
	case resizes && !p.plan.isKnown("offer"):
		p.resizes = true
		p.plan.setUnknown("offer_actual", "price_per_hour", "currency")
	}
}

// warnEdits says what a change in place costs, and what it doesn't do.
func (p *instancePlan) warnEdits() {
	if len(p.replace) > 0 {
		return
	}
	name := p.state.text("name")
	var restarts []string
	if p.resizes {
		restarts = append(restarts, "offer")
	}
	for _, e := range p.effects {
		switch at := e.Path.String(); e.Takes {
		case backends.NextCreation:
			p.diags.AddAttributeWarning(attributePath(e.Path), "Recorded only: "+at, strings.TrimSpace(fmt.Sprintf(
				"The change of %s is recorded and takes effect at the next creation; the machine is left as it is. %s", at, e.Note)))
		case backends.Restart:
			restarts = append(restarts, at)
			fallthrough
		default:
			if e.Note != "" {
				p.diags.AddAttributeWarning(attributePath(e.Path), "Worth a look: "+at, e.Note)
			}
		}
	}
	running := p.state.text("state") != string(backends.StateStopped) && p.plan.text("power") != powerOff
	if len(restarts) > 0 && running {
		p.diags.AddWarning(fmt.Sprintf("The machine is restarted: %q", name), fmt.Sprintf("The machine %q (%s) is switched off for the change of %s, and on again after it. "+
			"The guest is asked to shut down first, and has 60 seconds for it.", name, p.state.text("machine_id"), listed(restarts)))
	}
	p.warnLeft()
}

// warnLeft says that what is left out from now on stays as it is.
func (p *instancePlan) warnLeft() {
	if p.editor == nil {
		return
	}
	left := func(at backends.Path, none string) {
		p.diags.AddAttributeWarning(attributePath(at), "Left as it is: "+at.String(), fmt.Sprintf(
			"Without %s the machine keeps what it has of it. %s", at, none))
	}
	if p.plan.isNull("labels") && len(p.state.textMap("labels")) > 0 {
		left(backends.Path{"labels"}, "To remove the labels, set labels = {}.")
	}
	if p.plan.isNull("network_id") && !p.state.isNull("network_id") {
		left(backends.Path{"network_id"}, "")
	}
	_, account := p.place()
	if account == nil {
		return
	}
	attribute := account.Definition.Attribute()
	if v, ok := p.plan.values[attribute]; !ok || !v.IsKnown() {
		return
	}
	had, has := instanceOptions(p.state, account.Definition), instanceOptions(p.plan, account.Definition)
	for _, f := range account.Definition.Manifest.Machine {
		if _, there := has[f.Name]; had.Has(f.Name) && !there {
			left(backends.Path{attribute, f.Name}, "")
		}
	}
}

// listed is a list of names as part of a sentence.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// checkEdits asks the cloud what would keep a change in place from being made.
func (p *instancePlan) checkEdits(ctx context.Context) {
	if !p.renames && !p.resizes && len(p.effects) == 0 || p.diags.HasError() {
		return
	}
	machine, poolID := p.state.text("machine_id"), p.pool.PoolRef().ID()
	if p.renames {
		if err := p.account.NameIsFree(ctx, poolID, p.plan.text("id"), p.plan.text("name"), machine); err != nil {
			p.reportUnlessUnreadable(err)
			return
		}
	}
	to := p.spec()
	p.checkNamed(ctx, to)
	if p.resizes && p.pool.Limits.Price() != nil && p.plan.isKnown("offer") {
		if dearer := p.account.Dearer(ctx, p.seen.Offer, to.Offer, p.state.text("region")); dearer != nil {
			p.reportUnlessUnreadable(p.account.FitsResize(ctx, *p.pool, p.state.text("id"), dearer))
		}
	}
	if !p.edits() && !p.resizes || p.diags.HasError() {
		return
	}
	m, err := p.account.Read(ctx, poolID, machine)
	if err != nil || m.Partial {
		p.reportUnlessUnreadable(err)
		return
	}
	if p.editor != nil && p.edits() {
		from := editedFrom(p.instanceDifference, *p.pool, p.account.Definition)
		p.takeIn(p.editor.CheckEdit(ctx, m, from[len(from)-1], to))
	}
	if r, ok := p.account.Backend.(backends.Resizer); ok && p.resizes && p.plan.isKnown("offer") {
		p.takeIn(r.CheckResize(ctx, m, to, p.plan.truth("resize_disk")))
	}
}

// checkNamed holds the changed options and network against the objects of the cloud
// that they name. The rest of the wish was checked when the machine was made.
func (p *instancePlan) checkNamed(ctx context.Context, to backends.MachineSpec) {
	changed := func(e *backends.Error) bool {
		return slices.ContainsFunc(p.effects, func(f backends.Effect) bool {
			return len(e.Path) >= len(f.Path) && slices.Equal(e.Path[:len(f.Path)], f.Path)
		})
	}
	if !slices.ContainsFunc(p.effects, func(e backends.Effect) bool { return len(e.Path) > 1 || e.Path.String() == "network_id" }) {
		return
	}
	_, issues, err := p.account.Backend.CheckMachine(ctx, to)
	p.reportUnlessUnreadable(err)
	wrong := p.account.Backend.CheckForm(to) // reported already
	for _, e := range issues {
		known := slices.ContainsFunc(wrong, func(w *backends.Error) bool { return w.Error() == e.Error() })
		if changed(e) && !known {
			report(p.diags, e)
		}
	}
}

// takeIn reports what a check has found.
func (p *instancePlan) takeIn(warnings []string, issues []*backends.Error, err error) {
	for _, w := range warnings {
		p.diags.AddWarning("Worth a look", w)
	}
	reportIssues(p.diags, issues)
	p.reportUnlessUnreadable(err)
}

func (p *instancePlan) reportUnlessUnreadable(err error) {
	if unreadable(err) {
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		return
	}
	report(p.diags, err)
}
