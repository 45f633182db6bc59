// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// TestEditedIdsAreAnErrorNotACrash: a recorded id that doesn't follow from the
// names, while objects carry it or the right one.
func TestEditedIdsAreAnErrorNotACrash(t *testing.T) {
	for resource, config := range map[string]func(w *wire) map[string]tftypes.Value{
		"bettercompute_pool": func(*wire) map[string]tftypes.Value {
			return map[string]tftypes.Value{
				"name":             tftypes.NewValue(tftypes.String, "web"),
				"provider_account": tftypes.NewValue(tftypes.String, accountURI),
			}
		},
		"bettercompute_provider_account": func(w *wire) map[string]tftypes.Value {
			cloud, ok := w.types["bettercompute_provider_account"].AttributeTypes["hetzner_cloud"].(tftypes.Object)
			if !ok {
				t.Fatal("hetzner_cloud is no object")
			}
			values := nulls(cloud)
			values["token"] = tftypes.NewValue(tftypes.String, "env://"+tokenVariable)
			return map[string]tftypes.Value{
				"name":          tftypes.NewValue(tftypes.String, "main"),
				"hetzner_cloud": tftypes.NewValue(cloud, values),
			}
		},
	} {
		for _, id := range []any{"pool_x", nil} {
			cloud := newWorld(t)
			w := cloud.wire()
			given := w.config(resource, config(w))
			made, diags := w.apply(t.Context(), resource, w.none(resource), given)
			if problems := errorsOf(diags); problems != "" {
				t.Fatal(problems)
			}
			cloud.makeMachine(poolURI, "web-0")
			var values map[string]tftypes.Value
			if err := made.value.As(&values); err != nil {
				t.Fatal(err)
			}
			values["id"] = tftypes.NewValue(tftypes.String, id)
			made.value = tftypes.NewValue(w.types[resource], values)
			_, diags = cloud.wire().plan(resource, made, given)
			if problems := errorsOf(diags); !strings.HasPrefix(problems, "INVALID_STATE: ") {
				t.Errorf("%s with id %v: %q", resource, id, problems)
			}
		}
	}
}
