// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Command idle is a provider with the schema of this one that does nothing. The
// benchmarks (tools/bench) hold the time of a plan against it, which tells the cost of
// our reads and checks from that of the CLI and of the schema's size. The variable
// BETTERCOMPUTE_IDLE chooses how little it does:
//
//	resources  the plugin framework serves resources whose methods do nothing
//	answers    reads and plans are answered before they reach the framework
//
// It plans no change of a state that the real provider wrote; it makes nothing, so
// don't apply with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/better-compute/terraform-provider-bettercompute/internal/provider"
)

// variable chooses what the provider does.
const variable = "BETTERCOMPUTE_IDLE"

func main() {
	if err := serve(os.Getenv(variable)); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(1)
	}
}

func serve(mode string) error {
	// As quiet as the provider that it is compared with.
	if err := os.Setenv("TF_LOG_SDK", "ERROR"); err != nil {
		return err
	}
	newProvider, err := provider.New("idle")
	if err != nil {
		return err
	}
	switch mode {
	case "resources":
		return tf6server.Serve(provider.Address, providerserver.NewProtocol6(idleResources{newProvider()}))
	case "answers":
		whole := providerserver.NewProtocol6(newProvider())
		return tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return answers{whole()} })
	}
	return errors.New(variable + " must be resources or answers")
}

// answers is a server that answers reads and plans with what it was given.
type answers struct{ tfprotov6.ProviderServer }

// ConfigureProvider implements [tfprotov6.ProviderServer].
func (answers) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

// ValidateResourceConfig implements [tfprotov6.ProviderServer].
func (answers) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (
	*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

// ReadResource implements [tfprotov6.ProviderServer].
func (answers) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private, NewIdentity: req.CurrentIdentity}, nil
}

// PlanResourceChange implements [tfprotov6.ProviderServer].
func (answers) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (
	*tfprotov6.PlanResourceChangeResponse, error) {
	return &tfprotov6.PlanResourceChangeResponse{
		PlannedState: req.ProposedNewState, PlannedPrivate: req.PriorPrivate, PlannedIdentity: req.PriorIdentity,
	}, nil
}
