// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var (
	_ datasource.DataSourceWithConfigure      = (*offersDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*offersDataSource)(nil)
)

// offersDataSource is bettercompute_offers.
type offersDataSource struct {
	clouds *backends.Registry
	data   *providerData
}

func newOffersDataSource(clouds *backends.Registry) datasource.DataSource {
	return &offersDataSource{clouds: clouds}
}

// Metadata names the data source.
func (s *offersDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_offers"
}

// Configure takes what the provider was configured with; there is none while a
// configuration is only validated.
func (s *offersDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = configured(req.ProviderData, &resp.Diagnostics)
}

const outOfBounds = "Write a number in these bounds, or leave it out."

// Schema declares bettercompute_offers. The bounds are the specification's.
func (s *offersDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := targetAttributes()
	maps.Copy(attributes, map[string]schema.Attribute{
		"kind": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Only offers of this kind: `vps` or `metal`.",
			Validators: []validator.String{textRule(stringvalidator.OneOf(string(backends.KindVPS), string(backends.KindMetal)),
				"Write vps or metal, or leave it out for both.")},
		},
		"region": schema.StringAttribute{
			Optional: true, Computed: true, MarkdownDescription: "Only offers in this region of the cloud. Default: the account's region.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Leave it out for the account's region.")},
		},
		"gpu_model": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Only offers with this model of GPU.",
			Validators: []validator.String{textRule(stringvalidator.LengthAtLeast(1), "Leave it out for any model, or none.")},
		},
		"min_gpus": schema.NumberAttribute{
			Optional: true, MarkdownDescription: "At least so many GPUs (of `gpu_model`, if set), a whole number from 0 to 64.",
			Validators: []validator.Number{numberRule{outOfBounds, bounds{0, 64, true}}},
		},
		"min_vcpu": schema.NumberAttribute{
			Optional: true, MarkdownDescription: "At least so many virtual processors, a whole number from 0 to 1024.",
			Validators: []validator.Number{numberRule{outOfBounds, bounds{0, 1024, true}}},
		},
		"min_memory_gib": schema.NumberAttribute{
			Optional: true, MarkdownDescription: "At least so much memory in GiB, 0 to 16384.",
			Validators: []validator.Number{numberRule{outOfBounds, bounds{0, 16384, false}}},
		},
		"offers": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The offers, the cheapest first; those without a price come last.",
			NestedObject: schema.NestedAttributeObject{Attributes: offerAttributes()},
		},
	})
	resp.Schema = schema.Schema{
		MarkdownDescription: "The sizes that can be bought in a region through an account, by price. Prices and availability are today's: to have a " +
			"plan depend on them is to have it change with them.",
		Attributes: attributes,
	}
}

func offerAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":         schema.StringAttribute{Computed: true, MarkdownDescription: "What an instance's `offer` or a pool's flavor names."},
		"kind":       schema.StringAttribute{Computed: true, MarkdownDescription: "`vps` or `metal`."},
		"region":     schema.StringAttribute{Computed: true, MarkdownDescription: "The cloud's region."},
		"vcpu":       schema.Int64Attribute{Computed: true, MarkdownDescription: "Virtual processors."},
		"memory_gib": schema.Float64Attribute{Computed: true, MarkdownDescription: "Memory in GiB."},
		"disk_gib":   schema.Int64Attribute{Computed: true, MarkdownDescription: "The disk in GiB; null when the offer has none of its own."},
		"gpus": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "Graphics processors; empty without any.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"model": schema.StringAttribute{Computed: true, MarkdownDescription: "The model."},
				"count": schema.Int64Attribute{Computed: true, MarkdownDescription: "How many."},
			}},
		},
		"price_per_hour": schema.NumberAttribute{Computed: true, MarkdownDescription: "The gross price per hour, exact; null where the cloud has no prices."},
		"currency":       schema.StringAttribute{Computed: true, MarkdownDescription: "ISO 4217; null where the cloud has no prices."},
		"available":      schema.BoolAttribute{Computed: true, MarkdownDescription: "`false`: out of stock now."},
	}
}

// ValidateConfig reports what is wrong with what is known.
func (s *offersDataSource) ValidateConfig(_ context.Context, req datasource.ValidateConfigRequest,
	resp *datasource.ValidateConfigResponse) {
	for _, err := range checkTarget(s.clouds, valuesOf(refuseNulls(&resp.Diagnostics, req.Config.Raw))) {
		report(&resp.Diagnostics, err)
	}
}

// Read asks the account's catalog.
func (s *offersDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	config := valuesOf(req.Config.Raw)
	_, account, err := s.data.openTarget(config)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	query := backends.OfferQuery{
		Kind:     backends.Kind(config.String("kind")),
		Region:   firstOf(config.String("region"), account.Region),
		GPUModel: config.String("gpu_model"),
		MinGPUs:  config.Int("min_gpus"),
		MinVCPU:  config.Int("min_vcpu"),
	}
	if least := exact(config["min_memory_gib"]); least != nil {
		query.MinMemoryGiB, _ = least.Float64()
	}
	offers, err := account.Backend.Offers(ctx, query)
	if err != nil {
		report(&resp.Diagnostics, err)
		return
	}
	backends.SortOffers(offers)
	rows := make([]any, len(offers))
	for i, o := range offers {
		rows[i] = offerRow(o)
	}
	config["region"] = query.Region
	config["offers"] = rows
	state, err := protocolValue(resp.State.Raw.Type(), config)
	report(&resp.Diagnostics, err)
	if err == nil {
		resp.State.Raw = state
	}
}

func offerRow(o backends.Offer) backends.Values {
	gpus := make([]any, len(o.GPUs))
	for i, g := range o.GPUs {
		gpus[i] = backends.Values{"model": g.Model, "count": g.Count}
	}
	row := backends.Values{
		"id": o.ID, "kind": string(o.Kind), "region": o.Region, "vcpu": o.VCPU, "memory_gib": o.MemoryGiB,
		"gpus": gpus, "available": o.Available,
	}
	if o.DiskGiB > 0 {
		row["disk_gib"] = o.DiskGiB
	}
	if o.PricePerHour != nil {
		row["price_per_hour"] = decimal(o.PricePerHour)
		row["currency"] = o.Currency
	}
	return row
}
