// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// A server that lives for days must not keep what its calls were made with.
func TestACallLeavesNothingBehind(t *testing.T) {
	server := newWorld(t).server()
	type key struct{}
	call := func() weak.Pointer[[]byte] {
		headers := make([]byte, 1<<20)
		ctx := context.WithValue(t.Context(), key{}, &headers)
		resp, err := server.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
			TypeName: "bettercompute_pool", RawState: &tfprotov6.RawState{JSON: []byte(`{"name":"web"}`)},
		})
		if err != nil || resp == nil || len(resp.Diagnostics) > 0 {
			t.Fatalf("the call failed: %v, %v", err, resp)
		}
		return weak.Make(&headers)
	}
	kept := call()
	runtime.GC()
	if kept.Value() != nil {
		t.Error("what the call's context held is still there after the call")
	}
	runtime.KeepAlive(server)
}

// The protocol's server finds the optional parts by a type assertion.
func TestTheServerHasItsOptionalParts(t *testing.T) {
	server := newWorld(t).server()
	if _, ok := server.(tfprotov6.ListResourceServer); !ok {
		t.Error("list resources are hidden")
	}
	if _, ok := server.(tfprotov6.ActionServer); !ok {
		t.Error("actions are hidden")
	}
}
