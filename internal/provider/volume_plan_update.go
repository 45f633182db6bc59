// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

func (p *volumePlan) update(ctx context.Context) {
	for name := range volumeOutputs() {
		p.plan.values[name] = p.state.values[name]
	}
	if p.config.isNull("region") {
		p.plan.values["region"] = p.state.values["region"]
	}
	p.planPool()
	for _, name := range []string{"region", "kind", "network_id"} {
		if p.changes(name) {
			p.replace = append(p.replace, name)
		}
	}
	if p.filesystem() {
		p.replace = append(p.replace, "filesystem")
	}
	p.planName(ctx)
	p.planInstances(ctx)
	p.planSize(ctx)
	if p.seen.Unfinished {
		p.plan.setUnknown("urn", "device", "mount", "attachments", "observed_size_gib", "state", "message")
	}
	if p.imported() {
		p.plan.setUnknown("claim")
	}
	p.refuseReplacement(ctx)
	p.warnReplacement(ctx)
	p.warnRecorded()
	p.checkProtection()
	p.checkChanges()
}

// planPool keeps what the pool's own keys don't touch, follows an account that
// changed, and replaces the volume for another pool. A pool that isn't known yet
// never replaces it: should it turn out to be another one, the apply is refused.
func (p *volumePlan) planPool() {
	if p.pool == nil {
		p.plan.setUnknown("uri")
		return
	}
	recorded, err := reference.ParseKind(p.resource.registry, reference.KindVolume, p.state.text("uri"))
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
		p.plan.setText("uri", is.VolumeRef(p.state.text("name")).String())
	}
}

// planInstances decides what another `instances` does. Attaching and detaching is
// in place, but for a volume that goes with its instance: the CLIs destroy an
// instance before they update what is attached to it, so the volume is gone by then
// (DESIGN.md §5).
func (p *volumePlan) planInstances(ctx context.Context) {
	if !p.differs("instances") {
		return
	}
	p.plan.setUnknown("attachments")
	had := recordedInstances(p.resource.registry, p.state)
	want, ok := p.named(ctx, p.plan)
	if !ok {
		return
	}
	if p.account != nil {
		if err := lookUp(ctx, p.account, had); err != nil {
			p.unchecked(err)
			return
		}
	}
	known := p.plan.isKnown("instances")
	if known && sameMachines(had, want) && p.state.isNull("instances") == p.plan.isNull("instances") {
		p.plan.values["attachments"] = p.state.values["attachments"]
	}
	if left := missing(had, want); len(left) > 0 && p.state.truth("delete_with_instance") && (known || p.pool != nil) {
		p.replace = append(p.replace, "instances")
		p.warnGoes(left)
	}
	if p.pool == nil && !known {
		p.warnMayGo(missing(had, want))
	}
	if len(p.replace) > 0 || p.pool == nil {
		return // a replacement is checked as a creation
	}
	spec := volumeSpec(p.plan, *p.pool, p.account.Definition)
	if err := tooMany(spec.Kind, want); err != nil {
		report(p.diags, err)
		return
	}
	if p.checkInstances(ctx, spec, missing(want, had)) {
		p.warnTaken(had, want)
	}
}

// warnGoes says what is lost when a volume goes with the instances that it leaves.
func (p *volumePlan) warnGoes(left []namedInstance) {
	p.goes = true
	p.diags.AddAttributeWarning(path.Root("delete_with_instance"),
		fmt.Sprintf("The volume's data goes with the instance: %q", p.state.text("name")),
		fmt.Sprintf("The volume %q (%s) has delete_with_instance = true and is attached to %s, which it is moved or taken from, or which may be replaced by this plan. "+
			"So the volume is replaced: it is deleted, and its data with it, and an empty one is made. To keep the data, undo the change, set delete_with_instance = false "+
			"and apply that alone; then make the change.", p.state.text("name"), p.state.text("volume_id"), quotedInstances(left)))
}

