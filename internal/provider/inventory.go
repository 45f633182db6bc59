// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

var (
	_ datasource.DataSourceWithConfigure      = (*inventory)(nil)
	_ datasource.DataSourceWithValidateConfig = (*inventory)(nil)
)

// inventory is a data source of what a cloud holds of ours for an account or a pool:
// bettercompute_instances, bettercompute_provider_volumes and bettercompute_snapshots.
type inventory struct {
	clouds *backends.Registry
	data   *providerData

	name string // of the data source, without the provider's
	list string // the attribute with the rows
	noun string // one of them
	// description is what it says of itself.
	description string
	// columns are the attributes of a row, besides those that all rows have.
	columns map[string]schema.Attribute
	// uri says when a row's uri is null.
	uri string
	// rows reads and returns them, the oldest first.
	rows func(ctx context.Context, account *reconcile.Account, filter backends.Filter, names inventoryNames) ([]any, error)
}

// inventoryNames are what ids can be told the names of.
type inventoryNames struct {
	account string // its id
	pools   map[string]reference.Reference
}

// Metadata names the data source.
func (s *inventory) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + s.name
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (s *inventory) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = configured(req.ProviderData, &resp.Diagnostics)
}

func computedText(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// Schema declares the data source.
func (s *inventory) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	columns := map[string]schema.Attribute{
		"id":         computedText("The Better Compute id that the " + s.noun + " carries."),
		"uri":        computedText(s.uri),
		"account_id": computedText("The account's id."),
		"pool_id":    computedText("The pool's id."),
		"region":     computedText("The cloud's region."),
		"complete":   schema.BoolAttribute{Computed: true, MarkdownDescription: "`false`: its creation was interrupted, or still runs."},
		"created_at": computedText("When the cloud made it, RFC 3339 in UTC."),
		"labels": schema.MapAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "Labels in the cloud that aren't the provider's marks, whoever set them; where a cloud has tags, all others, such as those of a template on Proxmox VE. A tag without a value has an empty one.",
		},
	}
	maps.Copy(columns, s.columns)
	attributes := targetAttributes()
	attributes["pools"] = schema.SetAttribute{
		Optional: true, ElementType: types.StringType,
		MarkdownDescription: fmt.Sprintf("With `provider_account`: names of its pools, whose %[1]ss then have a `uri`. It selects nothing: all %[1]ss of the account are listed.", s.noun),
	}
	attributes[s.list] = schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The " + s.noun + "s that carry the account's or pool's id, the oldest first, whichever state they are in.",
		NestedObject:        schema.NestedAttributeObject{Attributes: columns},
	}
	resp.Schema = schema.Schema{MarkdownDescription: s.description, Attributes: attributes}
}

// ValidateConfig reports what is wrong with what is known.
func (s *inventory) ValidateConfig(_ context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	config := valuesOf(refuseNulls(&resp.Diagnostics, req.Config.Raw))
	for _, err := range checkTarget(s.clouds, config) {
		report(&resp.Diagnostics, err)
	}
	reportIssues(&resp.Diagnostics, checkPools(config, s.noun))
}

// checkPools returns what is wrong with the names of pools.
func checkPools(config backends.Values, noun string) []*backends.Error {
	var issues []*backends.Error
	if config.Has("pools") && config.Has("pool") {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "pools goes with provider_account, not with pool.").At("pools").
			WithRemedy("Remove pools: one pool's %ss all have a uri.", noun))
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

// Read lists the objects.
func (s *inventory) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	config := valuesOf(req.Config.Raw)
	ref, account, err := s.data.openTarget(config)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	if issues := checkPools(config, s.noun); len(issues) > 0 { // names that were known too late to be validated
		reportIssues(&resp.Diagnostics, issues)
		return
	}
	rows, err := s.rows(ctx, account, objectsOf(ref), inventoryNames{ref.AccountID(), poolsOf(ref, config.Strings("pools"))})
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	config[s.list] = rows
	state, err := protocolValue(resp.State.Raw.Type(), config)
	report(&resp.Diagnostics, err)
	if err == nil {
		resp.State.Raw = state
	}
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

// poolOf is the pool that marks name, if it is known by name. Marks that are in an
// object's name hold the id's beginning only.
func (n inventoryNames) poolOf(m backends.Marks) (reference.Reference, bool) {
	if !m.Fixed {
		pool, ok := n.pools[m.Pool]
		return pool, ok
	}
	for id, pool := range n.pools {
		if m.Pool != "" && strings.HasPrefix(id, m.Pool) {
			return pool, true
		}
	}
	return reference.Reference{}, false
}

// row is what the rows of all inventories have; an empty text is null. uri makes the
// uri from the object's pool: it is shown only if it has the key that the object
// carries.
func (n inventoryNames) row(a backends.About, region string, labels map[string]string, texts map[string]string,
	uri func(pool reference.Reference) reference.Reference) backends.Values {
	m := a.Marks
	shown := backends.Values{}
	for k, v := range labels {
		shown[k] = v
	}
	out := backends.Values{"complete": m.Complete, "labels": shown}
	all := map[string]string{
		"id": m.Key, "name": a.Name, "state": string(a.State), "region": region, "account_id": m.Account, "pool_id": m.Pool,
	}
	if pool, ok := n.poolOf(m); ok {
		all["pool_id"] = pool.PoolID()
		if ref := uri(pool); ref.ID() == m.Key {
			all["uri"] = ref.String()
		}
	}
	if m.Fixed && m.Account != "" && strings.HasPrefix(n.account, m.Account) {
		all["account_id"] = n.account
	}
	maps.Copy(all, texts)
	for name, text := range all {
		if text != "" {
			out[name] = text
		}
	}
	if !a.Created.IsZero() {
		out["created_at"] = a.Created.UTC().Format(time.RFC3339)
	}
	return out
}
