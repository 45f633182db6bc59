// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/secrets"
)

// resourceAttributes are a manifest's fields as attributes, nested ones recursively.
//
// Every one is optional to the CLIs, also one that is required: what the CLIs
// themselves refuse they show with the source lines of the whole body, and a
// body in which `token` is misspelt may hold a literal token. [backends.Validate]
// refuses what is missing, without showing the body. No default stands here: they
// are applied below the Terraform line, so that a null stays a null.
func resourceAttributes(fields []backends.Field) map[string]schema.Attribute {
	out := make(map[string]schema.Attribute, len(fields))
	for _, f := range fields {
		out[f.Name] = resourceAttribute(f)
	}
	return out
}

func resourceAttribute(f backends.Field) schema.Attribute {
	text := describeField(f)
	switch f.Type {
	case backends.TypeBool:
		return schema.BoolAttribute{Optional: true, MarkdownDescription: text}
	case backends.TypeInt: // not Int64: see [bounds]; [backends.Validate] refuses what is no int64
		return schema.NumberAttribute{Optional: true, MarkdownDescription: text}
	case backends.TypeStringList:
		return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: text}
	case backends.TypeStringSet:
		return schema.SetAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: text}
	case backends.TypeObject:
		return schema.SingleNestedAttribute{Optional: true, Attributes: resourceAttributes(f.Fields), MarkdownDescription: text}
	case backends.TypeObjectList:
		return schema.ListNestedAttribute{
			Optional:            true,
			NestedObject:        schema.NestedAttributeObject{Attributes: resourceAttributes(f.Fields)},
			MarkdownDescription: text,
		}
	case backends.TypeString:
	}
	return schema.StringAttribute{Optional: true, MarkdownDescription: text}
}

// describeField is the field's own text and what follows from its declaration.
func describeField(f backends.Field) string {
	parts := []string{f.Description}
	if f.Required {
		parts = append(parts, "Required.")
	}
	if f.Secret {
		parts = append(parts, "A secret reference (`env://NAME`, `secret://tenant/name` or `vault://mount/path#field`), never the value.")
	}
	if len(f.Options) > 0 {
		parts = append(parts, "One of `"+strings.Join(f.Options, "`, `")+"`.")
	}
	if f.Default != nil {
		parts = append(parts, fmt.Sprintf("Default: `%v`.", f.Default))
	}
	return strings.Join(parts, " ")
}

// secretReferences are the secret references in a configuration, at any depth and
// whatever the field is called, sorted and without repeats.
func secretReferences(tree any) []string {
	var out []string
	switch x := tree.(type) {
	case backends.Values:
		for _, value := range x {
			out = append(out, secretReferences(value)...)
		}
	case []any:
		for _, value := range x {
			out = append(out, secretReferences(value)...)
		}
	case string:
		if _, err := secrets.Parse(x); err == nil {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
