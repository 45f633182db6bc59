// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package examples_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/better-compute/terraform-provider-bettercompute/internal/provider"
)

const prefix = provider.TypeName + "_"

// schema is the attributes of an object, by name.
type schema map[string]*tfprotov6.SchemaAttribute

// known is the provider's schema: of its block (""), of resources by type, and of
// data sources by "data." and type.
type known map[string]schema

func schemas(t *testing.T) known {
	t.Helper()
	newProvider, err := provider.New("test")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := providerserver.NewProtocol6(newProvider())().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range answer.Diagnostics {
		t.Fatal(d.Summary, d.Detail)
	}
	out := known{"": attributes(answer.Provider.Block.Attributes)}
	for name, s := range answer.ResourceSchemas {
		out[name] = attributes(s.Block.Attributes)
	}
	for name, s := range answer.DataSourceSchemas {
		out["data."+name] = attributes(s.Block.Attributes)
	}
	return out
}

func attributes(list []*tfprotov6.SchemaAttribute) schema {
	out := schema{}
	for _, a := range list {
		out[a.Name] = a
	}
	return out
}

// check returns what a configuration names that does not exist.
func (k known) check(c text) []string {
	body, err := parse(c)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", c.name, err)}
	}
	var problems []string
	for _, block := range body.Blocks {
		name, ours := blockSchema(block)
		if !ours {
			continue
		}
		s, ok := k[name]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: there is no %s", c.name, name))
			continue
		}
		problems = append(problems, checkBody(c.name, s, block.Body)...)
	}
	for _, traversal := range traversals(body) {
		if problem := k.checkTraversal(traversal); problem != "" {
			problems = append(problems, c.name+": "+problem)
		}
	}
	return problems
}

// blockSchema is the key of a block's schema, if the block is this provider's.
func blockSchema(block *hclsyntax.Block) (name string, ours bool) {
	if len(block.Labels) == 0 || !strings.HasPrefix(block.Labels[0]+"_", prefix) {
		return "", false
	}
	switch block.Type {
	case "provider":
		return "", true
	case "resource":
		return block.Labels[0], true
	case "data":
		return "data." + block.Labels[0], true
	default:
		return "", false
	}
}

// metaArguments are the core's own.
var metaArguments = map[string]bool{"for_each": true, "count": true, "depends_on": true, "provider": true, "alias": true}

func checkBody(where string, s schema, body *hclsyntax.Body) []string {
	var problems []string
	for name, attribute := range body.Attributes {
		if !metaArguments[name] {
			problems = append(problems, checkValue(where, s, name, name, attribute.Expr)...)
		}
	}
	for _, block := range body.Blocks {
		if block.Type != "lifecycle" {
			problems = append(problems, fmt.Sprintf("%s: %s is written as a block", where, block.Type))
		}
	}
	return problems
}

// checkValue checks a name and, in the value of a nested attribute, those in it.
func checkValue(where string, s schema, path, name string, value hclsyntax.Expression) []string {
	attribute, ok := s[name]
	switch {
	case !ok:
		return []string{fmt.Sprintf("%s: there is no attribute %s", where, path)}
	case attribute.Computed && !attribute.Optional:
		return []string{fmt.Sprintf("%s: %s can't be set", where, path)}
	case attribute.NestedType == nil:
		return nil
	}
	var problems []string
	inner := attributes(attribute.NestedType.Attributes)
	for _, object := range objects(value) {
		for _, item := range object.Items {
			key := hcl.ExprAsKeyword(item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr).Wrapped)
			problems = append(problems, checkValue(where, inner, path+"."+key, key, item.ValueExpr)...)
		}
	}
	return problems
}

// objects are a value's literal objects: itself, or the elements of a list.
func objects(value hclsyntax.Expression) []*hclsyntax.ObjectConsExpr {
	switch v := value.(type) {
	case *hclsyntax.ObjectConsExpr:
		return []*hclsyntax.ObjectConsExpr{v}
	case *hclsyntax.TupleConsExpr:
		var out []*hclsyntax.ObjectConsExpr
		for _, e := range v.Exprs {
			out = append(out, objects(e)...)
		}
		return out
	default:
		return nil
	}
}

// traversals are all references in a body.
func traversals(body *hclsyntax.Body) []hcl.Traversal {
	var out []hcl.Traversal
	for _, a := range body.Attributes {
		out = append(out, a.Expr.Variables()...)
	}
	for _, b := range body.Blocks {
		out = append(out, traversals(b.Body)...)
	}
	return out
}

// checkTraversal says what is wrong with a reference to one of our resources; the
// part behind an expression as index can't be seen.
func (k known) checkTraversal(traversal hcl.Traversal) string {
	var names []string
	for _, step := range traversal {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			names = append(names, s.Name)
		case hcl.TraverseAttr:
			names = append(names, s.Name)
		}
	}
	shown := strings.Join(names, ".")
	key := names[0]
	if key == "data" && len(names) > 1 {
		names = names[1:]
		key = "data." + names[0]
	}
	if !strings.HasPrefix(names[0], prefix) {
		return ""
	}
	s, ok := k[key]
	if !ok {
		return fmt.Sprintf("%s: there is no %s", shown, key)
	}
	const attribute = 2 // type, name, attribute
	if len(names) > attribute && s[names[attribute]] == nil {
		return fmt.Sprintf("%s: there is no such attribute", shown)
	}
	return ""
}
