// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// recorded is the pool and the account that the state names, for what must be known
// while the configuration's pool isn't.
func (p *volumePlan) recorded() (reference.Reference, *reconcile.Account, error) {
	if p.account != nil {
		return *p.pool, p.account, nil
	}
	ref, account, err := p.resource.data.open(reference.KindVolume, p.state.text("uri"))
	return ref.PoolRef(), account, err
}

// planName gives the volume another name in place where the cloud can: its id and uri
// follow, its data and claim stay. Elsewhere it is a replacement.
func (p *volumePlan) planName(ctx context.Context) {
	if !p.differs("name") || len(p.replace) > 0 {
		return
	}
	pool, account, err := p.recorded()
	inPlace := err == nil && account.RenamesVolumes(kindOf(p.state))
	switch {
	case !p.plan.isKnown("name"):
		if inPlace {
			p.plan.setUnknown("id", "uri")
		}
		return
	case !inPlace:
		p.replace = append(p.replace, "name")
		return
	case p.imported():
		report(p.diags, backends.Errorf(backends.InvalidState, "The volume %q (%s) is not taken over yet, so it isn't renamed to %q.",
			p.state.text("name"), p.state.text("volume_id"), p.plan.text("name")).At("name").
			WithRemedy("Write its present name and apply once, which takes it over; rename it then."))
		return
	}
	name := p.plan.text("name")
	uri := p.plan.values["uri"]
	volumeNames(p.plan, pool, name)
	if !uri.IsKnown() {
		p.plan.values["uri"] = uri // the account may be another one by then
	}
	if device := account.Device(kindOf(p.state), name); device != "" {
		p.plan.setText("device", device)
	}
	err = account.VolumeNameIsFree(ctx, kindOf(p.state), name, p.state.text("volume_id"))
	switch {
	case unreadable(err):
		p.resource.data.warnUnchecked(p.diags, account.URI, err)
	case err != nil:
		report(p.diags, err)
	}
}

// relabels tells whether another wish for labels, or for options that are labels, is
// to be carried out.
func (d volumeDifference) relabels(account *reconcile.Account) bool {
	options, ok := account.LabelsVolumes(kindOf(d.state))
	if !ok {
		return false
	}
	if d.differs("labels") {
		return true
	}
	was, is := volumeOptions(d.state, account.Definition), volumeOptions(d.plan, account.Definition)
	return slices.ContainsFunc(options, func(name string) bool { return !reflect.DeepEqual(was[name], is[name]) })
}

// recordedOptions are the attributes of clouds whose changes are recorded only: all that
// isn't changed in place.
func (p *volumePlan) recordedOptions() []string {
	var out []string
	_, account, err := p.recorded()
	if err != nil {
		return nil
	}
	inPlace, labels := account.LabelsVolumes(kindOf(p.state))
	if !labels {
		out = append(out, "labels")
	}
	for _, d := range p.resource.registry.All() {
		if len(d.Manifest.Volume) == 0 || !p.differs(d.Attribute()) {
			continue
		}
		was, is := maps.Clone(volumeOptions(p.state, d)), maps.Clone(volumeOptions(p.plan, d))
		for _, name := range inPlace {
			delete(was, name)
			delete(is, name)
		}
		if len(was)+len(is) > 0 && !reflect.DeepEqual(was, is) {
			out = append(out, d.Attribute())
		}
	}
	return out
}

// warnLabelsStay says that labels which the configuration no longer mentions are left
// as they are.
func (p *volumePlan) warnLabelsStay() {
	if p.state.isNull("labels") || !p.config.isNull("labels") || len(p.state.textMap("labels")) == 0 {
		return
	}
	p.diags.AddAttributeWarning(path.Root("labels"), fmt.Sprintf("Labels stay: %q", p.state.text("name")),
		"Without labels the volume's are left as they are. To take off those that were set here, set labels = {} and apply that first.")
}
