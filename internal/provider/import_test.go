// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// An import whose identity can't be read is that one error: the empty uri it leaves
// is not a second.
func TestImportOfAnUnreadableIdentity(t *testing.T) {
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"uri": tftypes.Number}}
	for name, r := range map[string]resource.ResourceWithImportState{
		"account": &accountResource{}, "pool": &poolResource{}, "instance": &instanceResource{},
		"volume": &volumeResource{}, "snapshot": &snapshotResource{},
	} {
		var resp resource.ImportStateResponse
		r.ImportState(t.Context(), resource.ImportStateRequest{Identity: &tfsdk.ResourceIdentity{
			Raw: tftypes.NewValue(typ, map[string]tftypes.Value{"uri": tftypes.NewValue(tftypes.Number, 1)}), Schema: uriIdentity("d"),
		}}, &resp)
		if len(resp.Diagnostics) != 1 || !resp.Diagnostics.HasError() {
			t.Errorf("%s: %v", name, resp.Diagnostics)
		}
	}
}
