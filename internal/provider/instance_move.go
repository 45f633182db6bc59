// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var _ resource.ResourceWithMoveState = (*instanceResource)(nil)

// MoveState takes over the state of a machine of another provider.
func (r *instanceResource) MoveState(context.Context) []resource.StateMover {
	pick := func(m backends.Moves) []backends.Move[backends.MovedMachine] { return m.Machines }
	return movers(r.registry, reference.KindInstance, pick, instanceMoved)
}

// instanceMoved fills what another provider's state tells. What can be known keeps its
// value in the plan that takes the machine over, so that what refers to it doesn't
// change: records of its address, above all.
func instanceMoved(r record, m backends.MovedMachine) error {
	if problem := reference.InstanceNameProblem(m.Name); problem != "" {
		return nameProblem(problem)
	}
	if problem := reference.MachineIDProblem(m.ID); problem != "" {
		return backends.Errorf(backends.InvalidState, "The id in the state to move from is no machine's: %s", problem)
	}
	r.setText("name", m.Name)
	r.setText("machine_id", m.ID)
	r.setText("offer", m.Offer)
	r.setText("image", m.Image)
	r.setText("region", m.Region)
	r.setText("urn", m.URN)
	r.setText("on_image_change", onChangeReplace)
	r.setText("on_user_data_change", onChangeIgnore)
	instanceObservedWishes(r, m.Machine)
	instanceAddresses(r, m.Addresses)
	r.setNull("addresses") // the other state may not show all of them
	return nil
}

// nameProblem is the error of an object whose name none of our resources can have.
func nameProblem(problem string) error {
	return backends.Errorf(backends.InvalidInput, "The object to move has a name that this resource can't have. %s", problem).
		WithRemedy("Rename it with its own provider first, and apply that; then move it.")
}

// takeOver plans the taking over of a machine that was moved here. It looks at the
// machine, to refuse what isn't the one that is meant and to see what it is, as the
// refresh after an import does. Nothing that it sees is planned, since the machine may
// change until the apply: only what the state says.
func (p *instancePlan) takeOver(ctx context.Context, from movedFrom, private privateSetter) {
	p.state = p.state.clone() // what is worked out below isn't in the state
	name, id := p.state.text("name"), p.state.text("machine_id")
	defer p.fillMoved()
	if p.pool == nil {
		return
	}
	if err := movedElsewhere(from, p.resource.registry, p.account); err != nil {
		report(p.diags, err.At("pool"))
		return
	}
	instanceNames(p.state, *p.pool, name, id)
	p.key = p.state.text("id")
	m, err := p.account.Read(ctx, p.pool.PoolID(), id)
	if unreadable(err) {
		p.resource.data.warnUnchecked(p.diags, p.account.URI, err)
		return
	}
	if err = goneSinceMoved(err, "machine", name, id, *p.pool); err == nil && !m.Partial {
		err = checkMoved(m, p.key, p.pool.PoolID())
	}
	switch {
	case err != nil:
		report(p.diags, err)
		return
	case m.Partial:
		p.diags.AddWarning("Not reachable now", fmt.Sprintf("Of the machine %q (%s) little can be read, so the plan isn't checked: %s", name, id, m.Message))
		return
	}
	if !m.Marks.Managed {
		p.state.setText("name", m.Name) // it may have been renamed since
	}
	if m.Offer != "" {
		p.state.setText("offer", m.Offer)
	}
	if p.state.isNull("region") {
		p.state.setText("region", m.Region)
	}
	marks := observedMarks(m, accept(m))
	p.diags.Append(private.SetKey(ctx, observedKey, marks)...)
	_ = json.Unmarshal(marks, &p.seen) // it was encoded above
	p.warnPower(m)
}

// fillMoved makes the state one that a plan can be compared with: what neither it nor
// the cloud told is what the configuration says, or known after the apply.
func (p *instancePlan) fillMoved() {
	for _, name := range []string{"offer", "region"} {
		if p.state.isNull(name) && !p.config.isNull(name) {
			p.state.values[name] = p.plan.values[name]
		}
	}
	unknownIfNull(p.state, "id", "uri", "region", "image_id", "urn", "state", "message",
		"offer_actual", "addresses", "ipv4", "ipv6", "private_ipv4", "address")
}

// warnPower says that taking a machine over switches it, where it does.
func (p *instancePlan) warnPower(m backends.Machine) {
	want := p.plan.text("power")
	switch {
	case m.State == backends.StateStopped && want == powerOn:
		p.diags.AddWarning("The machine is switched on", fmt.Sprintf("The machine %q (%s) is off. Taking it over switches it on; to leave it off, set power = \"off\".", m.Name, m.ID))
	case m.State == backends.StateRunning && want == powerOff:
		p.diags.AddWarning("The machine is switched off", fmt.Sprintf("The machine %q (%s) runs. Taking it over switches it off, since power is off.", m.Name, m.ID))
	}
}
