// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// block is a resource of a configuration.
type block struct {
	address string
	typ     string
	given   given // with [ref]s to other blocks
}

// blocks is a configuration, each block behind those that it refers to.
type blocks []block

// ref stands for the uri of another block.
type ref string

// inPool stands for the uri of the pool.
type inPool struct{}

// refs are the addresses that a block refers to.
func (b block) refs() (out []string) {
	for _, v := range b.given {
		switch v := v.(type) {
		case ref:
			out = append(out, string(v))
		case []ref:
			for _, r := range v {
				out = append(out, string(r))
			}
		}
	}
	return out
}

// recorded is an object in a state.
type recorded struct {
	object
	block   block // as it was applied last
	order   int
	tainted bool
}

// state is what a core keeps between runs.
type state map[string]recorded

// core runs one plan and apply as Terraform and OpenTofu do, one resource after the
// other, so that calls come in the same order each time. What it leaves out makes no
// difference to a provider: graphs, formats, locks.
type core struct {
	*wire
	state state
	// pool is the pool's uri.
	pool string
	// replace are the addresses given with -replace.
	replace map[string]bool
	// replaceLost gives -replace for all whose state says that their data is lost.
	replaceLost bool

	config   blocks
	planned  map[string]object
	actions  map[string]string
	failed   map[string]bool
	errors   []*tfprotov6.Diagnostic
	warnings []*tfprotov6.Diagnostic
	// broken are the rules between cores and providers that the provider broke.
	broken []string
}

const (
	actNone    = "none"
	actCreate  = "create"
	actUpdate  = "update"
	actReplace = "replace"
	actDelete  = "delete"
)

// newCore begins a run in a process of its own.
func newCore(w *wire, s state, pool string, config blocks) *core {
	return &core{
		wire: w, state: maps.Clone(s), pool: pool, config: config,
		planned: map[string]object{}, actions: map[string]string{}, failed: map[string]bool{}, replace: map[string]bool{},
	}
}

// says keeps diagnostics; true: one is an error.
func (c *core) says(diags []*tfprotov6.Diagnostic) (failed bool) {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			c.errors = append(c.errors, d)
			failed = true
		} else {
			c.warnings = append(c.warnings, d)
		}
	}
	return failed
}

func (c *core) breaks(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// run plans and applies; the state is then what a core would have written.
func (c *core) run(ctx context.Context) {
	if c.plan(ctx) {
		c.apply(ctx)
	}
}

// plan refreshes and plans. Where it fails the state stays as it was.
func (c *core) plan(ctx context.Context) bool {
	before := maps.Clone(c.state)
	for _, address := range c.inOrder() {
		r := c.state[address]
		read, diags := c.refresh(ctx, r)
		switch {
		case c.says(diags):
			c.state = before
			return false
		case read.value.IsNull():
			delete(c.state, address)
		default:
			r.object = read
			c.state[address] = r
			if c.replaceLost && r.block.typ != instanceType && read.text(c.t, "state") == "error" {
				c.replace[address] = true
			}
		}
	}
	for _, b := range c.config {
		if !c.planBlock(ctx, b) {
			c.state = before
			return false
		}
	}
	for address, r := range c.state {
		if !slices.ContainsFunc(c.config, func(b block) bool { return b.address == address }) {
			c.actions[address] = actDelete
			_, _, diags := c.planChange(ctx, r.block.typ, r.object, c.none(r.block.typ).value)
			if c.says(diags) {
				c.state = before
				return false
			}
		}
	}
	return true
}

// inOrder are the addresses of the state, each behind those that it refers to.
func (c *core) inOrder() []string {
	return slices.SortedFunc(maps.Keys(c.state), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.state[a].order, c.state[b].order), cmp.Compare(a, b))
	})
}

