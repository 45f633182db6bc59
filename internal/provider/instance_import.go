// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ImportState takes an instance's uri, with or without the machine id. Naming an
// object is the consent to manage it, marked or not; but it records no claim, so
// the next plan shows the machine being taken over, and until that is applied
// nothing here may change or delete it.
func (r *instanceResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	uri := importedURI(ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, account, err := r.data.open(reference.KindInstance, uri)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	m, err := importedMachine(ctx, account, ref)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	rec, err := newRecord(resp.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	pool := ref.PoolRef()
	rec.setText("name", ref.Instance)
	rec.setText("pool", pool.String())
	rec.setText("machine_id", m.ID)
	rec.setText("power", powerOn)
	rec.setText("on_image_change", onChangeReplace)
	rec.setText("on_user_data_change", onChangeIgnore)
	instanceNames(rec, pool, ref.Instance, m.ID)
	resp.State.Raw = rec.raw()
	setIdentity(ctx, resp.Identity, rec.text("uri"), &resp.Diagnostics)
}

// importedMachine finds the machine that an import names and makes sure that it
// is what the uri says.
func importedMachine(ctx context.Context, account *reconcile.Account, ref reference.Reference) (backends.Machine, error) {
	if ref.MachineID == "" {
		found, err := account.Backend.FindMachines(ctx, ref.ID())
		switch {
		case err != nil:
			return backends.Machine{}, err
		case len(found) == 0:
			return backends.Machine{}, backends.Errorf(backends.NotFound, "No machine carries the id of %q in this pool.", ref.Instance).
				WithRemedy("Check the names in the uri. To import a machine that Better Compute didn't make, put its id at the end: %s.", ref.InstanceRef(ref.Instance, "ID").String())
		case len(found) > 1:
			return backends.Machine{}, backends.Errorf(backends.Conflict, "%d machines carry the key of %q.", len(found), ref.Instance).
				WithRemedy("Name one by its id at the end of the uri: %s.", ref.InstanceRef(ref.Instance, found[0].ID).String())
		}
		return found[0], nil
	}
	m, err := account.Backend.GetMachine(ctx, ref.MachineID)
	switch {
	case err != nil:
		return m, err
	case m.Marks.Managed && m.Marks.Pool != ref.PoolID():
		return m, backends.Errorf(backends.Conflict, "The machine %q (%s) belongs to another pool (%s).", m.Name, m.ID, m.Marks.Pool).
			WithRemedy("Import it with that pool's uri; this uri's pool is %s.", ref.PoolID())
	case m.Marks.Managed && !m.Marks.Carries(ref.ID()):
		return m, backends.Errorf(backends.Conflict, "The machine %q (%s) is this pool's instance of another name.", m.Name, m.ID).
			WithRemedy("Import it under the name that it was made with.")
	case !m.Marks.Managed && m.Name != ref.Instance:
		return m, backends.Errorf(backends.InvalidInput, "The machine %s is called %q, not %q.", m.ID, m.Name, ref.Instance).
			WithRemedy("Import it as %s, and give the resource that name.", ref.InstanceRef(m.Name, m.ID).String())
	}
	return m, nil
}
