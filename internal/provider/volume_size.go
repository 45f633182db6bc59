// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// wrongSize is the error of a size that a volume can't have. Its reason is shown
// (specification, providerVolumes.create: INVALID_INPUT with details.reason size).
func wrongSize(format string, args ...any) *backends.Error {
	e := backends.Errorf(backends.InvalidInput, format, args...).At("size_gib")
	e.Reason = backends.ReasonSize
	e.Details = map[string]any{"reason": string(e.Reason)}
	return e
}

// sizeRule is a [numberRule] for a volume's size.
type sizeRule struct{ numberRule }

// ValidateNumber implements [validator.Number].
func (v sizeRule) ValidateNumber(_ context.Context, req validator.NumberRequest, resp *validator.NumberResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if problem := v.problem(req.Path.String(), req.ConfigValue.ValueBigFloat()); problem != "" {
		d := describe(wrongSize("%s", problem).WithRemedy("%s", v.remedyOf()))
		add(&resp.Diagnostics, diag.NewErrorDiagnostic(d.summary(), d.detail()), req.Path)
	}
}
