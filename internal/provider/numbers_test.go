// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"math"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestNumberRule(t *testing.T) {
	for _, test := range []struct {
		bounds bounds
		number string
		want   string
	}{
		{bounds{0, 64, true}, "0", ""},
		{bounds{0, 64, true}, "64", ""},
		{bounds{0, 64, true}, "1.5", "n must be a whole number."},
		{bounds{0, 64, true}, "65", "n must be from 0 to 64."},
		{bounds{0, 64, true}, "-1", "n must be from 0 to 64."},
		{bounds{0, 64, true}, "1e30", "n must be from 0 to 64."},
		{bounds{0, 64, false}, "1.5", ""},
		{bounds{0, 64, false}, "64.0000001", "n must be from 0 to 64."},
		{bounds{0, 64, false}, "1e400", "n must be from 0 to 64."},
		{anyWhole, "9223372036854775807", ""},
		{anyWhole, "-9223372036854775808", ""},
		{anyWhole, "9223372036854775808", "n must be from -9223372036854775808 to 9223372036854775807."},
		{anyWhole, "0.1", "n must be a whole number."},
	} {
		n, ok := parseDecimal(test.number)
		if !ok {
			t.Fatal(test.number)
		}
		var resp validator.NumberResponse
		numberRule{"Do.", test.bounds}.ValidateNumber(t.Context(),
			validator.NumberRequest{Path: path.Root("n"), ConfigValue: types.NumberValue(n)}, &resp)
		got := ""
		for _, d := range resp.Diagnostics {
			got += shown(d)
		}
		want := ""
		if test.want != "" {
			want = "Error|n|INVALID_INPUT: " + test.want + "|Do."
		}
		if got != want {
			t.Errorf("%s in %v: got %q, want %q", test.number, test.bounds, got, want)
		}
	}
	for _, v := range []types.Number{types.NumberNull(), types.NumberUnknown()} {
		var resp validator.NumberResponse
		numberRule{"Do.", counts}.ValidateNumber(t.Context(), validator.NumberRequest{ConfigValue: v}, &resp)
		if resp.Diagnostics.HasError() {
			t.Errorf("%s: %v", v, resp.Diagnostics)
		}
	}
}

// No number of a configuration becomes, on its way to a check, one that passes it.
func TestLimitsOfOddNumbers(t *testing.T) {
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"instances": tftypes.Number, "disk_gib": tftypes.Number, "price_per_hour": tftypes.Number,
	}}
	const notCounted = "limits.instances must be from 0 to 9223372036854775807."
	const notPriced = "price_per_hour is a decimal number that is not negative, with at most 18 digits before and after the point."
	for _, test := range []struct{ name, number, want string }{
		{"instances", "0", ""},
		{"instances", "9223372036854775807", ""},
		{"instances", "-1", notCounted},
		{"instances", "-0.5", notCounted},
		{"instances", "1e30", notCounted},
		{"instances", "1e400", notCounted},
		{"instances", "1.5", "limits.instances must be a whole number."},
		{"instances", "1e-400", "limits.instances must be a whole number."},
		{"disk_gib", "0.1", "limits.disk_gib must be a whole number."},
		{"price_per_hour", "0.1", ""},
		{"price_per_hour", "0", ""},
		{"price_per_hour", "-0.1", notPriced},
		{"price_per_hour", "1e30", notPriced},
		{"price_per_hour", "1e400", notPriced},
		{"price_per_hour", "1e-400", notPriced},
	} {
		n, ok := parseDecimal(test.number)
		if !ok {
			t.Fatal(test.number)
		}
		values := map[string]tftypes.Value{}
		for name := range typ.AttributeTypes {
			values[name] = tftypes.NewValue(tftypes.Number, nil)
		}
		values[test.name] = tftypes.NewValue(tftypes.Number, n)
		_, issues := readLimits(valuesOf(tftypes.NewValue(typ, values)))
		got := ""
		for _, issue := range issues {
			got += issue.Message
			if want := (backends.Path{"limits", test.name}).String(); issue.Path.String() != want {
				t.Errorf("%s = %s: points at %s", test.name, test.number, issue.Path)
			}
		}
		if got != test.want {
			t.Errorf("%s = %s: got %q, want %q", test.name, test.number, got, test.want)
		}
	}
	if n := numberOf(tftypes.NewValue(tftypes.Number, must(parseDecimal("-1e400")))); n != -math.MaxFloat64 {
		t.Errorf("got %v", n)
	}
}

func must[T any](value T, _ bool) T { return value }
