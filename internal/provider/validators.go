// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// rule is what every validator in our schemas is: one whose errors begin with
// INVALID_INPUT and say what to do (DESIGN.md §3). The libraries' own begin with
// words such as "Invalid Attribute Value Match", so they are wrapped.
type rule interface{ remedyOf() string }

// remedy is what a rule's error says to do.
type remedy string

func (r remedy) remedyOf() string { return string(r) }

// recode makes a library's diagnostics ours: the same paths, its detail as what is
// wrong, and what to do.
func (r remedy) recode(theirs diag.Diagnostics, ours *diag.Diagnostics) {
	for _, d := range theirs {
		if d.Severity() != diag.SeverityError || strings.HasPrefix(d.Summary(), string(backends.InvalidInput)) {
			ours.Append(d)
			continue
		}
		message := strings.TrimRight(strings.TrimPrefix(d.Detail(), "Attribute "), ".") + "."
		at := path.Empty()
		if with, ok := d.(diag.DiagnosticWithPath); ok {
			at = with.Path()
		}
		r.reject(ours, at, message)
	}
}

// reject adds an error of the rule.
func (r remedy) reject(diags *diag.Diagnostics, at path.Path, message string) {
	d := describe(backends.Errorf(backends.InvalidInput, "%s", message).WithRemedy("%s", string(r)))
	add(diags, diag.NewErrorDiagnostic(d.summary(), d.detail()), at)
}

// textRule wraps a library's validator of strings.
func textRule(v validator.String, remedyText string) validator.String {
	return codedText{v, remedy(remedyText)}
}

type codedText struct {
	validator.String
	remedy
}

// ValidateString implements [validator.String].
func (v codedText) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	var own validator.StringResponse
	v.String.ValidateString(ctx, req, &own)
	v.recode(own.Diagnostics, &resp.Diagnostics)
}

// listRule wraps a library's validator of lists.
func listRule(v validator.List, remedyText string) validator.List {
	return codedList{v, remedy(remedyText)}
}

type codedList struct {
	validator.List
	remedy
}

// ValidateList implements [validator.List].
func (v codedList) ValidateList(ctx context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	var own validator.ListResponse
	v.List.ValidateList(ctx, req, &own)
	v.recode(own.Diagnostics, &resp.Diagnostics)
}

// problemRule is a rule of our own: problem tells what is wrong with a text, ""
// when nothing is.
type problemRule struct {
	remedy
	description string
	problem     func(string) string
}

// Description says what is accepted.
func (v problemRule) Description(context.Context) string { return v.description }

// MarkdownDescription is the same.
func (v problemRule) MarkdownDescription(context.Context) string { return v.description }

// ValidateString implements [validator.String].
func (v problemRule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if problem := v.problem(req.ConfigValue.ValueString()); problem != "" {
		v.reject(&resp.Diagnostics, req.Path, problem)
	}
}

const notATimeout = "A timeout is a positive number with a unit."

const timeoutRemedy = "Write a length of time such as 90s, 30m or 1h30m, or leave it out for the default."

// timeoutProblem tells what is wrong with a timeout; "" when nothing is.
func timeoutProblem(text string) string {
	if d, err := time.ParseDuration(text); err != nil || d <= 0 {
		return notATimeout
	}
	return ""
}
