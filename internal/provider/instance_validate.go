// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// ValidateConfig checks what the configuration alone can tell.
func (r *instanceResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	config, err := newRecord(refuseNulls(&resp.Diagnostics, req.Config.Raw))
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
