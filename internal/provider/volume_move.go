// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var _ resource.ResourceWithMoveState = (*volumeResource)(nil)

// MoveState takes over the state of a volume of another provider.
func (r *volumeResource) MoveState(context.Context) []resource.StateMover {
	pick := func(m backends.Moves) []backends.Move[backends.MovedVolume] { return m.Volumes }
	return movers(r.registry, reference.KindVolume, pick, volumeMoved)
}

// volumeMoved fills what another provider's state tells. Where the volume is attached
// isn't among it: instances is for the configuration to say.
func volumeMoved(r record, v backends.MovedVolume) error {
	if problem := reference.VolumeNameProblem(v.Name); problem != "" {
		return nameProblem(problem)
	}
	r.setText("name", v.Name)
	r.setText("volume_id", v.ID)
	r.setText("kind", string(v.Kind))
	r.setText("region", v.Region)
	r.setText("urn", v.URN)
	r.setText("device", v.Device)
	r.setTruth("delete_with_instance", false)
	if v.SizeGiB > 0 {
		r.setWhole("size_gib", v.SizeGiB)
		r.setWhole("observed_size_gib", v.SizeGiB)
	}
	if v.Filesystem == filesystemExt4 || v.Filesystem == filesystemXFS {
		r.setText("filesystem", v.Filesystem)
	}
	return nil
}

// takeOver plans the taking over of a volume that was moved here, as
// [instancePlan.takeOver] does.
func (p *volumePlan) takeOver(ctx context.Context, from movedFrom, private privateSetter) {
	p.state = p.state.clone() // what is worked out below isn't in the state
	name, id := p.state.text("name"), p.state.text("volume_id")
	defer p.fillMoved()
	if p.pool == nil {
		return
	}
	if err := movedElsewhere(from, p.resource.registry, p.account); err != nil {
		report(p.diags, err.At("pool"))
		return
	}
	volumeNames(p.state, *p.pool, name)
	p.key = p.state.text("id")
	if p.state.isNull("device") {
		p.state.setText("device", p.account.Device(kindOf(p.state), name))
	}
	v, err := p.account.ReadVolume(ctx, p.pool.PoolID(), kindOf(p.state), id)
	if unreadable(err) {
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		return
	}
	if err = goneSinceMoved(err, "volume", name, id, *p.pool); err == nil {
		err = checkMoved(v, p.key, p.pool.PoolID())
	}
	if err == nil {
		err = p.checkMovedAttachment(v)
	}
	if err != nil {
		report(p.diags, err)
		return
	}
	if !v.Marks.Managed {
		p.state.setText("name", v.Name) // it may have been renamed since
	}
	p.state.setText("region", v.Region)
	p.state.setWhole("size_gib", v.SizeGiB)
	marks := volumeMarks(v, p.key, acceptVolume(v), nil)
	p.diags.Append(private.SetKey(ctx, observedKey, marks)...)
	p.seen = volumePrivate{known: true}
	_ = json.Unmarshal(marks, &p.seen) // it was encoded above
}

// checkMovedAttachment refuses to take a volume over and, in the same apply, off a
// machine: nothing showed before that it is there.
func (p *volumePlan) checkMovedAttachment(v backends.Volume) error {
	if !p.plan.has("instances") {
		return nil
	}
	named, err := namedInstances(p.resource.registry, p.plan, p.pool)
	if err != nil {
		return err
	}
	for _, machine := range v.Machines {
		if !slices.Contains(machines(named), machine) {
			return backends.Errorf(backends.Conflict, "The volume %q (%s) is attached to the machine %s, which instances doesn't name.", v.Name, v.ID, machine).
				WithRemedy("Name the instance that it is on, or leave instances out, and apply once, which takes the volume over where it is; move it then.").At("instances")
		}
	}
	return nil
}

// fillMoved is as that of an instance's plan.
func (p *volumePlan) fillMoved() {
	for _, name := range []string{"region", "size_gib"} {
		if p.state.isNull(name) && !p.config.isNull(name) {
			p.state.values[name] = p.plan.values[name]
		}
	}
	unknownIfNull(p.state, "id", "uri", "region", "urn", "device", "state", "message", "observed_size_gib", "attachments", "mount")
}
