// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
)

// Every validator of every schema is a rule, so that its errors begin with a code.
func TestAllValidatorsAreRules(t *testing.T) {
	clouds, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	p := &computeProvider{options: Options{Registry: clouds}}
	found := 0
	check := func(at string, v any) {
		found++
		if r, ok := v.(rule); !ok || r.remedyOf() == "" {
			t.Errorf("%s: a %T is no rule with a remedy", at, v)
		}
	}
	for _, newResource := range p.Resources(t.Context()) {
		var resp resource.SchemaResponse
		newResource().Schema(t.Context(), resource.SchemaRequest{}, &resp)
		for name, a := range resp.Schema.Attributes {
			walkValidators(t, name, a, check)
		}
	}
	for _, newSource := range p.DataSources(t.Context()) {
		var resp datasource.SchemaResponse
		newSource().Schema(t.Context(), datasource.SchemaRequest{}, &resp)
		for name, a := range resp.Schema.Attributes {
			walkValidators(t, name, a, check)
		}
	}
	if found < 15 {
		t.Errorf("only %d validators were found", found)
	}
}

func walkValidators(t *testing.T, at string, a any, check func(string, any)) {
	t.Helper()
	if x, ok := a.(interface{ StringValidators() []validator.String }); ok {
		each(at, x.StringValidators(), check)
	}
	// What takes a number from a user takes any, and refuses it with a code.
	if x, ok := a.(interface{ IsComputed() bool }); ok && !x.IsComputed() {
		switch a.(type) {
		case schema.Int64Attribute, schema.Float64Attribute, dataschema.Int64Attribute, dataschema.Float64Attribute:
			t.Errorf("%s: a %T refuses numbers without a code", at, a)
		}
	}
	if x, ok := a.(interface{ Int64Validators() []validator.Int64 }); ok {
		each(at, x.Int64Validators(), check)
	}
	if x, ok := a.(interface{ Float64Validators() []validator.Float64 }); ok {
		each(at, x.Float64Validators(), check)
	}
	if x, ok := a.(interface{ NumberValidators() []validator.Number }); ok {
		each(at, x.NumberValidators(), check)
	}
	if x, ok := a.(interface{ BoolValidators() []validator.Bool }); ok {
		each(at, x.BoolValidators(), check)
	}
	if x, ok := a.(interface{ ListValidators() []validator.List }); ok {
		each(at, x.ListValidators(), check)
	}
	if x, ok := a.(interface{ SetValidators() []validator.Set }); ok {
		each(at, x.SetValidators(), check)
	}
	if x, ok := a.(interface{ MapValidators() []validator.Map }); ok {
		each(at, x.MapValidators(), check)
	}
	if x, ok := a.(interface{ ObjectValidators() []validator.Object }); ok {
		each(at, x.ObjectValidators(), check)
	}
	switch nested := a.(type) {
	case schema.SingleNestedAttribute:
		for name, inner := range nested.Attributes {
			walkValidators(t, at+"."+name, inner, check)
		}
	case schema.ListNestedAttribute:
		for name, inner := range nested.NestedObject.Attributes {
			walkValidators(t, at+"."+name, inner, check)
		}
	case dataschema.ListNestedAttribute:
		for name, inner := range nested.NestedObject.Attributes {
			walkValidators(t, at+"."+name, inner, check)
		}
	}
}

func each[T any](at string, validators []T, check func(string, any)) {
	for _, v := range validators {
		check(at, v)
	}
}

func TestRulesSayWhatIsWrongAndWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		rule  validator.String
		value types.String
		want  string // "": accepted
	}{
		"good":    {textRule(stringvalidator.OneOf("on", "off"), "Write on or off."), types.StringValue("on"), ""},
		"wrapped": {textRule(stringvalidator.OneOf("on", "off"), "Write on or off."), types.StringValue("maybe"), `Error|power|INVALID_INPUT: power value must be one of: ["on" "off"], got: "maybe".|Write on or off.`},
		"own":     {problemRule{timeoutRemedy, "", timeoutProblem}, types.StringValue("soon"), "Error|power|INVALID_INPUT: A timeout is a positive number with a unit.|" + timeoutRemedy},
		"zero":    {problemRule{timeoutRemedy, "", timeoutProblem}, types.StringValue("0s"), "Error|power|INVALID_INPUT: A timeout is a positive number with a unit.|" + timeoutRemedy},
		"null":    {problemRule{timeoutRemedy, "", timeoutProblem}, types.StringNull(), ""},
		"unknown": {problemRule{timeoutRemedy, "", timeoutProblem}, types.StringUnknown(), ""},
	} {
		var resp validator.StringResponse
		test.rule.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("power"), ConfigValue: test.value}, &resp)
		var got []string
		for _, d := range resp.Diagnostics {
			got = append(got, shown(d))
		}
		if strings.Join(got, "\n") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// plannedTimeouts is a plan that has nothing but a create timeout.
type plannedTimeouts string

func (p plannedTimeouts) GetAttribute(_ context.Context, _ path.Path, target any) (diags diag.Diagnostics) {
	v, ok := target.(*timeouts.Value)
	if !ok {
		diags.AddError("not a timeout", "")
		return diags
	}
	object, problems := types.ObjectValue(map[string]attr.Type{"create": types.StringType},
		map[string]attr.Value{"create": types.StringValue(string(p))})
	v.Object = object
	return problems
}

// A timeout that only an apply knows is checked by nothing before.
func TestWithinEndsBeforeAnythingIsMade(t *testing.T) {
	for text, good := range map[string]bool{"30m": true, "soon": false, "-5m": false, "0s": false} {
		var diags diag.Diagnostics
		ctx, cancel := within(t.Context(), plannedTimeouts(text), &diags, time.Minute, timeouts.Value.Create)
		if ended := ctx.Err() != nil; ended == good || diags.HasError() == good {
			t.Errorf("%s: ended %v, %v", text, ended, diags)
		}
		if deadline, ok := ctx.Deadline(); good && (!ok || time.Until(deadline) < 20*time.Minute) {
			t.Errorf("%s: until %v", text, deadline)
		}
		for _, d := range diags {
			if !strings.HasPrefix(shown(d), "Error|timeouts|INVALID_INPUT: ") {
				t.Errorf("%s: %s", text, shown(d))
			}
		}
		cancel()
	}
}
