// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var (
	_ resource.ResourceWithConfigure      = (*instanceResource)(nil)
	_ resource.ResourceWithIdentity       = (*instanceResource)(nil)
	_ resource.ResourceWithImportState    = (*instanceResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*instanceResource)(nil)
	_ resource.ResourceWithValidateConfig = (*instanceResource)(nil)
)

// The default timeouts.
const (
	changeTimeout = 20 * time.Minute
	readTimeout   = 5 * time.Minute
)

// instanceResource is bettercompute_instance.
type instanceResource struct {
	registry *backends.Registry
	data     *providerData
}

func newInstanceResource(registry *backends.Registry) resource.Resource {
	return &instanceResource{registry: registry}
}

// Metadata names the resource; its identity, the uri, changes with its account.
func (r *instanceResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_instance"
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (r *instanceResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = configured(req.ProviderData, &resp.Diagnostics)
}

// attributeGetter is what plans and states have in common.
type attributeGetter interface {
	GetAttribute(ctx context.Context, at path.Path, target any) diag.Diagnostics
}

// within bounds an operation by its timeout; pick is a method such as
// timeouts.Value.Create. A timeout that is known at apply only may be wrong: then an
// error is added and the context has ended already, so that nothing is made.
func within(ctx context.Context, from attributeGetter, diags *diag.Diagnostics, limit time.Duration,
	pick func(timeouts.Value, context.Context, time.Duration) (time.Duration, diag.Diagnostics)) (context.Context, context.CancelFunc) {
	var t timeouts.Value
	problems := from.GetAttribute(ctx, path.Root("timeouts"), &t)
	if !t.IsNull() { // else pick would log so, for each resource
		var wrong diag.Diagnostics
		limit, wrong = pick(t, ctx, limit)
		problems.Append(wrong...)
	}
	if problems.HasError() || limit <= 0 {
		report(diags, backends.Errorf(backends.InvalidInput, notATimeout).At("timeouts").WithRemedy(timeoutRemedy))
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	ctx, flush := collectWarnings(ctx, diags)
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func() { cancel(); flush() }
}

// collectWarnings gathers what an operation warns of, each text once, and reports it
// when the operation is over. What another operation still warns of then, which began
// its list on our behalf, is lost.
func collectWarnings(ctx context.Context, diags *diag.Diagnostics) (_ context.Context, flush func()) {
	var mu sync.Mutex
	var texts []string
	over := false
	ctx = backends.WithWarnings(ctx, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if !over && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	})
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		for _, text := range texts {
			diags.AddWarning("Worth a look", text)
		}
	}
}
