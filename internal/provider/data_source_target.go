// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// targetAttributes are how a data source says what it reads: an account or a pool.
func targetAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"provider_account": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The `uri` of an account. Exactly one of `provider_account` and `pool` is set.",
		},
		"pool": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The `uri` of a pool. Exactly one of `provider_account` and `pool` is set.",
		},
	}
}

// checkTarget returns what is wrong with the choice, as far as it is known, and
// with the uri.
func checkTarget(clouds *backends.Registry, values backends.Values) []error {
	_, hasAccount := values["provider_account"]
	_, hasPool := values["pool"]
	switch {
	case hasAccount && hasPool && values.Has("provider_account") && values.Has("pool"):
		return []error{backends.Errorf(backends.InvalidInput, "provider_account and pool exclude each other.").At("pool").
			WithRemedy("Keep provider_account for all of an account, or pool for one pool.")}
	case !hasAccount && !hasPool:
		return []error{backends.Errorf(backends.InvalidInput, "Neither provider_account nor pool is set.").
			WithRemedy("Set one of them, to the uri of an account or of a pool.")}
	}
	var problems []error
	for _, kind := range []reference.Kind{reference.KindAccount, reference.KindPool} {
		name := targetName(kind)
		if !values.Has(name) {
			continue
		}
		if _, err := reference.ParseKind(clouds, kind, values.String(name)); err != nil {
			problems = append(problems, inAttribute(name, values.String(name), err))
		}
	}
	return problems
}

func targetName(kind reference.Kind) string {
	if kind == reference.KindAccount {
		return "provider_account"
	}
	return "pool"
}

// openTarget opens what a checked data source reads.
func (d *providerData) openTarget(values backends.Values) (reference.Reference, *reconcile.Account, error) {
	kind := reference.KindAccount
	if values.Has("pool") {
		kind = reference.KindPool
	}
	name := targetName(kind)
	ref, account, err := d.open(kind, values.String(name))
	if err != nil {
		return ref, nil, inAttribute(name, values.String(name), err)
	}
	return ref, account, nil
}