func (c *core) planBlock(ctx context.Context, b block) bool {
	config := c.evaluate(b)
	prior, there := c.state[b.address]
	action := actCreate
	fresh := c.none(b.typ) // what a new object is planned from
	switch {
	case !there:
	case prior.tainted:
		action = actReplace
	default:
		planned, replaces, diags := c.planChange(ctx, b.typ, prior.object, config)
		if c.says(diags) {
			return false
		}
		switch {
		case replaces || c.replace[b.address]:
			// The second plan of a replacement has what the first one kept.
			action, fresh.private = actReplace, planned.private
		case planned.value.Equal(prior.value):
			action = actNone
		default:
			action = actUpdate
		}
		c.planned[b.address] = planned
	}
	if action == actCreate || action == actReplace {
		planned, _, diags := c.planChange(ctx, b.typ, fresh, config)
		if c.says(diags) {
			return false
		}
		c.planned[b.address] = planned
	}
	c.actions[b.address] = action
	return true
}

// apply destroys what is to go, and then makes and changes the rest.
func (c *core) apply(ctx context.Context) {
	order := c.inOrder()
	slices.Reverse(order)
	for _, address := range order {
		r := c.state[address]
		needed := slices.ContainsFunc(order, func(other string) bool {
			return c.failed[other] && slices.Contains(c.state[other].block.refs(), address)
		})
		switch action := c.actions[address]; {
		case action != actDelete && action != actReplace:
		case needed || ctx.Err() != nil:
			c.failed[address] = true
		default:
			left, diags := c.change(ctx, r.block.typ, r.object, object{c.none(r.block.typ).value, r.private}, c.none(r.block.typ).value)
			if c.says(diags) {
				c.failed[address] = true
				if !left.value.IsNull() {
					r.object = left
					c.state[address] = r
				}
				continue
			}
			if !left.value.IsNull() {
				c.breaks("%s: a destroyed object is still there", address)
			}
			delete(c.state, address)
		}
	}
	for i, b := range c.config {
		skip := c.failed[b.address] || ctx.Err() != nil || slices.ContainsFunc(b.refs(), func(a string) bool { return c.failed[a] })
		switch {
		case c.actions[b.address] == actNone:
		case skip:
			c.failed[b.address] = true
		default:
			c.applyBlock(ctx, b, i)
		}
	}
}

func (c *core) applyBlock(ctx context.Context, b block, order int) {
	config := c.evaluate(b)
	prior, there := c.state[b.address]
	if !there {
		prior = recorded{object: c.none(b.typ)}
	}
	// A core plans again with what is known by now, and nothing may turn out otherwise.
	planned, replaces, diags := c.planChange(ctx, b.typ, prior.object, config)
	if c.says(diags) {
		c.failed[b.address] = true
		return
	}
	if there && replaces {
		c.breaks("%s: planned as an update, and turned out a replacement", b.address)
	}
	c.promised(b.address+": the plan changed during apply", c.planned[b.address].value, planned.value)
	made, diags := c.change(ctx, b.typ, prior.object, planned, config)
	failed := c.says(diags)
	c.failed[b.address] = failed
	next := recorded{object: made, block: b, order: order, tainted: prior.tainted || (failed && !there)}
	switch {
	case made.value.IsNull() && !failed:
		c.breaks("%s: no object, and no error", b.address)
	case made.value.IsNull() && there:
		// A core keeps the prior object.
	case made.value.IsNull():
		delete(c.state, b.address)
	default:
		if !made.value.IsFullyKnown() {
			c.breaks("%s: not all is known after apply: %s", b.address, made.value)
		}
		if !failed {
			c.promised(b.address+": the plan promised something else", planned.value, made.value)
		}
		c.state[b.address] = next
	}
	c.planned[b.address] = c.state[b.address].object
}

// promised holds what was known against what came of it.
func (c *core) promised(what string, known, came tftypes.Value) {
	var before, after map[string]tftypes.Value
	if known.As(&before) != nil || came.As(&after) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name].IsFullyKnown() && !before[name].Equal(after[name]) {
			c.breaks("%s: %s was %s and is %s", what, name, before[name], after[name])
		}
	}
}

func (c *core) refresh(ctx context.Context, r recorded) (object, []*tfprotov6.Diagnostic) {
	resp, err := c.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: r.block.typ, CurrentState: c.dynamic(c.types[r.block.typ], r.value), Private: r.private,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return object{c.value(r.block.typ, resp.NewState), resp.Private}, resp.Diagnostics
}

