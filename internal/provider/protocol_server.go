// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// ProtocolServer is a provider as the protocol's server calls it. The framework's own
// keeps a function for each call that was ever made, to cancel it when the core says
// stop, and with it the call's context: the loggers, the headers, some 35 KiB a call. A
// refresh of 5,000 machines would hold 170 MiB of that at its end, and a provider that
// serves for days would grow without end. So the calls that come once for each resource
// get a context that lets go of everything when the call is over.
func ProtocolServer(p provider.Provider) tfprotov6.ProviderServer {
	framework := providerserver.NewProtocol6(p)()
	if all, ok := framework.(frameworkServer); ok {
		return protocolServer{all}
	}
	return framework
}

// frameworkServer is what the framework's server is. The optional parts are named, since
// the protocol's server looks for them by a type assertion.
type frameworkServer interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

type protocolServer struct{ frameworkServer }

func (s protocolServer) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (
	*tfprotov6.ValidateResourceConfigResponse, error) {
	return during(ctx, req, s.frameworkServer.ValidateResourceConfig)
}

func (s protocolServer) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (
	*tfprotov6.UpgradeResourceStateResponse, error) {
	return during(ctx, req, s.frameworkServer.UpgradeResourceState)
}

func (s protocolServer) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (
	*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return during(ctx, req, s.frameworkServer.UpgradeResourceIdentity)
}

func (s protocolServer) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (
	*tfprotov6.ReadResourceResponse, error) {
	return during(ctx, req, s.frameworkServer.ReadResource)
}

func (s protocolServer) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (
	*tfprotov6.PlanResourceChangeResponse, error) {
	return during(ctx, req, s.frameworkServer.PlanResourceChange)
}

func (s protocolServer) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (
	*tfprotov6.ApplyResourceChangeResponse, error) {
	return during(ctx, req, s.frameworkServer.ApplyResourceChange)
}

func (s protocolServer) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (
	*tfprotov6.ImportResourceStateResponse, error) {
	return during(ctx, req, s.frameworkServer.ImportResourceState)
}

func (s protocolServer) MoveResourceState(ctx context.Context, req *tfprotov6.MoveResourceStateRequest) (
	*tfprotov6.MoveResourceStateResponse, error) {
	return during(ctx, req, s.frameworkServer.MoveResourceState)
}

func (s protocolServer) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (
	*tfprotov6.ReadDataSourceResponse, error) {
	return during(ctx, req, s.frameworkServer.ReadDataSource)
}

func (s protocolServer) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (
	*tfprotov6.CallFunctionResponse, error) {
	return during(ctx, req, s.frameworkServer.CallFunction)
}

// during makes a call with a context that holds nothing once the call is over.
func during[Request, Response any](ctx context.Context, req Request, call func(context.Context, Request) (Response, error)) (
	Response, error) {
	c := &callContext{}
	c.current.Store(&contextOf{ctx})
	defer c.current.Store(overContext)
	return call(c, req)
}

// callContext is a call's context while it lasts, and a cancelled one without values
// later.
type callContext struct{ current atomic.Pointer[contextOf] }

type contextOf struct{ context.Context }

var overContext = func() *contextOf {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &contextOf{ctx}
}()

// Deadline implements [context.Context].
func (c *callContext) Deadline() (time.Time, bool) { return c.current.Load().Deadline() }

// Done implements [context.Context].
func (c *callContext) Done() <-chan struct{} { return c.current.Load().Done() }

// Err implements [context.Context].
func (c *callContext) Err() error { return c.current.Load().Err() }

// Value implements [context.Context].
func (c *callContext) Value(key any) any { return c.current.Load().Value(key) }