// warnMayGo says what can't be planned in time: with the pool and the instances both
// unknown, the volume's own replacement would be a guess that destroys data, and
// without it the loss comes first (DESIGN.md §5).
func (p *volumePlan) warnMayGo(left []namedInstance) {
	if len(left) == 0 || !p.state.truth("delete_with_instance") {
		return
	}
	p.diags.AddAttributeWarning(path.Root("delete_with_instance"),
		fmt.Sprintf("The volume's data may go with the instance: %q", p.state.text("name")),
		fmt.Sprintf("The volume %q (%s) has delete_with_instance = true and is attached to %s. Neither pool nor instances is known yet, so the plan can't tell whether it stays there. "+
			"If this apply replaces that instance, the volume goes with it, and the core refuses the apply after the loss (\"inconsistent final plan\"). To keep the data, "+
			"set delete_with_instance = false and apply that alone first; or apply what the pool depends on with -target, then plan again.",
			p.state.text("name"), p.state.text("volume_id"), quotedInstances(left)))
}

// planSize grows in place, and refuses to shrink.
func (p *volumePlan) planSize(ctx context.Context) {
	if !p.differs("size_gib") || len(p.replace) > 0 {
		return
	}
	if !p.plan.isKnown("size_gib") {
		p.plan.setUnknown("observed_size_gib", "state", "message")
		return
	}
	was, size := p.state.whole("size_gib"), p.plan.whole("size_gib")
	if size < was {
		report(p.diags, shrinks(p.state.text("name"), was, size))
		return
	}
	if size <= p.state.whole("observed_size_gib") {
		return // it is that large already
	}
	p.plan.setUnknown("observed_size_gib", "state", "message")
	if p.pool != nil {
		spec := volumeSpec(p.plan, *p.pool, p.account.Definition)
		spec.Marks.Key = p.state.text("id") // under which it is counted until it is renamed
		p.warnLimit(ctx, spec)
	}
}

// shrinks is the error of a volume that is to become smaller.
func shrinks(name string, was, size int64) *backends.Error {
	return wrongSize("The volume %q has %d GiB and can't shrink to %d.", name, was, size).
		WithRemedy("Set size_gib = %d or more. For a smaller volume make another one, and copy the data.", was)
}

// checkChanges refuses what changes into something that no creation would take.
func (p *volumePlan) checkChanges() {
	if p.pool == nil || len(p.replace) > 0 {
		return // a replacement is checked as a creation
	}
	p.checkOptions()
	for _, e := range p.account.CheckVolumeForm(volumeSpec(p.plan, *p.pool, p.account.Definition)) {
		name := ""
		if len(e.Path) > 0 {
			name, _ = e.Path[0].(string)
		}
		if name != "" && p.differs(name) {
			report(p.diags, e)
		}
	}
	if p.differs("from_snapshot") && p.plan.has("from_snapshot") {
		_, err := snapshotOf(p.resource.registry, p.plan, p.pool)
		report(p.diags, err)
	}
}

// warnRecorded tells of changes that are recorded and take effect at the next
// creation only. What an import could not know is no change.
func (p *volumePlan) warnRecorded() {
	if len(p.replace) > 0 {
		return
	}
	names := []string{"description", "from_snapshot"}
	names = append(names, p.recordedOptions()...)
	p.warnLabelsStay()
	if p.unrecorded() {
		p.diags.AddAttributeWarning(path.Root("filesystem"), "Recorded only",
			"What filesystem is on the volume was not recorded, as after an import. What filesystem says is recorded now; the volume is neither looked at nor formatted.")
	}
	slices.Sort(names)
	for _, name := range names {
		if p.differs(name) && !p.imported() {
			p.diags.AddAttributeWarning(path.Root(name), "Recorded only",
				fmt.Sprintf("The change of %s is recorded and takes effect at the next creation; the volume is left as it is.", name))
		}
	}
}
