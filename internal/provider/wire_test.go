// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// wire speaks to a configured provider as a core does, for what no CLI lets a test
// do: an interrupt at a known moment, a state as an old process left it.
type wire struct {
	t      *testing.T
	server tfprotov6.ProviderServer
	types  map[string]tftypes.Object
}

// object is a resource as the wire carries it.
type object struct {
	value   tftypes.Value
	private []byte
}

func (w *world) wire() *wire {
	w.t.Helper()
	out := &wire{t: w.t, server: w.server(), types: map[string]tftypes.Object{}}
	schema, err := out.server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	for name, s := range schema.ResourceSchemas {
		typ, ok := s.ValueType().(tftypes.Object)
		if !ok {
			w.t.Fatalf("%s is no object", name)
		}
		out.types[name] = typ
	}
	config, err := tfprotov6.NewDynamicValue(schema.Provider.ValueType(), tftypes.NewValue(schema.Provider.ValueType(), nulls(schema.Provider.ValueType())))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := out.server.ConfigureProvider(w.t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &config}); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func nulls(typ tftypes.Type) map[string]tftypes.Value {
	out := map[string]tftypes.Value{}
	if o, ok := typ.(tftypes.Object); ok {
		for name, t := range o.AttributeTypes {
			out[name] = tftypes.NewValue(t, nil)
		}
	}
	return out
}

// config is a configuration: what isn't given is null.
func (w *wire) config(resource string, given map[string]tftypes.Value) tftypes.Value {
	values := nulls(w.types[resource])
	maps.Copy(values, given)
	return tftypes.NewValue(w.types[resource], values)
}

func (w *wire) dynamic(typ tftypes.Type, v tftypes.Value) *tfprotov6.DynamicValue {
	w.t.Helper()
	d, err := tfprotov6.NewDynamicValue(typ, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return &d
}

func (w *wire) value(resource string, d *tfprotov6.DynamicValue) tftypes.Value {
	w.t.Helper()
	v, err := d.Unmarshal(w.types[resource])
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// none is no object: the prior state of a create, the plan of a destroy.
func (w *wire) none(resource string) object {
	return object{value: tftypes.NewValue(w.types[resource], nil)}
}

// proposed is what a core proposes: the configuration with the prior's computed
// values.
func (w *wire) proposed(resource string, prior, config tftypes.Value) tftypes.Value {
	w.t.Helper()
	if prior.IsNull() {
		return config
	}
	var before, wanted map[string]tftypes.Value
	if err := prior.As(&before); err != nil {
		w.t.Fatal(err)
	}
	if err := config.As(&wanted); err != nil {
		w.t.Fatal(err)
	}
	wanted = maps.Clone(wanted) // As hands out the configuration's own map
	for name, v := range before {
		if computed[name] && wanted[name].IsNull() {
			wanted[name] = v
		}
	}
	return tftypes.NewValue(w.types[resource], wanted)
}

// plan is what a core would propose and the provider make of it.
func (w *wire) plan(resource string, prior object, config tftypes.Value) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	typ := w.types[resource]
	resp, err := w.server.PlanResourceChange(w.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: w.dynamic(typ, prior.value), PriorPrivate: prior.private,
		ProposedNewState: w.dynamic(typ, w.proposed(resource, prior.value, config)), Config: w.dynamic(typ, config),
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return object{w.value(resource, resp.PlannedState), resp.PlannedPrivate}, resp.Diagnostics
}

// computed are the resources' attributes that a core keeps from the prior state
// where the configuration is null.
var computed = map[string]bool{
	"id": true, "uri": true, "claim": true, "machine_id": true, "urn": true, "state": true, "message": true, "image_id": true, "addresses": true,
	"ipv4": true, "ipv6": true, "private_ipv4": true, "address": true, "price_per_hour": true, "currency": true, "offer_actual": true,
	"snapshot_id": true, "size_gib": true, "created_at": true,
	"volume_id": true, "observed_size_gib": true, "device": true, "attachments": true, "mount": true, "kind": true, "delete_with_instance": true,
	"region": true, "power": true, "on_image_change": true, "on_user_data_change": true,
}

// apply plans and applies.
func (w *wire) apply(ctx context.Context, resource string, prior object, config tftypes.Value) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	planned, problems := w.plan(resource, prior, config)
	for _, d := range problems {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			w.t.Fatalf("plan: %s: %s", d.Summary, d.Detail)
		}
	}
	return w.applyPlanned(ctx, resource, prior, planned, config)
}

// applyPlanned applies what was planned, maybe by another process.
func (w *wire) applyPlanned(ctx context.Context, resource string, prior, planned object, config tftypes.Value) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	typ := w.types[resource]
	resp, err := w.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: resource, PriorState: w.dynamic(typ, prior.value), PlannedState: w.dynamic(typ, planned.value),
		Config: w.dynamic(typ, config), PlannedPrivate: planned.private,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return object{w.value(resource, resp.NewState), resp.Private}, resp.Diagnostics
}

// read refreshes.
func (w *wire) read(resource string, prior object) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	resp, err := w.server.ReadResource(w.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: resource, CurrentState: w.dynamic(w.types[resource], prior.value), Private: prior.private,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return object{w.value(resource, resp.NewState), resp.Private}, resp.Diagnostics
}

// text is a string attribute; "" when it is null.
func (o object) text(t *testing.T, name string) string {
	t.Helper()
	var values map[string]tftypes.Value
	var s string
	if err := o.value.As(&values); err != nil {
		t.Fatal(err)
	}
	if v := values[name]; v.IsKnown() && !v.IsNull() {
		if err := v.As(&s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// destroy applies the plan that there is no object.
func (w *wire) destroy(resource string, prior object) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	typ := w.types[resource]
	none := w.dynamic(typ, w.none(resource).value)
	resp, err := w.server.ApplyResourceChange(w.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: resource, PriorState: w.dynamic(typ, prior.value), PlannedState: none, Config: none, PlannedPrivate: prior.private,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return object{w.value(resource, resp.NewState), resp.Private}, resp.Diagnostics
}
