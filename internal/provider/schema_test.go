// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Every attribute at any depth, those made from manifests too, says what it is:
// the documentation is made of it. And nothing within a cloud's attribute is
// required or sensitive to the CLIs (see resourceAttributes).
func TestSchemasAreDescribed(t *testing.T) {
	w := newTwoClouds(t)
	schemas, err := w.server().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range schemas.Diagnostics {
		t.Errorf("%s: %s: %s", d.Severity, d.Summary, d.Detail)
	}
	check := func(name string, s *tfprotov6.Schema) {
		if s.Block.Description == "" && name != "provider" {
			t.Errorf("%s has no description", name)
		}
		describeAll(t, name, s.Block.Attributes)
	}
	check("provider", schemas.Provider)
	for name, s := range schemas.ResourceSchemas {
		check(name, s)
	}
	for name, s := range schemas.DataSourceSchemas {
		check("data."+name, s)
	}
	if len(schemas.ResourceSchemas) < 5 || len(schemas.DataSourceSchemas) < 4 {
		t.Errorf("%d resources and %d data sources are registered", len(schemas.ResourceSchemas), len(schemas.DataSourceSchemas))
	}

	account := schemas.ResourceSchemas["bettercompute_provider_account"].Block.Attributes
	for _, cloud := range []string{"hetzner_cloud", "other_cloud"} {
		i := slices.IndexFunc(account, func(a *tfprotov6.SchemaAttribute) bool { return a.Name == cloud })
		if i < 0 {
			t.Fatalf("the account has no attribute %s", cloud)
		}
		for _, a := range account[i].NestedType.Attributes {
			if a.Required || !a.Optional || a.Computed || a.Sensitive {
				t.Errorf("%s.%s is not plainly optional", cloud, a.Name)
			}
		}
	}
}

func describeAll(t *testing.T, at string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	for _, a := range attributes {
		name := fmt.Sprintf("%s.%s", at, a.Name)
		if a.Description == "" {
			t.Errorf("%s has no description", name)
		}
		if a.NestedType != nil {
			describeAll(t, name, a.NestedType.Attributes)
		}
	}
}