func (c *core) planChange(ctx context.Context, resource string, prior object, config tftypes.Value) (out object, replaces bool, _ []*tfprotov6.Diagnostic) {
	typ := c.types[resource]
	proposed := config
	if !config.IsNull() {
		proposed = c.proposed(resource, prior.value, config)
	}
	resp, err := c.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: c.dynamic(typ, prior.value), PriorPrivate: prior.private,
		ProposedNewState: c.dynamic(typ, proposed), Config: c.dynamic(typ, config),
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.PlannedState == nil { // with an error
		return c.none(resource), false, resp.Diagnostics
	}
	return object{c.value(resource, resp.PlannedState), resp.PlannedPrivate}, len(resp.RequiresReplace) > 0, resp.Diagnostics
}

func (c *core) change(ctx context.Context, resource string, prior, planned object, config tftypes.Value) (object, []*tfprotov6.Diagnostic) {
	typ := c.types[resource]
	resp, err := c.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: resource, PriorState: c.dynamic(typ, prior.value), PlannedState: c.dynamic(typ, planned.value),
		Config: c.dynamic(typ, config), PlannedPrivate: planned.private,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return object{c.value(resource, resp.NewState), resp.Private}, resp.Diagnostics
}

// importObject imports, reads, and records.
func (c *core) importObject(ctx context.Context, b block, order int, id string) {
	resp, err := c.server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{
		TypeName: b.typ, ID: id, ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if c.says(resp.Diagnostics) || len(resp.ImportedResources) != 1 {
		return
	}
	r := recorded{block: b, order: order, object: object{c.value(b.typ, resp.ImportedResources[0].State), resp.ImportedResources[0].Private}}
	read, diags := c.refresh(ctx, r)
	if c.says(diags) || read.value.IsNull() {
		return
	}
	r.object = read
	c.state[b.address] = r
}

// evaluate is a block's configuration with what is known of the others: what is
// planned, and later what was made.
func (c *core) evaluate(b block) tftypes.Value {
	values := map[string]tftypes.Value{}
	typ := c.types[b.typ]
	for name, v := range b.given {
		if v != nil {
			values[name] = c.valueOf(typ.AttributeTypes[name], v)
		}
	}
	return c.wire.config(b.typ, values)
}

func (c *core) uriOf(address string) tftypes.Value {
	o, ok := c.planned[address]
	if !ok || o.value.IsNull() {
		o = c.state[address].object
	}
	var values map[string]tftypes.Value
	if err := o.value.As(&values); err != nil || values["uri"].IsNull() {
		return tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	}
	return values["uri"]
}

// valueOf gives a value the type that a schema wants.
func (c *core) valueOf(typ tftypes.Type, v any) tftypes.Value {
	c.t.Helper()
	list := func(element tftypes.Type, n int, at func(int) any) tftypes.Value {
		out := make([]tftypes.Value, n)
		for i := range out {
			out[i] = c.valueOf(element, at(i))
		}
		return tftypes.NewValue(typ, out)
	}
	element := func() tftypes.Type {
		switch typ := typ.(type) {
		case tftypes.Set:
			return typ.ElementType
		case tftypes.List:
			return typ.ElementType
		case tftypes.Map:
			return typ.ElementType
		}
		c.t.Fatalf("%v has no elements", typ)
		return nil
	}
	switch v := v.(type) {
	case inPool:
		return c.valueOf(typ, c.pool)
	case ref:
		return c.uriOf(string(v))
	case []ref:
		return list(element(), len(v), func(i int) any { return v[i] })
	case []string:
		return list(element(), len(v), func(i int) any { return v[i] })
	case []given:
		return list(element(), len(v), func(i int) any { return v[i] })
	case map[string]string:
		out := map[string]tftypes.Value{}
		for name, text := range v {
			out[name] = c.valueOf(element(), text)
		}
		return tftypes.NewValue(typ, out)
	case given:
		out := nulls(typ)
		o, ok := typ.(tftypes.Object)
		if !ok {
			c.t.Fatalf("%v is no object", typ)
		}
		for name, value := range v {
			out[name] = c.valueOf(o.AttributeTypes[name], value)
		}
		return tftypes.NewValue(typ, out)
	default:
		return tftypes.NewValue(typ, v)
	}
}

// problems are the errors and broken rules of a run.
func (c *core) problems() string {
	return strings.TrimSpace(strings.Join(append([]string{errorsOf(c.errors)}, c.broken...), "\n"))
}
