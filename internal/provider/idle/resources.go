// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// idleResources is a provider whose resources have their schemas and nothing else.
type idleResources struct{ provider.Provider }

// Resources implements [provider.Provider].
func (p idleResources) Resources(ctx context.Context) []func() resource.Resource {
	made := p.Provider.Resources(ctx)
	for i, newResource := range made {
		made[i] = func() resource.Resource {
			inner := newResource()
			if inner, ok := inner.(identified); ok {
				return idleIdentified{idleResource{inner}, inner}
			}
			return idleResource{inner}
		}
	}
	return made
}

// identified is a resource with an identity.
type identified interface {
	resource.Resource
	resource.ResourceWithIdentity
}

// idleResource has the schema of another resource. The framework keeps what it read
// and planned where the methods leave their responses alone.
type idleResource struct{ schema resource.Resource }

// Metadata implements [resource.Resource].
func (r idleResource) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	r.schema.Metadata(ctx, req, resp)
}

// Schema implements [resource.Resource].
func (r idleResource) Schema(ctx context.Context, req resource.SchemaRequest, resp *resource.SchemaResponse) {
	r.schema.Schema(ctx, req, resp)
}

// Create implements [resource.Resource].
func (idleResource) Create(context.Context, resource.CreateRequest, *resource.CreateResponse) {}

// Read implements [resource.Resource].
func (idleResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update implements [resource.Resource].
func (idleResource) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {}

// Delete implements [resource.Resource].
func (idleResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// idleIdentified is an [idleResource] with the identity of the other, too.
type idleIdentified struct {
	idleResource
	identity resource.ResourceWithIdentity
}

// IdentitySchema implements [resource.ResourceWithIdentity].
func (r idleIdentified) IdentitySchema(ctx context.Context, req resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	r.identity.IdentitySchema(ctx, req, resp)
}
