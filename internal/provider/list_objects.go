// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// objectList is a list resource: what `terraform query` shows, from Terraform 1.14 on,
// and generates import blocks of. It lists what the data sources do, the objects that
// carry the marks of an account or a pool; other cores never ask for it.
type objectList[T backends.Object] struct {
	clouds *backends.Registry
	data   *providerData

	kind reference.Kind
	noun string // one of the objects
	// objects are the managed objects, the oldest first.
	objects func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]T, error)
	// ref is the object's uri in a pool.
	ref func(pool reference.Reference, object T) reference.Reference
	// fill writes the resource as it is after an import and a refresh.
	fill func(r record, ref reference.Reference, object T)
}

var (
	_ list.ListResourceWithConfigure      = (*objectList[backends.Machine])(nil)
	_ list.ListResourceWithValidateConfig = (*objectList[backends.Machine])(nil)
)

// listResources are the provider's list resources.
func listResources(clouds *backends.Registry) []func() list.ListResource {
	return []func() list.ListResource{
		func() list.ListResource {
			return &objectList[backends.Machine]{
				clouds: clouds, kind: reference.KindInstance, noun: "machine",
				objects: func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.Machine, error) {
					if _, ok := account.Backend.(backends.Lister); !ok {
						return nil, backends.Errorf(backends.Unsupported, "%s can't list machines.", account.Definition.Title)
					}
					return account.Objects(ctx, filter)
				},
				ref: func(pool reference.Reference, m backends.Machine) reference.Reference {
					return pool.InstanceRef(m.Name, m.ID)
				},
				fill: func(r record, ref reference.Reference, m backends.Machine) {
					instanceNames(r, ref.PoolRef(), m.Name, m.ID)
					r.setText("name", m.Name)
					r.setText("pool", ref.PoolRef().String())
					r.setText("on_image_change", onChangeReplace)
					r.setText("on_user_data_change", onChangeIgnore)
					instanceImported(r, m)
					instanceObserved(r, m)
					instanceObservedWishes(r, m)
				},
			}
		},
		func() list.ListResource {
			return &objectList[backends.Volume]{
				clouds: clouds, kind: reference.KindVolume, noun: "volume",
				objects: func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.Volume, error) {
					return account.VolumeObjects(ctx, filter)
				},
				ref: func(pool reference.Reference, v backends.Volume) reference.Reference { return pool.VolumeRef(v.Name) },
				fill: func(r record, ref reference.Reference, v backends.Volume) {
					volumeNames(r, ref.PoolRef(), v.Name)
					r.setText("name", v.Name)
					r.setText("pool", ref.PoolRef().String())
					volumeImported(r, v)
					volumeObserved(r, v, nil, nil)
				},
			}
		},
		func() list.ListResource {
			return &objectList[backends.Snapshot]{
				clouds: clouds, kind: reference.KindSnapshot, noun: "snapshot",
				objects: func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.Snapshot, error) {
					return account.SnapshotObjects(ctx, filter)
				},
				ref: func(pool reference.Reference, s backends.Snapshot) reference.Reference {
					return pool.VolumeRef(s.Marks.Volume).SnapshotRef(s.Name)
				},
				fill: func(r record, ref reference.Reference, s backends.Snapshot) {
					r.setText("id", ref.ID())
					r.setText("uri", ref.String())
					r.setText("name", s.Name)
					r.setText("volume", ref.VolumeRef(ref.Volume).String())
					snapshotObserved(r, s)
				},
			}
		},
	}
}

// Metadata names the resource that is listed.
func (l *objectList[T]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = l.kind.Resource()
}

// Configure takes what the provider was configured with.
func (l *objectList[T]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	l.data = configured(req.ProviderData, &resp.Diagnostics)
}

// ListResourceConfigSchema declares what is listed.
func (l *objectList[T]) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: fmt.Sprintf("The %ss that carry the id of an account or a pool, the oldest first, whichever state they are in.", l.noun),
		Attributes: map[string]schema.Attribute{
			"provider_account": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The `uri` of an account. Exactly one of `provider_account` and `pool` is set.",
			},
			"pool": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The `uri` of a pool. Exactly one of `provider_account` and `pool` is set.",
			},
			"pools": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: fmt.Sprintf("With `provider_account`: the names of its pools. A %s of a pool that isn't named has no uri, and is left out.", l.noun),
			},
		},
	}
}

// ValidateListResourceConfig reports what is wrong with what is known.
func (l *objectList[T]) ValidateListResourceConfig(_ context.Context, req list.ValidateConfigRequest, resp *list.ValidateConfigResponse) {
	config := valuesOf(refuseNulls(&resp.Diagnostics, req.Config.Raw))
	for _, err := range checkTarget(l.clouds, config) {
		report(&resp.Diagnostics, err)
	}
	reportIssues(&resp.Diagnostics, checkPools(config, l.noun))
}

// List lists the objects. Those whose uri can't be told are counted, in one warning.
func (l *objectList[T]) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	results := l.results(ctx, req, &diags)
	if len(diags) > 0 {
		results = append([]list.ListResult{{Diagnostics: diags}}, results...)
	}
	stream.Results = slices.Values(results)
}

func (l *objectList[T]) results(ctx context.Context, req list.ListRequest, diags *diag.Diagnostics) []list.ListResult {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	ctx, flush := collectWarnings(ctx, diags)
	defer flush()
	config := valuesOf(req.Config.Raw)
	target, account, err := l.data.openTarget(config)
	if err != nil {
		report(diags, err)
		return nil
	}
	objects, err := l.objects(ctx, account, objectsOf(target))
	if err != nil {
		report(diags, err)
		return nil
	}
	names := inventoryNames{target.AccountID(), poolsOf(target, config.Strings("pools"))}
	var out []list.ListResult
	nameless := 0
	for _, o := range objects {
		about := o.About()
		if about.Going() {
			continue
		}
		pool, known := names.poolOf(about.Marks)
		ref := l.ref(pool, o)
		if !known || ref.ID() != about.Marks.Key {
			nameless++
			continue
		}
		if req.Limit > 0 && int64(len(out)) >= req.Limit {
			continue // the rest is counted only
		}
		result, err := l.result(ctx, req, ref, o)
		if err != nil {
			report(diags, err)
			return nil
		}
		out = append(out, result)
	}
	if nameless > 0 {
		diags.AddWarning("Left out", fmt.Sprintf("%d %ss have no uri, and can't be listed: a uri holds the names of the object and of its pool, and the objects carry only hashes of them. "+
			"List the pool, or name its pool in pools. One that was renamed in the cloud has lost its uri; give it back its name.", nameless, l.noun))
	}
	return out
}

func (l *objectList[T]) result(ctx context.Context, req list.ListRequest, ref reference.Reference, object T) (list.ListResult, error) {
	result := req.NewListResult(ctx)
	about := object.About()
	result.DisplayName = fmt.Sprintf("%s (%s)", about.Name, about.ID)
	setIdentity(ctx, result.Identity, ref.String(), &result.Diagnostics)
	if !req.IncludeResource {
		return result, nil
	}
	rec, err := newRecord(result.Resource.Raw)
	if err != nil {
		return result, err
	}
	l.fill(rec, ref, object)
	result.Resource.Raw = rec.raw()
	return result, nil
}
