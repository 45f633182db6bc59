// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// What a cloud says may come into a diagnostic in many ways, and none of them lets it
// clear the screen or forge a line of a log.
func TestDiagnosticsHoldNoControlCharacters(t *testing.T) {
	const evil = "a\x1b[31mb\rc\u202ed\u2028e\x00f\u009bg\xff"
	bad := &backends.Error{
		Code: backends.ProviderError, Message: evil + ".", Remedy: "one\ntwo " + evil,
		Details: map[string]any{"message": evil, "fields": map[string]string{evil: evil}, "limits": []string{evil}},
	}
	var diags diag.Diagnostics
	report(&diags, bad)
	report(&diags, errors.Join(errors.New(evil), bad))
	warn(&diags, bad, "Not read", "")
	if len(diags) < 3 {
		t.Fatalf("%d diagnostics", len(diags))
	}
	for _, d := range diags {
		text := d.Summary() + d.Detail()
		if strings.ContainsFunc(text, func(r rune) bool {
			return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}) || strings.Contains(d.Summary(), "\n") {
			t.Errorf("%q", text)
		}
	}
	if got := logged(slog.StringValue(evil + "\nforged")); got != backends.OneLine(evil+" forged") {
		t.Errorf("logged as %q", got)
	}
	if got := logged(slog.IntValue(7)); got != int64(7) {
		t.Errorf("a number is logged as %v", got)
	}
}
