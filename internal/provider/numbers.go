// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// bounds are what a number may be, its ends included.
//
// Our attributes take any number and leave it to bounds to refuse one: a fraction
// or a number of more than 64 bits in an attribute of the framework's Int64, or one
// beyond a float64 in its Float64, is an error of the framework's own, without a
// code, which blames the provider.
type bounds struct {
	least, most int64
	whole       bool
}

// anyWhole are the whole numbers that 64 bits hold, and counts those that aren't
// negative.
var (
	anyWhole = bounds{math.MinInt64, math.MaxInt64, true}
	counts   = bounds{0, math.MaxInt64, true}
)

// problem tells what is wrong with a number called name; "" when nothing is. The
// number itself isn't repeated: the CLIs show the line that it stands on.
func (b bounds) problem(name string, n *big.Float) string {
	switch {
	case n.Cmp(new(big.Float).SetInt64(b.least)) < 0 || n.Cmp(new(big.Float).SetInt64(b.most)) > 0:
		return fmt.Sprintf("%s must be from %d to %d.", name, b.least, b.most)
	case b.whole && !n.IsInt():
		return name + " must be a whole number."
	}
	return ""
}

// numberRule is bounds as a validator.
type numberRule struct {
	remedy
	bounds
}

// Description says what is accepted.
func (v numberRule) Description(context.Context) string {
	kind := "number"
	if v.whole {
		kind = "whole number"
	}
	return fmt.Sprintf("a %s from %d to %d", kind, v.least, v.most)
}

// MarkdownDescription is the same.
func (v numberRule) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateNumber implements [validator.Number].
func (v numberRule) ValidateNumber(_ context.Context, req validator.NumberRequest, resp *validator.NumberResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if problem := v.problem(req.Path.String(), req.ConfigValue.ValueBigFloat()); problem != "" {
		v.reject(&resp.Diagnostics, req.Path, problem)
	}
}

// bigFloat is a number of a tree; nil when there is none.
func bigFloat(value any) *big.Float {
	switch x := value.(type) {
	case int64:
		return new(big.Float).SetInt64(x)
	case float64:
		return big.NewFloat(x)
	}
	return nil
}
