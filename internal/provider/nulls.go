// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// refuseNulls reports every null element of a list, set or map in a configuration, at
// any depth and of any cloud, and returns the configuration with those unknown: then
// the other rules have nothing more to say about them. A null element means nothing
// anywhere: dropped silently, it would differ from the configuration in every plan
// (DESIGN.md §5, everything bad is refused).
func refuseNulls(diags *diag.Diagnostics, raw tftypes.Value) tftypes.Value {
	out, issues := withoutNulls(raw, nil)
	reportIssues(diags, issues)
	return out
}

// withoutNulls is a value with the null elements of its lists, sets and maps unknown,
// and an issue for each.
func withoutNulls(v tftypes.Value, at backends.Path) (tftypes.Value, []*backends.Error) {
	if v.IsNull() || !v.IsKnown() {
		return v, nil
	}
	typ := v.Type()
	var issues []*backends.Error
	step := func(element tftypes.Value, at backends.Path, may bool) tftypes.Value {
		if element.IsNull() && !may {
			issues = append(issues, nullElement(at))
			return tftypes.NewValue(element.Type(), tftypes.UnknownValue)
		}
		out, more := withoutNulls(element, at)
		issues = append(issues, more...)
		return out
	}
	switch {
	case typ.Is(tftypes.Object{}), typ.Is(tftypes.Map{}):
		var attributes map[string]tftypes.Value
		if v.As(&attributes) != nil {
			return v, nil
		}
		out := make(map[string]tftypes.Value, len(attributes))
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			out[name] = step(attributes[name], at.Join(name), typ.Is(tftypes.Object{}))
		}
		return tftypes.NewValue(typ, out), issues
	case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
		var elements []tftypes.Value
		if v.As(&elements) != nil {
			return v, nil
		}
		out := make([]tftypes.Value, len(elements))
		for i, element := range elements {
			out[i] = step(element, at.Join(i), false)
		}
		return tftypes.NewValue(typ, out), issues
	}
	return v, nil
}

func nullElement(at backends.Path) *backends.Error {
	return backends.Errorf(backends.InvalidInput, "%s is null.", at).At(at...).
		WithRemedy("Leave the element out, or give it a value; to leave the whole attribute out, set that to null.")
}
