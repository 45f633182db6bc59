// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"net/http"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
)

// TypeName is the prefix of all resource and data source types.
const TypeName = "bettercompute"

// Options are what a program, not a user, chooses.
type Options struct {
	// Version is the provider's own; it goes into the user agent.
	Version string
	// Registry holds the clouds.
	Registry *backends.Registry
	// Transport carries the requests to clouds; nil means each backend's own.
	Transport http.RoundTripper
}

// New returns what the plugin server makes the provider with: all clouds that
// this program knows, over the network.
func New(version string) (func() provider.Provider, error) {
	clouds, err := registry.New()
	if err != nil {
		return nil, err
	}
	return NewWith(Options{Version: version, Registry: clouds})
}

// NewWith is [New] with other options, as tests need them. A cloud whose attribute
// would take the place of a resource's own is refused with INVALID_CONFIG.
func NewWith(options Options) (func() provider.Provider, error) {
	if err := checkAttributes(options.Registry); err != nil {
		return nil, err
	}
	return func() provider.Provider { return &computeProvider{options: options} }, nil
}

// coreNames are the attributes that the cores keep for themselves in a resource
// (https://developer.hashicorp.com/terraform/language/meta-arguments).
var coreNames = []string{"connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"}

// checkAttributes holds the clouds' attributes against those that the resources have
// without any cloud.
func checkAttributes(clouds *backends.Registry) error {
	none, err := backends.NewRegistry()
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, newResource := range (&computeProvider{options: Options{Registry: none}}).Resources(ctx) {
		var resp resource.SchemaResponse
		r := newResource()
		r.Schema(ctx, resource.SchemaRequest{}, &resp)
		for _, d := range clouds.All() {
			if _, taken := resp.Schema.Attributes[d.Attribute()]; taken || slices.Contains(coreNames, d.Attribute()) {
				e := backends.Errorf(backends.InvalidConfig, "The cloud %q can't have the attribute %s, which the resources have already.", d.ID, d.Attribute())
				e.Details = map[string]any{"path": "id"}
				return e.WithRemedy("Give the definition another id.")
			}
		}
	}
	return nil
}

type computeProvider struct{ options Options }

var (
	_ provider.Provider                   = (*computeProvider)(nil)
	_ provider.ProviderWithActions        = (*computeProvider)(nil)
	_ provider.ProviderWithFunctions      = (*computeProvider)(nil)
	_ provider.ProviderWithListResources  = (*computeProvider)(nil)
	_ provider.ProviderWithValidateConfig = (*computeProvider)(nil)
)

// Metadata implements [provider.Provider].
func (p *computeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = TypeName
	resp.Version = p.options.Version
}

// Schema implements [provider.Provider]. Nothing in it is required: accounts are
// resources, so that for_each goes over them.
func (p *computeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Machines, volumes and snapshots on several clouds by one contract. The provider needs no configuration: each cloud account is a " +
			"`bettercompute_provider_account` resource that names its credentials by reference.",
		Attributes: map[string]schema.Attribute{
			"tenant_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The tenant of accounts that name none: 1 to 128 letters, digits and `.` `_` `:` `-`. Default: `root`. " +
					"It is part of every id.",
			},
			"secrets": schema.MapAttribute{
				Optional: true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: "Values behind `secret://tenant/name` references. A key is `name` (of `tenant_id`), `tenant/name`, or a full " +
					"reference such as `env://OLD_NAME`, which it then overrides. Values may come from ephemeral resources and are never recorded.",
			},
			"vault": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "Where `vault://mount/path#field` references are read (key-value engines, version 1 and 2). " +
					"What is unset comes from the variables that Vault's own client reads: `VAULT_ADDR`, `VAULT_TOKEN`, `VAULT_NAMESPACE` and others.",
				Attributes: map[string]schema.Attribute{
					"address":   schema.StringAttribute{Optional: true, MarkdownDescription: "Vault's url. Default: `VAULT_ADDR`."},
					"namespace": schema.StringAttribute{Optional: true, MarkdownDescription: "The namespace. Default: `VAULT_NAMESPACE`."},
					"token": schema.StringAttribute{
						Optional: true, Sensitive: true,
						MarkdownDescription: "A Vault token, the value itself; it is never recorded. Default: `VAULT_TOKEN`.",
					},
				},
			},
		},
	}
}

// Resources implements [provider.Provider].
func (p *computeProvider) Resources(context.Context) []func() resource.Resource {
	clouds := p.options.Registry
	return []func() resource.Resource{
		func() resource.Resource { return newAccountResource(clouds) },
		func() resource.Resource { return newInstanceResource(clouds) },
		func() resource.Resource { return newPoolResource(clouds) },
		func() resource.Resource { return newVolumeResource(clouds) },
		func() resource.Resource { return newSnapshotResource(clouds) },
		func() resource.Resource { return newAttachmentResource(clouds) },
	}
}

// Functions implements [provider.ProviderWithFunctions].
func (p *computeProvider) Functions(context.Context) []func() function.Function {
	return uriFunctions(p.options.Registry)
}

// ListResources implements [provider.ProviderWithListResources]. Cores before Terraform
// 1.14, and OpenTofu, don't ask for them.
func (p *computeProvider) ListResources(context.Context) []func() list.ListResource {
	return listResources(p.options.Registry)
}

// Actions implements [provider.ProviderWithActions]. Cores before Terraform 1.14, and
// OpenTofu, don't ask for them.
func (p *computeProvider) Actions(context.Context) []func() action.Action {
	return actions(p.options.Registry)
}

// DataSources implements [provider.Provider].
func (p *computeProvider) DataSources(context.Context) []func() datasource.DataSource {
	clouds := p.options.Registry
	return []func() datasource.DataSource{
		func() datasource.DataSource { return newOffersDataSource(clouds) },
		func() datasource.DataSource { return newInstancesDataSource(clouds) },
		func() datasource.DataSource { return newVolumesDataSource(clouds) },
		func() datasource.DataSource { return newSnapshotsDataSource(clouds) },
	}
}
