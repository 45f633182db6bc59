// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// restartAction is an action that restarts an instance's machine, for Terraform from
// 1.14 on. Each way to restart is a type of its own, as in the vendors' providers: a
// plan shows no more of an action than its type and name, and a rule about plans can
// allow one and refuse another.
type restartAction struct {
	actionTarget

	name  string // without the provider's
	how   reconcile.Restart
	about string
}

var (
	_ action.ActionWithConfigure      = (*restartAction)(nil)
	_ action.ActionWithModifyPlan     = (*restartAction)(nil)
	_ action.ActionWithValidateConfig = (*restartAction)(nil)
)

// actions are the provider's actions.
func actions(clouds *backends.Registry) []func() action.Action {
	restart := func(name string, how reconcile.Restart, about string) func() action.Action {
		return func() action.Action {
			return &restartAction{actionTarget: actionTarget{clouds: clouds, attribute: "instance", kind: reference.KindInstance}, name: name, how: how, about: about}
		}
	}
	return []func() action.Action{
		restart("instance_reboot", reconcile.Reboot,
			"Restarts an instance's machine in any case: the guest is asked to shut down, the plug is pulled after 60 seconds, and the machine is powered on."),
		restart("instance_graceful_restart", reconcile.GracefulRestart,
			"Asks the guest of an instance's machine to restart. Whether it does can't be seen: a guest that ignores the request keeps running."),
		restart("instance_reset", reconcile.Reset,
			"Presses the reset button of an instance's machine: the guest isn't asked, and may lose what it hasn't written."),
		restart("instance_power_cycle", reconcile.Cycle,
			"Pulls the plug of an instance's machine and powers it on: the guest isn't asked, and may lose what it hasn't written. On Hetzner Cloud and DigitalOcean it is the same as a reset."),
		func() action.Action {
			return &snapshotAction{actionTarget{clouds: clouds, attribute: "volume", kind: reference.KindVolume}}
		},
	}
}

// Metadata names the action.
func (a *restartAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + a.name
}

// Schema declares the action.
func (a *restartAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: a.about + " A machine that doesn't run is left as it is, with an error.",
		Attributes: map[string]schema.Attribute{
			"instance": schema.StringAttribute{
				Required: true, MarkdownDescription: "The instance's `uri`, as in `bettercompute_instance.web.uri`.",
			},
			"timeouts": actionTimeouts(ctx),
		},
	}
}

// Invoke restarts the machine and waits until it runs again.
func (a *restartAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	ctx, cancel := invoking(ctx, req.Config, &resp.Diagnostics)
	defer cancel()
	ref, account, err := a.open(req.Config.Raw)
	if err != nil || resp.Diagnostics.HasError() {
		report(&resp.Diagnostics, err)
		return
	}
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("Restarting the machine of %q (%s)", ref.Instance, a.how)})
	m, err := account.Restart(ctx, reconcile.Owned{Pool: ref.PoolRef().ID(), ID: ref.MachineID, Key: ref.ID(), Name: ref.Instance}, a.how)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("The machine %q (%s) runs", m.Name, m.ID)})
}

// actionTimeouts is the library's attribute.
func actionTimeouts(ctx context.Context) schema.Attribute {
	return timeouts.AttributesWithOpts(ctx, timeouts.Opts{InvokeDescription: "How long the action may take. Default `20m`."})
}
