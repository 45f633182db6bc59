// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"
)

func TestLogGoesToThePluginsLog(t *testing.T) {
	var output bytes.Buffer
	ctx := tflogtest.RootLogger(t.Context(), &output)
	log := slog.New(logHandler{}).With("cloud", "hetzner-cloud").WithGroup("call").With("method", "GET")
	log.InfoContext(ctx, "answered", "status", 200)
	log.DebugContext(ctx, "waiting")
	log.WarnContext(ctx, "slow")
	log.ErrorContext(ctx, "failed")
	lines, err := tflogtest.MultilineJSONDecode(&output)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 4 {
		t.Fatalf("got %d lines: %v", len(lines), lines)
	}
	for name, want := range map[string]any{
		"@message": "answered", "@level": "info", "cloud": "hetzner-cloud", "call.method": "GET", "call.status": float64(200),
	} {
		if got := lines[0][name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for i, level := range []string{"info", "debug", "warn", "error"} {
		if got := lines[i]["@level"]; got != level {
			t.Errorf("line %d has level %v, want %s", i, got, level)
		}
	}
}
