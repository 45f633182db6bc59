// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var (
	_ datasource.DataSourceWithConfigure      = (*instancesDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*instancesDataSource)(nil)
)

// instancesDataSource is bettercompute_instances.
type instancesDataSource struct {
	clouds *backends.Registry
	data   *providerData
}

func newInstancesDataSource(clouds *backends.Registry) datasource.DataSource {
	return &instancesDataSource{clouds: clouds}
}

// Metadata names the data source.
func (s *instancesDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_instances"
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (s *instancesDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = configured(req.ProviderData, &resp.Diagnostics)
}

// Schema declares bettercompute_instances.
func (s *instancesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	attributes := targetAttributes()
	maps.Copy(attributes, map[string]schema.Attribute{
		"pools": schema.SetAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "With `provider_account`: names of its pools, whose machines then have a `uri`. It selects nothing: all machines of the account are listed.",
		},
		"instances": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The machines that carry the account's or pool's id, the oldest first, whichever state they are in.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"id": computed("The Better Compute id that the machine carries."),
				"uri": computed("The instance's uri, to import it. Null where it can't be told: a uri holds the pool's name, of which a machine carries " +
					"only the hash, so read the `pool`, or name it in `pools`; and a machine that was renamed in the cloud has lost its own."),
				"name":         computed("The name in the cloud."),
				"machine_id":   computed("The cloud's id."),
				"state":        computed("`pending`, `running`, `stopped`, `rescue`, `error` or `unknown`."),
				"offer":        computed("The size."),
				"region":       computed("The cloud's region."),
				"account_id":   computed("The account's id."),
				"pool_id":      computed("The pool's id."),
				"complete":     schema.BoolAttribute{Computed: true, MarkdownDescription: "`false`: its creation was interrupted, or still runs."},
				"ipv4":         computed("One public IPv4 address."),
				"ipv6":         computed("One public IPv6 address."),
				"private_ipv4": computed("One private IPv4 address."),
				"address":      computed("The address to connect to: the public IPv4 address, else the public IPv6 address, else the private one."),
				"created_at":   computed("When the cloud made it, RFC 3339 in UTC."),
				"labels": schema.MapAttribute{
					Computed: true, ElementType: types.StringType,
					MarkdownDescription: "Labels in the cloud that aren't ours.",
				},
			}},
		},
	})
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a cloud holds of ours for an account or a pool: an inventory, leftovers that no state has, and with `import { for_each }` " +
			"the way to take them in. Machines that are being deleted are left out.",
		Attributes: attributes,
	}
}

// ValidateConfig reports what is wrong with what is known.
func (s *instancesDataSource) ValidateConfig(_ context.Context, req datasource.ValidateConfigRequest,
	resp *datasource.ValidateConfigResponse) {
	config := valuesOf(req.Config.Raw)
	for _, err := range checkTarget(s.clouds, config) {
		report(&resp.Diagnostics, err)
	}
	reportIssues(&resp.Diagnostics, checkPools(config))
}

// checkPools returns what is wrong with the names of pools.
func checkPools(config backends.Values) []*backends.Error {
	var issues []*backends.Error
	if config.Has("pools") && config.Has("pool") {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "pools goes with provider_account, not with pool.").At("pools").
			WithRemedy("Remove pools: one pool's machines all have a uri."))
	}
	for i, name := range config.List("pools") {
		text, ok := name.(string)
		if problem := reference.PoolNameProblem(text); !backends.IsUnknown(name) && (!ok || problem != "") {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("pools", i).
				WithRemedy("Give the pools' names, not their uris: [bettercompute_pool.web.name]."))
		}
	}
	return issues
}

// Read lists the machines.
func (s *instancesDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	config := valuesOf(req.Config.Raw)
	ref, account, err := s.data.openTarget(config)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if _, ok := account.Backend.(backends.Lister); !ok {
		report(&resp.Diagnostics, backends.Errorf(backends.Unsupported, "%s can't list machines.", account.Definition.Title))
		return
	}
	machines, err := account.Objects(ctx, objectsOf(ref))
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if issues := checkPools(config); len(issues) > 0 { // names that were known too late to be validated
		reportIssues(&resp.Diagnostics, issues)
		return
	}
	pools := poolsOf(ref, config.Strings("pools"))
	rows := make([]any, len(machines))
	for i, m := range machines {
		rows[i] = machineRow(pools, m)
	}
	config["instances"] = rows
	state, err := protocolValue(resp.State.Raw.Type(), config)
	report(&resp.Diagnostics, err)
	if err == nil {
		resp.State.Raw = state
	}
}

// machineRow is a machine as the data source shows it; an empty text is null.
func machineRow(pools map[string]reference.Reference, m backends.Machine) backends.Values {
	v4, v6 := m.First(backends.IPv4, backends.Public), m.First(backends.IPv6, backends.Public)
	private := m.First(backends.IPv4, backends.Private)
	labels := backends.Values{}
	for k, v := range m.Labels {
		labels[k] = v
	}
	row := backends.Values{"complete": m.Marks.Complete, "labels": labels}
	for name, text := range map[string]string{
		"id": m.Marks.Key, "uri": machineURI(pools, m), "name": m.Name, "machine_id": m.ID, "state": string(m.State), "offer": m.Offer,
		"region": m.Region, "account_id": m.Marks.Account, "pool_id": m.Marks.Pool, "ipv4": v4, "ipv6": v6, "private_ipv4": private,
		"address": firstOf(v4, v6, private, m.First(backends.IPv6, backends.Private)),
	} {
		if text != "" {
			row[name] = text
		}
	}
	if !m.Created.IsZero() {
		row["created_at"] = m.Created.UTC().Format(time.RFC3339)
	}
	return row
}

// poolsOf are the pools that are known by name, by their ids: the one that is read,
// or those of the account that are named.
func poolsOf(ref reference.Reference, names []string) map[string]reference.Reference {
	if ref.Kind == reference.KindPool {
		return map[string]reference.Reference{ref.PoolID(): ref}
	}
	out := make(map[string]reference.Reference, len(names))
	for _, name := range names {
		pool := ref.NewPool(name, false, reference.Limits{})
		out[pool.PoolID()] = pool
	}
	return out
}

// machineURI is the uri that names the machine; "" when its pool's name isn't known,
// or pool and name don't make the key that it carries.
func machineURI(pools map[string]reference.Reference, m backends.Machine) string {
	pool, ok := pools[m.Marks.Pool]
	if !ok {
		return ""
	}
	instance := pool.InstanceRef(m.Name, m.ID)
	if instance.ID() != m.Marks.Key {
		return ""
	}
	return instance.String()
}
