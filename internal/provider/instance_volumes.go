// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// warnDestroyed warns of the volumes that go with a machine that is planned for
// destruction. What can't be read is passed over: the destruction doesn't depend on
// it.
func (r *instanceResource) warnDestroyed(ctx context.Context, diags *diag.Diagnostics, state record) {
	if r.data == nil {
		return
	}
	_, account, err := r.data.open(reference.KindInstance, state.text("uri"))
	if err != nil {
		return
	}
	warnGoingWith(ctx, diags, account, state.text("name"), state.text("machine_id"))
}

// warnGoingWith names the volumes that are deleted together with a machine, and refuses
// the deletion of one that is protected.
func warnGoingWith(ctx context.Context, diags *diag.Diagnostics, account *reconcile.Account, name, machine string) {
	if machine == "" {
		return
	}
	going, err := account.GoingWith(ctx, machine)
	if err != nil || len(going) == 0 {
		return
	}
	names := make([]string, len(going))
	for i, v := range going {
		if v.Protected {
			report(diags, reconcile.GoesProtected(backends.Machine{ID: machine, Name: name}, v))
			return
		}
		names[i] = fmt.Sprintf("%q (%s)", v.Name, v.ID)
	}
	diags.AddWarning("Volumes go with the machine", fmt.Sprintf("Deleting the machine %q (%s) also deletes what is attached to it with delete_with_instance = true, "+
		"and the data on it: %s. To keep a volume, set delete_with_instance = false and apply that alone first.", name, machine, strings.Join(names, ", ")))
}
